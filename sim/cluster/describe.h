// A cluster in words, and as the file that reads as the same cluster.
#pragma once

#include <cstdint>
#include <string>

#include "sim/cluster/cluster.h"

namespace ddx::sim {

// A few lines for people, without a line break at the end.
std::string describe(const Cluster& cluster);
// Why nothing can be told of so many ranks of it, however many nodes it has: they need several, and there is no figure
// for the network between these; and what to add to its file. Empty: there is, or they do not.
std::string lacks_network(const Cluster& cluster, std::uint64_t ranks);
// JSON: parse_cluster() gives the same cluster again.
std::string cluster_json(const Cluster& cluster);

}  // namespace ddx::sim
