// Cluster files: a small JSON object, or a preset with how many nodes it has (docs/clusters.md has the format).
#pragma once

#include <string>
#include <string_view>

#include "sim/cluster/cluster.h"

namespace ddx::sim {

// "dgx-h100", "dgx-h100:32" (32 nodes), "flat:50GB/s,1us:16" (16 ranks; their number may be left out), or the path of a
// cluster file. Throws Error: file, key path, what was expected.
Cluster read_cluster(const std::string& path_or_preset);

// `name` stands in errors. Throws Error as above.
Cluster parse_cluster(std::string_view json, const std::string& name);

// "50GB/s,1us": every rank has one port of that rate to one switch that never holds it up, and a message takes that
// long besides. One rank a node; the number of nodes is the caller's to set. Throws Error.
Cluster flat(std::string_view rate_and_latency);

}  // namespace ddx::sim
