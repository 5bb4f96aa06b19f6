// Where threads stood: dumps of Python's faulthandler and of `py-spy dump`, in a log or as files of their own, and the
// tracebacks of calls that timed out, which tell the same of the thread that made them. What follows "Fatal Python
// error" is the end of a process and is left to process_log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "traces/formats/log_events.h"

namespace ddx::formats {

// One thread being read. What the header's line says of its writer is copied, since the line is gone by the end.
struct OpenThread {
  LogLine header;
  std::string host;
  std::string text;  // of the line that the event will show: the call site's, else the header
  HostStack stack;
  std::string outermost;  // function of the outermost frame read
  bool begins_as_thread = false;
};

// What is open in one stream of lines (one launcher prefix).
struct StackSource {
  enum class Kind { none, faulthandler, py_spy, traceback, fatal };
  Kind kind = Kind::none;
  std::optional<OpenThread> thread;
  unsigned strange_lines = 0;       // in a row, of others who write to the same stream
  unsigned lines = 0;               // of a traceback
  std::optional<std::int64_t> pid;  // py-spy: "Process 4711: python train.py"
  bool of_child = false;            // py-spy --subprocesses: a data loader's worker is not the rank

  bool open() const { return kind != Kind::none; }
};

struct StackState {
  std::unordered_map<std::uint64_t, StackSource> sources;
  std::size_t open = 0;  // sources with something open: then every line is looked at
};

// True where the line belongs to a stack and can mean nothing else. `interesting`: the filter let it pass.
// Kept are the main thread of each dump, and other threads that are in a call of torch.distributed.
bool read_stack_line(const LogLine& line, bool interesting, StackState& state, LogEventWriter& events);

// Writes what the end of the file leaves open.
void finish_stacks(StackState& state, LogEventWriter& events);

// Whether a line begins the stack of a thread, of either tool.
bool is_stack_header(std::string_view body);

}  // namespace ddx::formats
