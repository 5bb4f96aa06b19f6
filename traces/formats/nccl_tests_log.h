// nccl-tests: the "Using devices" block at the top of each run.
#pragma once

#include <unordered_map>

#include "traces/formats/log_events.h"

namespace ddx::formats {

struct NcclTestsState {
  std::unordered_map<std::uint64_t, std::size_t> open;  // by source: the event whose rows are being read
};

void read_nccl_tests_line(const LogLine& line, bool interesting, NcclTestsState& state, LogEventWriter& events);

}  // namespace ddx::formats
