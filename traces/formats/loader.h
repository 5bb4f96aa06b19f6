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
  // The formats to tell apart; null: the registry's. Must outlive the call.
  const std::vector<Importer>* formats = nullptr;
};

// A file that could not be used, or a given path that leads nowhere, becomes an Input with a note, and
// is counted: "load.unreadable_file" (cannot be opened or read), "load.failed_file" (its reader gave up),
// "load.unknown_file" (no format fits), "load.compressed_file", "load.empty_file". Gzip is read like what it holds, a
// tar within it is not; "load.gzip_cut", "load.gzip_damaged": only its beginning could be unpacked. A file with two
// names is read once
// ("load.same_file"). "load.file_cut": a file lost its end while it was read. "load.rank_from_unmatched": the pattern
// that was given for ranks finds one in no path.
Evidence load(const std::vector<std::string>& paths, const LoadOptions& options);

}  // namespace ddx::formats
