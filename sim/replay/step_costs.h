// Collectives message by message (sim/collectives/step_simulation.h) instead of closed forms.
#pragma once

#include <memory>

#include "sim/cluster/cluster.h"
#include "sim/collectives/algorithm.h"
#include "sim/replay/timing.h"

namespace ddx::sim {

// `algorithm`: as for cluster_costs(), but for every library; at the links' rates. Without one, NCCL's calls on nodes
// go by the algorithm that NCCL chooses (nccl_choice.h) and are paced so that each alone takes what cluster_costs()
// says; where that algorithm has no steps, notes() say so. Of a flat cluster only the port counts. Throws Error.
std::unique_ptr<CostModel> step_costs(const Cluster& cluster, const Algorithm* algorithm = nullptr);

}  // namespace ddx::sim
