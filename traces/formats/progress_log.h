// Lines of training and serving loops: that they went on, that they had nothing to do, that values went bad.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "traces/formats/log_events.h"

namespace ddx::formats {

// Progress is kept thin: of a run of such lines of one source, with nothing else between, the first and the last.
struct ProgressState {
  struct Run {
    std::size_t last = 0;    // index of the last progress event
    std::size_t others = 0;  // events that are not progress, when it was written
    unsigned kept = 0;       // progress events of the run
  };
  std::unordered_map<std::uint64_t, Run> by_source;
  std::size_t written = 0;  // progress events, so far
};

bool read_progress_line(const LogLine& line, ProgressState& state, LogEventWriter& events);

}  // namespace ddx::formats
