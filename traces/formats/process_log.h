// How processes end: Python tracebacks, signals, the kernel's OOM killer, exit codes that launchers report, and
// torchelastic's tables and restarts. What belongs to one process stands on several lines, with those of others
// between.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "traces/formats/log_events.h"

namespace ddx::formats {

// What is open in one stream of lines (one launcher prefix).
struct ProcessSource {
  // A traceback being read.
  bool in_traceback = false;
  unsigned traceback_lines = 0;
  bool last_was_indented = false;
  bool ignore_traceback = false;      // "Exception ignored in": it ended nothing
  std::string call_site;              // the last frame that is the user's
  std::string foreign_prefix;         // what an unknown tool puts before each line of this traceback
  std::optional<RankId> writer;       // of the line that opened the traceback, where a logger names it once
  std::optional<RankId> told_rank;    // "Traceback (most recent call last): (RANK 5)": quoted from another rank
  std::optional<std::int64_t> child;  // "Process 1 terminated with the following error": a spawned process

  // The exception last read, to be replaced where the next one was raised while it was handled.
  std::optional<std::size_t> exception;
  bool chained = false;

  // An abort, until its what(); a fatal error, until its first frame.
  std::optional<std::size_t> abort;
  std::optional<std::size_t> fatal;
  bool collective_failed = false;  // the watchdog spoke: an abort that follows is its work

  // torchelastic's table.
  enum class Table { none, others, root };
  Table table = Table::none;
  std::optional<ElasticFailure> failure;
  std::optional<std::int64_t> failure_pid;
  std::string failure_host;
  std::optional<Nanos> failure_time;
  std::uint64_t failure_line = 0;

  // mpirun's "Process name: [[5123,1],3]", until its exit code.
  std::optional<RankId> mpi_rank;

  bool open() const { return in_traceback || fatal || abort || table != Table::none || mpi_rank; }
};

struct ProcessState {
  std::unordered_map<std::uint64_t, ProcessSource> sources;
  std::size_t open = 0;                              // sources with something open: then every line is looked at
  std::map<std::int64_t, std::uint64_t> oom_killed;  // by process id: the line, as the kernel says it twice
};

// Reads a line that may be of any of these kinds. `interesting`: the filter let it pass; others only continue what is
// open.
void read_process_line(const LogLine& line, bool interesting, ProcessState& state, LogEventWriter& events);
// The line said that a collective failed: an abort of its writer that follows is the library's doing.
void note_collective_failure(const LogLine& line, ProcessState& state);

// Closes what the end of the file leaves open.
void finish_processes(ProcessState& state, LogEventWriter& events);

// Whether a frame's file is Python's, an installed package's or a launcher's: such frames say where an exception
// passed, not whose it is.
bool is_library(std::string_view file);

// Whether an exception only reports that a peer or a collective failed.
bool is_secondary(std::string_view exception);

}  // namespace ddx::formats
