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

}  // namespace ddx::sim
