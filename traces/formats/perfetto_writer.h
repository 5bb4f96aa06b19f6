// Timelines for people: a trace as Chrome's trace events in JSON, which Perfetto (ui.perfetto.dev) and chrome://tracing
// read.
#pragma once

#include <cstdint>
#include <iosfwd>

#include "traces/model/trace.h"

namespace ddx::formats {

struct PerfettoLimits {
  std::uint64_t slices = 5'000'000;  // beyond these the file says that it is cut
  std::uint64_t arrows = 500'000;    // matched calls that are joined by arrows
};

struct PerfettoCount {
  std::uint64_t slices = 0;
  std::uint64_t without_times = 0;  // of these, placed by order
  bool cut = false;                 // the limit was reached: more were left out
};

// One process a rank, one track a stream (or a group, where no stream is recorded), one slice an operation; arrows join
// the calls of one (communicator, sequence number) and a send with its receive. Times are microseconds from the
// earliest one ("base_time_ns" of "otherData" is that one), nanoseconds as decimals. Ranks without any times are laid
// out in the order of their operations, 10 us each, and the file says so. The same trace gives the same bytes.
PerfettoCount write_perfetto(const Trace& trace, std::ostream& out, const PerfettoLimits& limits = {});

}  // namespace ddx::formats
