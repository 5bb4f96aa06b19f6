// The report that `ncclras` prints for people: a table of communicator groups, then sections of those with trouble.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "traces/formats/log_events.h"

namespace ddx::formats {

struct RasTextState {
  std::optional<Nanos> time;  // of the report: "Timestamp: 2026-11-29 10:00:00" stands above its tables
  // What the lines below a section's heading are about.
  enum class Topic { none, counts, missing, error, dead, absent };
  struct GroupRow {
    std::uint64_t line = 0;
    std::uint64_t size = 0;
    std::string status;
    std::string errors;
    std::string text;
    bool detailed = false;  // a section spoke of one of its communicators
  };
  bool open = false;
  bool in_table = false;
  unsigned idle_lines = 0;
  std::map<std::int64_t, GroupRow> groups;
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> sections;  // (group, number) -> event
  std::optional<std::size_t> current;                                     // event
  Topic topic = Topic::none;
  std::string operation;  // whose counts are listed
  std::string error;
  bool list_follows = false;                               // ranks that follow belong to the last count group
  std::vector<std::pair<std::string, std::int64_t>> dead;  // (host, pid)
  std::vector<std::pair<std::string, std::int64_t>> absent;
};

// True where the line is part of a report.
bool read_ras_line(const LogLine& line, bool interesting, RasTextState& state, LogEventWriter& events);
// Closes a report at the end of the file, or where the next begins.
void finish_ras(RasTextState& state, LogEventWriter& events);

}  // namespace ddx::formats
