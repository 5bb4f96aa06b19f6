// NcclGraph: what NCCL's topology search comes to on a described cluster. Only the outcome is modelled, not the search.
#pragma once

#include <cstdint>

#include "sim/cluster/cluster.h"
#include "sim/collectives/nccl_constants.h"
#include "sim/collectives/work.h"

namespace ddx::sim {

// The members of a communicator as NCCL counts them: hosts of one NVLink domain are one node.
struct NcclShape {
  std::uint32_t ranks = 1;
  std::uint32_t nodes = 1;     // NVLink domains
  std::uint32_t per_node = 1;  // ranks of each, rounded down; at least 1
};
NcclShape nccl_shape(const Cluster& cluster, const Placement& placement);

struct NcclGraph {
  std::uint32_t channels = 0;  // 0: there is none
  double intra = 0;            // GB/s of one channel within nodes
  double inter = 0;            // and between them
};

struct NcclGraphs {
  NcclGraph ring;
  NcclGraph tree;
  NcclGraph nvls;  // also CollNet's; one channel a head
};
NcclGraphs nccl_graphs(const Cluster& cluster, const NcclShape& shape);

// GB/s of all NICs that the ranks of one node have, at line rate: their share of the node's.
double node_line_rate(const Cluster& cluster, const NcclShape& shape);

// GB/s of one link of a mesh: a rank has one to each other of its node.
double mesh_link(const Cluster& cluster);

}  // namespace ddx::sim
