// How long the step of a recorded job would take on more ranks: the trace laid over each number of ranks, on a cluster
// of as many nodes as they need, and replayed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/replay/reference_replay.h"
#include "sim/replay/virtual_ranks.h"

namespace ddx::sim {

struct ScalingOptions {
  std::vector<std::uint32_t> ranks;  // ascending, multiples of the trace's ranks
  // The whole batch stays as it is: each rank computes the part of it that is left for it. Else each rank computes what
  // it was recorded to.
  bool strong = false;
  double compute_factor = 1;  // a computation's time over that in the trace
  RoleMap roles;
  // Costs on so many ranks. Throws Error where there is no such cluster.
  std::function<std::unique_ptr<CostModel>(std::uint32_t ranks)> costs;
};

struct ScalingRow {
  std::uint32_t ranks = 0;
  Picos time = 0;         // of the whole trace
  TimeShares shares;      // means over ranks, rounded down; what that leaves of `time` is unattributed
  double speedup = 1;     // work done in a second, over that of the first row
  double efficiency = 1;  // speedup over how many times as many ranks there are
};

struct ScalingTable {
  std::vector<ScalingRow> rows;
  std::string timed_by;  // on the most ranks
  // No call of the trace has members in two replicas of it: each runs as if it were alone, on however many ranks, and
  // speed-up and efficiency of the rows are those of nothing.
  bool untied = false;
  // Delays of the trace (sim::Recorded) are among what is idle or unattributed: nobody knows their cause.
  bool delays = false;
  Assumptions assumed;
};

// Throws Error where the trace is no basis for a prediction: no ranks or nothing that takes time, records that are cut,
// programs that do not run to their end (and why), calls without a price. RequestError: numbers of ranks that cannot
// be.
ScalingTable predict_scaling(const Trace& trace, const ScalingOptions& options);

}  // namespace ddx::sim
