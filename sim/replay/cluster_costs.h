// The costs of a described cluster: ranks 0, 1, 2 ... fill its nodes one after the other. NCCL's collectives take what
// sim/collectives/nccl_time.h says, those of gloo and MPI the closed forms of docs/algorithms.md on the slowest link
// between their members.
#pragma once

#include <memory>

#include "sim/cluster/cluster.h"
#include "sim/collectives/algorithm.h"
#include "sim/replay/timing.h"

namespace ddx::sim {

// `algorithm`: for every kind that it carries out, in place of the library's choice; null: none. Of NCCL what NCCL_ALGO
// would force; where it is not to be had for a call, what is taken in its place is in notes(). Throws Error where the
// cluster cannot be used, and of an algorithm that NCCL has not.
std::unique_ptr<CostModel> cluster_costs(const Cluster& cluster, const Algorithm* algorithm = nullptr);

// Where the members of a communicator sit. Ranks are below cluster.ranks().
Placement place(const Cluster& cluster, const std::vector<RankId>& members);

}  // namespace ddx::sim
