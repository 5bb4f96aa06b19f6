// Evidence: all that was read from what the user gave, in memory. Importers append to it, analyzers judge it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/rank_set.h"
#include "traces/model/log_event.h"
#include "traces/model/trace.h"

namespace ddx {

// One file (or standard input) as it was taken.
struct Input {
  std::string path;
  std::string format;               // importer's name; "unknown": skipped; "launch": of the launch
  RankSet ranks;                    // whom it speaks of, where that is known
  std::optional<RankId> file_rank;  // the rank its name holds
  std::string note;                 // why it was skipped or read in part; empty: whole
  bool unreadable = false;
  std::optional<std::uint32_t> world_size = std::nullopt;  // as it states it
};

// Dependencies of a graph that form a circle, so that it cannot have happened so.
struct DependencyCycle {
  InputId input;
  std::vector<std::uint64_t> nodes;  // ids, each depends on the next and the last on the first; cut where it is long
  bool control = false;              // some of these are control dependencies, which converters add by rule
};

// Members of a group as a file lists them that holds nothing else.
struct GroupList {
  InputId input;
  std::uint64_t line = 0;
  std::string name;
  std::vector<RankId> members;  // global ranks, by position
};

struct Evidence {
  std::vector<Input> inputs;  // ordered by path
  Trace trace;
  std::vector<LogEvent> events;  // by input, then line
  std::vector<DependencyCycle> cycles;
  std::vector<GroupList> group_lists;
  Diagnostics diagnostics;

  const Input* input(std::optional<InputId> id) const;  // null where it is not known
  // The path of an input; empty where it is not known.
  std::string path(std::optional<InputId> id) const;

  // Appends all of `other`, its ids rewritten.
  void merge(Evidence&& other);
};

}  // namespace ddx
