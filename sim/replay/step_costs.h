// Collectives message by message (sim/collectives/step_simulation.h) instead of closed forms.
#pragma once

#include <memory>

#include "sim/cluster/cluster.h"
#include "sim/collectives/algorithm.h"
#include "sim/replay/timing.h"

namespace ddx::sim {

// `algorithm`: as for cluster_costs(), but for every library. Of a flat cluster only the port counts. Throws Error.
std::unique_ptr<CostModel> step_costs(const Cluster& cluster, const Algorithm* algorithm = nullptr);

}  // namespace ddx::sim
