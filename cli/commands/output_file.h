// The files that options name to be written.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace ddx::cli {

// A file, and the option that names it.
struct NamedFile {
  std::string option;
  std::string path;
};

// Throws UsageError where one of `outputs` is one of `inputs`, which the user has but once, or two of them are one
// file. Files are told apart by what they are, whatever way leads there. Devices and pipes may be anything twice.
void refuse_overwriting(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs);

// Gives `path` what `write` puts into the stream: all of it or nothing, where that is a regular file or none yet.
// Throws UsageError where it cannot be written.
void write_file(const std::string& path, const std::function<void(std::ostream&)>& write);

}  // namespace ddx::cli
