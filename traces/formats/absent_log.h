// Lines in which a library says by itself which ranks did not come: gloo's monitored barrier, PyTorch's desync report,
// Horovod's stall check, the barrier of JAX's coordination service.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "traces/formats/log_events.h"

namespace ddx::formats {

// Lists that go on over lines, by writer: Horovod's "Missing ranks:" with a line a rank, JAX's names of tasks.
struct AbsentState {
  struct List {
    std::size_t event;
    unsigned lines = 0;
  };
  std::unordered_map<std::uint64_t, List> open;
};

// `interesting`: the filter let the line pass; others only continue what is open. True where the line was one of these.
bool read_absent_line(const LogLine& line, bool interesting, AbsentState& state, LogEventWriter& events);

}  // namespace ddx::formats
