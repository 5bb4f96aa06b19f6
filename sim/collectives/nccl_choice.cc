#include "sim/collectives/nccl_choice.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "sim/collectives/nccl_graph.h"

namespace ddx::sim {
namespace {

constexpr double kFp8RingPenalty = 1e6;  // us: pushes FP8 reductions of many ranks away from rings

// What all candidates of one call share.
struct Call {
  const Cluster& cluster;
  const Work& work;
  const NcclForced& forced;
  NcclShape shape;
  NcclGraphs graphs;
  NcclRow row;
};

bool gathers(const Call& call) {
  return call.work.kind == OpKind::all_gather || call.work.kind == OpKind::reduce_scatter;
}
bool reduces_all(const Call& call) { return call.work.kind == OpKind::all_reduce; }

// Transfers of one rank's share, in sequence.
double steps(const Call& call) {
  const double ranks = call.shape.ranks;
  if (reduces_all(call)) return 2 * (ranks - 1);
  return gathers(call) ? ranks - 1 : ranks;
}

double floor_log2(std::uint32_t value) { return static_cast<double>(std::bit_width(value) - 1); }

NcclGraph graph_of(const Call& call, NcclAlgorithm algorithm) {
  NcclGraph graph;
  switch (algorithm) {
    case NcclAlgorithm::ring:
    case NcclAlgorithm::pat: graph = call.graphs.ring; break;
    case NcclAlgorithm::tree: graph = call.graphs.tree; break;
    case NcclAlgorithm::collnet_direct:
    case NcclAlgorithm::collnet_chain:
      // In nodes whose switches do not reduce, chains like a tree's.
      graph = call.graphs.nvls.channels > 0 ? call.graphs.nvls : call.graphs.tree;
      break;
    default: graph = call.graphs.nvls; break;
  }
  return graph;
}

bool is_ll128_possible(const Call& call) {
  const GpuArch arch = call.cluster.gpu.arch;
  return arch != GpuArch::none && arch != GpuArch::cdna3 && call.cluster.wiring != Wiring::pcie;
}

// Empty: may be taken.
std::string_view refusal(const Call& call, NcclAlgorithm algorithm, NcclProtocol protocol) {
  const bool collnet = algorithm == NcclAlgorithm::collnet_direct || algorithm == NcclAlgorithm::collnet_chain;
  const bool nvls = algorithm == NcclAlgorithm::nvls || algorithm == NcclAlgorithm::nvls_tree;
  if (call.forced.algorithm && *call.forced.algorithm != algorithm) return "another algorithm is set";
  if (call.forced.protocol && *call.forced.protocol != protocol) return "another protocol is set";
  if (algorithm != NcclAlgorithm::ring && !reduces_all(call) && !gathers(call)) return "rings only";
  if (protocol != NcclProtocol::simple && algorithm != NcclAlgorithm::ring && algorithm != NcclAlgorithm::tree) {
    return "Simple only";
  }
  if (protocol == NcclProtocol::ll128 && !is_ll128_possible(call)) return "needs NVLink and NVIDIA's GPUs";
  if ((algorithm == NcclAlgorithm::tree || algorithm == NcclAlgorithm::nvls_tree ||
       algorithm == NcclAlgorithm::collnet_chain) &&
      !reduces_all(call)) {
    return "all_reduce only";
  }
  if (algorithm == NcclAlgorithm::pat && !gathers(call)) return "all_gather and reduce_scatter only";
  if (algorithm == NcclAlgorithm::pat && (call.shape.per_node > 1 || call.shape.nodes == 1))
    return "one rank a node only";
  if (collnet && (!call.cluster.sharp || call.shape.nodes == 1)) return "the network does not reduce";
  if (nvls && (!call.forced.nvls || call.graphs.nvls.channels < 2)) return "no switch that reduces";
  if (algorithm == NcclAlgorithm::nvls_tree && call.shape.nodes == 1) return "several nodes only";
  if (algorithm == NcclAlgorithm::nvls && call.shape.nodes > 1 && !call.cluster.sharp)
    return "the network does not reduce";
  return "";
}

// GB/s of all channels of NVLS and NVLSTree.
double nvls_bus(const Call& call, const NcclGraph& graph, bool tree) {
  const double channels = graph.channels;
  double intra = graph.intra * nccl_nvls_efficiency(call.row) * (channels - 1) / channels;
  intra *= reduces_all(call) ? 2 : double(call.shape.per_node - 1) / call.shape.per_node;
  if (call.shape.nodes == 1) return channels * intra;
  double speed = std::min(intra, graph.inter * (tree && call.shape.nodes <= 2 ? 2 : 1));
  if (tree) speed = std::min(speed, nccl_nvls_tree_channel(call.row, call.shape.nodes));
  return channels * speed;
}

double tree_bus(const Call& call, const NcclGraph& graph, double bus, NcclProtocol protocol) {
  const std::uint32_t nodes = call.shape.nodes;
  double speed = std::min(.92 * bus, graph.channels * nccl_tree_channel(call.row, nodes));
  if (protocol == NcclProtocol::ll) return std::min(speed / 3.8, nccl_ll_max(call.row, nodes));
  if (protocol == NcclProtocol::ll128) {
    speed *= nodes == 1 ? 7. / 9 : 120. / 128;
    return std::min(speed, graph.channels * nccl_tree_ll128_channel(call.row, nodes));
  }
  return speed;
}

double ring_bus(const Call& call, const NcclGraph& graph, double bus, NcclProtocol protocol) {
  if (protocol == NcclProtocol::ll) return std::min(nccl_ll_max(call.row, call.shape.nodes), bus / 2);
  if (protocol == NcclProtocol::ll128) return std::min(.92 * bus, graph.channels * nccl_ring_ll128_channel(call.row));
  return bus;
}

// GB/s of the algorithm: bytes of the work over time.
double bandwidth(const Call& call, NcclAlgorithm algorithm, NcclProtocol protocol) {
  const NcclGraph graph = graph_of(call, algorithm);
  const NcclShape& shape = call.shape;
  const bool collnet = algorithm == NcclAlgorithm::collnet_direct || algorithm == NcclAlgorithm::collnet_chain;
  const double bus = graph.channels * (shape.nodes <= 2 || collnet ? graph.intra : graph.inter);
  const double per_step = shape.ranks / steps(call);
  switch (algorithm) {
    case NcclAlgorithm::ring: return ring_bus(call, graph, bus, protocol) * per_step;
    case NcclAlgorithm::tree: return tree_bus(call, graph, bus, protocol) / 2;
    case NcclAlgorithm::pat: return bus * .75;
    case NcclAlgorithm::nvls:
    case NcclAlgorithm::nvls_tree: {
      const double all = nvls_bus(call, graph, algorithm == NcclAlgorithm::nvls_tree);
      return reduces_all(call) ? all * per_step : all;
    }
    case NcclAlgorithm::collnet_chain: return bus / 2;
    case NcclAlgorithm::collnet_direct: {
      if (gathers(call)) return shape.per_node * std::min(graph.intra, .9 * graph.inter);
      const double share = double(shape.per_node) / std::max(1U, graph.channels);
      const bool late = call.row == NcclRow::hopper || call.row == NcclRow::blackwell;
      return bus / ((share + 1) / 2) * (late ? .85 : 1) / 2;
    }
  }
  return 0;
}

// InfiniBand and RoCE say nothing of their latency to NCCL; the plugins of clouds do.
double nic_latency(const Cluster& cluster) {
  const bool silent = cluster.fabric == Fabric::infiniband || cluster.fabric == Fabric::roce;
  return silent ? 0 : static_cast<double>(cluster.network.latency) / 1e6;
}

double ring_latency(const Call& call, NcclProtocol protocol, double hop, double net, double post) {
  const NcclShape& shape = call.shape;
  const double base = nccl_base_latency(NcclAlgorithm::ring, protocol);
  if (!reduces_all(call) && !gathers(call)) return base + (shape.nodes > 1 ? net : hop);
  const double between = shape.nodes == 1 ? 0 : (reduces_all(call) ? 2. : 1.) * (shape.nodes - 1);
  double latency = base + (steps(call) - between) * std::max(hop, post) + between * net;
  const double chunk =
      static_cast<double>(call.work.bytes) / (std::max(1U, call.graphs.ring.channels) * double(shape.ranks));
  if (protocol == NcclProtocol::simple && shape.nodes > 1 && reduces_all(call) && chunk >= 64) {
    latency *= call.row == NcclRow::volta ? 1.9 : 1.4;
  }
  return latency;
}

double latency(const Call& call, NcclAlgorithm algorithm, NcclProtocol protocol) {
  const NcclShape& shape = call.shape;
  const NcclHop link = call.cluster.wiring == Wiring::pcie ? NcclHop::pci : NcclHop::nvlink;
  const double hop = nccl_hop_latency(link, algorithm, protocol);
  const NcclAlgorithm of_net =
      shape.per_node == 1 && algorithm == NcclAlgorithm::ring ? NcclAlgorithm::tree : algorithm;
  const bool simple = protocol == NcclProtocol::simple;
  const double net = nccl_hop_latency(NcclHop::net, of_net, protocol) + nic_latency(call.cluster) * (simple ? 2 : 1);
  const double post = shape.nodes == 1 ? 0 : (call.row == NcclRow::ampere ? 2. : 1.) * (simple ? 3 : 1);
  const double base = nccl_base_latency(algorithm, protocol);
  const double depth = floor_log2(shape.nodes);
  switch (algorithm) {
    case NcclAlgorithm::ring: return ring_latency(call, protocol, hop, net, post);
    case NcclAlgorithm::tree: return base + 2 * ((shape.per_node - 1) * hop + depth * net);
    case NcclAlgorithm::nvls: return hop + (shape.nodes > 1 ? net : 0);
    case NcclAlgorithm::nvls_tree: return hop + 2 * depth * net;
    case NcclAlgorithm::collnet_direct:
      return 2 * (std::min(1U, shape.per_node - 1) * hop + .4 * (shape.per_node - 1)) + net;
    case NcclAlgorithm::collnet_chain: return 2 * (shape.per_node - 1) * hop + net;
    case NcclAlgorithm::pat: return base + depth * net / 3.5 + 2.8 * shape.ranks;
  }
  return 0;
}

NcclCandidate candidate(const Call& call, NcclAlgorithm algorithm, NcclProtocol protocol) {
  NcclCandidate result{algorithm, protocol, 0, 0, 0, refusal(call, algorithm, protocol)};
  if (!result.enabled()) return result;
  result.bandwidth = bandwidth(call, algorithm, protocol);
  if (!(result.bandwidth > 0)) {
    result.refusal = "no channel";
    return result;
  }
  result.latency_us = latency(call, algorithm, protocol);
  double factor = 1;
  const bool tree =
      algorithm == NcclAlgorithm::tree || (algorithm == NcclAlgorithm::nvls_tree && call.row == NcclRow::blackwell);
  if (tree) factor = nccl_tree_factor(protocol, call.work.bytes);
  result.time_us = result.latency_us + static_cast<double>(call.work.bytes) / (1000 * result.bandwidth * factor);
  const bool fp8 = call.work.type == DataType::f8e4m3 || call.work.type == DataType::f8e5m2;
  const bool reduces =
      reduces_all(call) || call.work.kind == OpKind::reduce_scatter || call.work.kind == OpKind::reduce;
  if (fp8 && reduces && algorithm == NcclAlgorithm::ring && call.shape.ranks > 8) result.time_us += kFp8RingPenalty;
  return result;
}

}  // namespace

std::vector<NcclCandidate> nccl_candidates(const Cluster& cluster, const Placement& placement, const Work& work,
                                           const NcclForced& forced) {
  switch (work.kind) {
    case OpKind::all_reduce:
    case OpKind::all_gather:
    case OpKind::reduce_scatter:
    case OpKind::broadcast:
    case OpKind::reduce: break;
    default: return {};
  }
  const NcclShape shape = nccl_shape(cluster, placement);
  if (shape.ranks < 2) return {};
  const Call call{cluster, work, forced, shape, nccl_graphs(cluster, shape), nccl_row(cluster.gpu.arch)};
  std::vector<NcclCandidate> candidates;
  for (std::size_t a = 0; a < kNcclAlgorithms; ++a) {
    for (std::size_t p = 0; p < kNcclProtocols; ++p) {
      candidates.push_back(candidate(call, static_cast<NcclAlgorithm>(a), static_cast<NcclProtocol>(p)));
    }
  }
  return candidates;
}

std::optional<NcclCandidate> nccl_choice(const Cluster& cluster, const Placement& placement, const Work& work,
                                         const NcclForced& forced) {
  std::optional<NcclCandidate> best;
  for (const NcclCandidate& candidate : nccl_candidates(cluster, placement, work, forced)) {
    if (candidate.enabled() && (!best || candidate.time_us < best->time_us)) best = candidate;
  }
  return best;
}

}  // namespace ddx::sim
