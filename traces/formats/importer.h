// Importer: one format's descriptor. The list of all of them is registry.cc; a new format costs its own file pair, a
// test, and one line there.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "traces/model/evidence.h"

namespace ddx::formats {

struct ImportOptions {
  // What to take the rank from in a file's path: first capture group. Absent: the reader's own guess at the file name.
  std::optional<std::regex> rank_from;
  // Bounds on what one file may make ddx hold; beyond them the file is read in part and a diagnostic says so.
  std::uint64_t max_ops_per_file = 50'000'000;
  std::uint64_t max_events_per_file = 2'000'000;
};

// One file, in memory. `bytes` stays valid only during the call.
struct Source {
  std::string path;
  std::string_view bytes;
};

// 0: not this format. The importer with the highest score reads the file; equal scores: the earlier in the registry.
enum class Sniff : int { no = 0, maybe = 1, likely = 2, sure = 3 };

struct Importer {
  std::string_view name;         // "flight-recorder-pickle": as shown in reports
  std::string_view description;  // one line for `ddx info --formats` and the docs
  // `head` is the first up to 64 KiB of the file; or, where no format took that and this one has `by_end`, the last.
  Sniff (*sniff)(const std::string& path, std::string_view head);
  // Appends to an Evidence that has exactly one Input, this file's (id 0, path and format already set). Throws Error
  // where nothing of the file can be used; counts what it could not use in `out.diagnostics` otherwise.
  void (*read)(const Source& source, const ImportOptions& options, Evidence& out);
  bool by_end = false;  // whether the end of a file may show its format: of a log, whose lines all stand alone
};

const std::vector<Importer>& importers();

// The rank that a path names: by options.rank_from, else the last number behind "rank" in the file's name or that of a
// folder (not "local_rank" and kin). Where no pattern is given, else the last number of the file's name that is no
// date, size, address or process id, else a folder that is a number. nullopt where there is none.
std::optional<RankId> rank_of_path(const std::string& path, const ImportOptions& options);

}  // namespace ddx::formats
