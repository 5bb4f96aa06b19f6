// The costs of a flat network: every rank has a port of its own, full duplex, to one switch that never holds it up.
// Collectives take the closed forms of docs/algorithms.md.
#pragma once

#include <memory>
#include <string>

#include "sim/cluster/cluster.h"
#include "sim/collectives/algorithm.h"
#include "sim/replay/timing.h"

namespace ddx::sim {

struct FlatOptions {
  LinkSpec port;                         // more than 0 bytes a second
  const Algorithm* algorithm = nullptr;  // for every kind that it carries out; absent: what `library` would take
  Library library = Library::nccl;
};

std::unique_ptr<CostModel> flat_costs(const FlatOptions& options);

// The work that a call is priced as: making groups is a meeting of all, no more.
Work priced_as(const Work& work);

// `forced` where it can carry the work out among so many ranks, else the library's own choice; nullptr: it has none.
const Algorithm* algorithm_for(const Work& work, std::uint32_t ranks, Library library, const Algorithm* forced);

}  // namespace ddx::sim
