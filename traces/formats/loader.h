// The loader: paths in, one Evidence out. Folders are walked, every file is sniffed, files are read in parallel each
// into an Evidence of its own, and merged in order of path, so that the result does not depend on timing.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "traces/formats/importer.h"
#include "traces/model/evidence.h"

namespace ddx::formats {

struct LoadOptions {
  ImportOptions import;
  unsigned threads = 0;  // 0: one a core
  // Called with (files done, files in all) from one thread at a time; may be empty.
  std::function<void(std::size_t, std::size_t)> progress;
};

// Throws Error only where a given path does not exist. An unreadable or unknown file becomes an Input with a note and a
// diagnostic ("load.unreadable_file", "load.unknown_file").
Evidence load(const std::vector<std::string>& paths, const LoadOptions& options);

}  // namespace ddx::formats
