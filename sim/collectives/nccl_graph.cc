#include "sim/collectives/nccl_graph.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace ddx::sim {
namespace {

constexpr std::uint32_t kMaxChannels = 32;
constexpr std::uint32_t kMostHeads = 24;  // of NVLS in an NVLink domain of many nodes
constexpr double kPcieShare = .77;        // of the rate of x16 that a ring gets: 24 of 31 GB/s, 48 of 63
constexpr double kMeshShare = .75;        // of an xGMI link

double gigabytes(const LinkSpec& link) { return static_cast<double>(link.bytes_per_second) / 1e9; }

// The largest of `speeds` that is at most `most`; the least of them where none is.
double speed_within(std::span<const double> speeds, double most) {
  for (const double speed : speeds) {
    if (speed <= most) return speed;
  }
  return std::min(speeds.back(), most);
}

// GB/s of a GPU's NVLinks, as NCCL counts them.
double switched_rate(const Cluster& cluster, NcclRow row) {
  return gigabytes(cluster.local) / nccl_link_peak(row) * nccl_link_speed(row);
}

// The speed and number of channels that fill the links best, the fastest first; then each channel is split in two, as
// NCCL does with fast ones.
NcclGraph switched_ring(const Cluster& cluster, NcclRow row) {
  const double rate = switched_rate(cluster, row);
  NcclGraph best;
  for (const double speed : nccl_intra_speeds(row)) {
    const auto channels = static_cast<std::uint32_t>(std::min(rate / speed, double{kMaxChannels} / 2));
    if (channels * speed > best.channels * best.intra) best = {channels, speed, 0};
  }
  return {best.channels * 2, best.intra / 2, 0};
}

// Rings, both ways round, among the first `ranks` GPUs of a DGX-1's cube mesh, whose GPUs have one or two links to four
// others. The fifth GPU has links to one of the first five only, and is reached through that one.
NcclGraph cube_mesh_ring(std::uint32_t ranks) {
  constexpr std::array<std::uint32_t, 9> kRings{0, 0, 1, 2, 4, 2, 2, 4, 6};
  return {kRings.at(std::min<std::uint32_t>(ranks, 8)), 20, 0};
}

NcclGraph local_ring(const Cluster& cluster, const NcclShape& shape, NcclRow row) {
  switch (cluster.wiring) {
    case Wiring::switched: return switched_ring(cluster, row);
    case Wiring::cube_mesh: return cube_mesh_ring(shape.per_node);
    // A link to each other; fewer ranks have the links among themselves.
    case Wiring::mesh: return {shape.per_node - 1, mesh_link(cluster) * kMeshShare, 0};
    case Wiring::pcie: return {2, gigabytes(cluster.local) * kPcieShare / 2, 0};
  }
  return {};
}

std::uint32_t nics_used(const Cluster& cluster, const NcclShape& shape) {
  const double hosts = std::max(1., double(shape.per_node) / cluster.ranks_per_node);
  const double share = std::min(1., double(shape.per_node) / cluster.ranks_per_node);
  return std::max(1U, static_cast<std::uint32_t>(std::lround(cluster.nics_per_node * share * std::floor(hosts))));
}

NcclGraph nvls_graph(const Cluster& cluster, const NcclShape& shape, NcclRow row) {
  const std::uint32_t heads = std::min(shape.per_node, kMostHeads);
  if (!cluster.nvls || heads < 2) return {};
  const double intra = speed_within(nccl_intra_speeds(row), switched_rate(cluster, row) / (heads + 1));
  const double inter = speed_within(nccl_inter_speeds(row), node_line_rate(cluster, shape) / heads);
  return {heads, intra, inter};
}

}  // namespace

NcclShape nccl_shape(const Cluster& cluster, const Placement& placement) {
  NcclShape shape;
  shape.ranks = std::max(1U, placement.ranks);
  shape.nodes = std::max(1U, (placement.nodes + cluster.domain_nodes - 1) / cluster.domain_nodes);
  shape.per_node = std::max(1U, shape.ranks / shape.nodes);
  return shape;
}

double mesh_link(const Cluster& cluster) { return gigabytes(cluster.local) / std::max(1U, cluster.ranks_per_node - 1); }

double node_line_rate(const Cluster& cluster, const NcclShape& shape) {
  return gigabytes(cluster.network) * nics_used(cluster, shape);
}

NcclGraphs nccl_graphs(const Cluster& cluster, const NcclShape& shape) {
  const NcclRow row = nccl_row(cluster.gpu.arch);
  NcclGraphs graphs;
  graphs.nvls = nvls_graph(cluster, shape, row);
  if (shape.nodes == 1) {
    graphs.ring = graphs.tree = local_ring(cluster, shape, row);
    return graphs;
  }
  // One ring a NIC. A tree's channels may be up to twice as fast within nodes.
  const std::uint32_t channels = std::min(nics_used(cluster, shape), kMaxChannels);
  const double inter = speed_within(nccl_inter_speeds(row), node_line_rate(cluster, shape) / channels);
  graphs.ring = graphs.tree = {channels, inter, inter};
  if (shape.per_node > 1) {
    const NcclGraph local = local_ring(cluster, shape, row);
    graphs.tree.intra = std::max(inter, std::min(2 * inter, local.channels * local.intra / channels));
  }
  return graphs;
}

}  // namespace ddx::sim
