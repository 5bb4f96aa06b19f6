// A cluster in words, and as the file that reads as the same cluster.
#pragma once

#include <string>

#include "sim/cluster/cluster.h"

namespace ddx::sim {

// A few lines for people, without a line break at the end.
std::string describe(const Cluster& cluster);
// JSON: parse_cluster() gives the same cluster again.
std::string cluster_json(const Cluster& cluster);

}  // namespace ddx::sim
