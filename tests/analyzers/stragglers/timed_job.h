// TimedJob: a job of data, tensor and pipeline parallel ranks that ran on a clock, with or without a slow part, as the
// evidence that it would leave. Collectives end on all members together, sends and receives meet: what a rank waits
// for others is inside of its calls.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "traces/model/evidence.h"

namespace ddx::testing {

struct TimedJob {
  std::uint32_t data = 2, tensor = 1, pipeline = 1;
  std::uint32_t steps = 20, micro_batches = 2, layers = 3;
  Nanos compute = 2 * kMillisecond;       // of one layer
  Nanos transfer = 300 * kMicrosecond;    // of one call
  double noise = 0.03;                    // standard deviation of each piece of work, relative
  double tail_chance = 0, tail = 5;       // now and then a piece of work takes `tail` times as long, on any rank
  std::set<std::uint32_t> slow;           // ranks
  double slowdown = 1.5;                  // of their work
  std::uint32_t slow_from = 0;            // first step that they are slow in,
  std::uint32_t slow_until = 0xffffffff;  // and the first that they are not
  std::uint32_t ranks_per_host = 0;       // 0: hosts are not known
  Nanos clocks_apart = 0;                 // each host's clock is off by up to this much
  bool issue_only = false;                // hosts that wait for their calls, and only times of issue
  std::uint64_t seed = 1;

  std::uint32_t ranks() const { return data * tensor * pipeline; }
};

// Rank (d * pipeline + p) * tensor + t. Groups: "tp", "dp" of each set, and a barrier over "world" at the end of each
// step.
Evidence run_timed(const TimedJob& job);

}  // namespace ddx::testing
