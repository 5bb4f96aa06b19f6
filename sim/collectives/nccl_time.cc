#include "sim/collectives/nccl_time.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "sim/cluster/hardware.h"

namespace ddx::sim {
namespace {

constexpr double kMebi = 1 << 20;
constexpr double kLeastChosen = 64 << 10, kMostChosen = 256 << 20;  // bytes between which NCCL's choice changes
constexpr double kNoLimit = 1e9;                                    // GB/s
constexpr double kDomainKnee = 512;                                 // MiB
constexpr double kMeshCap = .85;  // of a mesh's links, over several nodes, where every NIC has a ring of its own
// GB/s of a GPU's link to its host, which a NIC elsewhere than beside it goes through: PCIe 3, 4, 5 x16 as NCCL gets
// it.
constexpr PerArch kHostLink{12, 24, 48, 48, 48};

double mebis(const NcclCall& call) { return static_cast<double>(call.work.bytes) / kMebi; }

// Bytes over the bus's rate in GB/s, in us.
double transfer(const NcclCall& call, double bus) {
  return static_cast<double>(call.work.bytes) * bus_factor(call.work.kind, call.shape.ranks) / (bus * 1e3);
}

// Linear up to the knee, where it is 1; then a power.
double fill(double mebis, double knee, double power) {
  const double x = mebis / knee;
  return x < 1 ? x : std::pow(x, power);
}

bool is_rooted_ring(OpKind kind) { return kind == OpKind::broadcast || kind == OpKind::reduce; }

double ring_fill(const NcclCall& call, const NcclTimes& times, double at_two_ranks) {
  const double kind = is_rooted_ring(call.work.kind) ? times.rooted_fill : 1;
  return kind * at_two_ranks * std::pow(call.shape.ranks - 1, times.ring_ranks_power) *
         fill(mebis(call), 1, times.ring_power);
}

double local_ring_bus(const NcclCall& call, const NcclTimes& times) {
  return call.inner_ring * times.ring_share.at(call.arch);
}

// us until the first byte moves, with `messages` within the node one after the other.
double local_launch(const NcclCall& call, const NcclTimes& times, double messages) {
  return std::max(0., times.launch.at(call.arch) + messages * call.more_local);
}

NcclMicros local_ring(const NcclCall& call, const NcclTimes& times) {
  const double steps = (call.work.kind == OpKind::all_reduce ? 2. : 1.) * (call.shape.ranks - 1);
  const double loop = is_rooted_ring(call.work.kind) ? 0 : times.ring_loop.at(call.arch) / steps;
  double moving =
      transfer(call, local_ring_bus(call, times)) * (1 + loop) + ring_fill(call, times, times.ring_fill.at(call.arch));
  if (call.forced.channels) {
    const double channel = times.channel.at(static_cast<std::size_t>(call.choice->protocol));
    moving = std::max(moving, transfer(call, channel * std::max(1U, *call.forced.channels)));
  }
  return {local_launch(call, times, steps), moving};
}

// `ranks`: of one NVLink domain.
double nvls_fill(const NcclCall& call, const NcclTimes& times, std::uint32_t ranks) {
  return times.nvls_fill.at(call.arch) * std::pow(ranks / 8., times.nvls_ranks_power) *
         fill(mebis(call), 1, times.nvls_power);
}

NcclMicros local_nvls(const NcclCall& call, const NcclTimes& times) {
  const double share = times.nvls_share.at(call.arch) * (1 - times.nvls_heads / call.shape.ranks);
  const double bus =
      std::min(share * bus_factor(call.work.kind, call.shape.ranks), times.nvls_cap.at(call.arch)) * call.local_rate;
  return {local_launch(call, times, 2), transfer(call, bus) + nvls_fill(call, times, call.shape.ranks)};
}

NcclMicros local_tree(const NcclCall& call, const NcclTimes& times) {
  return {local_launch(call, times, 2 * (call.shape.ranks - 1)),
          transfer(call, local_ring_bus(call, times) * times.tree_share) +
              times.tree_fill * fill(mebis(call), 1, times.ring_power)};
}

// GB/s that the ranks of one node get out of it, where the NICs reach `share` of their rate.
double node_rate(const NcclCall& call, const PerFabric& share) {
  return std::min(call.line_rate * share.at(call.fabric), call.shape.per_node * kHostLink.at(call.arch));
}

// Of the links within nodes, where rings go through several.
double inner_ring_bus(const NcclCall& call, const NcclTimes& times) {
  if (call.shape.per_node == 1) return kNoLimit;
  return call.wiring == Wiring::mesh ? call.local_rate * kMeshCap : local_ring_bus(call, times);
}

// us of `messages` between nodes, one after the other, `over_spine` of them between leaves.
double hops(const NcclCall& call, const NcclTimes& times, double messages, double over_spine) {
  return messages * std::max(0., times.hop.at(call.fabric) + call.more_network) + over_spine * call.spine;
}

// Also where trees join the nodes, unless these are set to run without.
bool uses_nvls(const NcclCall& call) {
  return call.graphs.nvls.channels >= 2 && call.forced.nvls && call.forced.algorithm != NcclAlgorithm::tree;
}

// Of an all_reduce within a node, there and back: one by way of a switch that reduces, else along a chain.
double inner_messages(const NcclCall& call) {
  if (call.shape.per_node == 1) return 0;
  return 2 * (uses_nvls(call) ? 1. : call.shape.per_node - 1.);
}

// The network's switches reduce: every byte leaves a node once and comes back once, and the switches are one hop away.
bool reduced_by_network(const NcclCall& call) {
  if (!call.choice || call.shape.nodes == 1) return false;
  const NcclAlgorithm algorithm = call.choice->algorithm;
  return algorithm == NcclAlgorithm::collnet_direct || algorithm == NcclAlgorithm::collnet_chain ||
         algorithm == NcclAlgorithm::nvls;
}

NcclMicros network_reduction(const NcclCall& call, const NcclTimes& times) {
  const double node = node_rate(call, times.nic_share) * bus_factor(call.work.kind, call.shape.ranks);
  const double inner = uses_nvls(call) ? times.nvls_cap.at(call.arch) * call.local_rate : inner_ring_bus(call, times);
  const double wait = local_launch(call, times, inner_messages(call)) + hops(call, times, 2, call.leaves > 1 ? 2 : 0);
  return {wait, transfer(call, std::min(node, inner)) +
                    times.net_fill.at(call.fabric) * fill(mebis(call), 1, times.net_power)};
}

// Bus bandwidth of an all_reduce over several nodes. Between two, a tree sends every byte once each way; among more,
// its inner nodes send and receive twice.
double between_bus(const NcclCall& call, const NcclTimes& times) {
  const double node = node_rate(call, times.nic_share);
  const double factor = bus_factor(OpKind::all_reduce, call.shape.ranks);
  const double tree = call.shape.nodes == 2 ? node * factor : node;
  if (uses_nvls(call)) {
    return std::min(tree, times.between_cap.at(call.arch) * call.local_rate);
  }
  if (call.shape.per_node == 1) return tree;
  const double trees = std::min(tree, call.inner_trees / 2 * factor);
  const double ring = std::min(node, inner_ring_bus(call, times));
  return call.forced.algorithm == NcclAlgorithm::tree ? trees : std::max(ring, trees);
}

NcclMicros between_all_reduce(const NcclCall& call, const NcclTimes& times) {
  const double depth = std::log2(call.shape.nodes);
  const double wait =
      local_launch(call, times, inner_messages(call)) + hops(call, times, 2 * depth, 2 * std::log2(call.leaves));
  double moving = transfer(call, between_bus(call, times));
  if (uses_nvls(call)) moving += nvls_fill(call, times, call.shape.per_node);
  if (call.domains) {
    return {wait, moving + depth * times.domain_fill * fill(mebis(call), kDomainKnee, times.domain_power)};
  }
  const auto fabric = static_cast<Fabric>(call.fabric);
  const bool slow = fabric == Fabric::efa1 || fabric == Fabric::tcpxo || fabric == Fabric::tcp;
  const double filling =
      slow ? fill(mebis(call), times.slow_knee, times.slow_power) : fill(mebis(call), 1, times.net_power);
  moving += depth * times.net_fill.at(call.fabric) * filling;
  // EFA's plugin brings a tuner along, which takes what is best.
  const bool best = call.forced.algorithm == NcclAlgorithm::nvls_tree || call.shape.nodes == 2 || !uses_nvls(call) ||
                    fabric == Fabric::efa;
  return {wait, best ? moving : moving / times.unforced_share};
}

NcclMicros between_ring(const NcclCall& call, const NcclTimes& times) {
  const bool reduces_all = call.work.kind == OpKind::all_reduce;
  const double rounds = reduces_all ? 2 : 1;
  const double inner = rounds * (call.shape.ranks - call.shape.nodes);
  const double wait =
      local_launch(call, times, inner) + hops(call, times, rounds * (call.shape.nodes - 1), rounds * (call.leaves - 1));
  const double node = node_rate(call, reduces_all ? times.nic_share : times.ring_nic_share);
  return {wait,
          transfer(call, std::min(node, inner_ring_bus(call, times))) + ring_fill(call, times, times.ring_net_fill)};
}

// all_to_all, gather, scatter, send: grouped sends.
NcclMicros grouped_sends(const NcclCall& call, const NcclTimes& times) {
  const bool all = call.work.kind == OpKind::all_to_all;
  double rate = inner_ring_bus(call, times);
  if (call.shape.nodes == 1 && call.wiring == Wiring::mesh) {
    rate = call.pair_rate * kMeshCap * (call.work.kind == OpKind::send ? 1 : call.shape.per_node - 1);
  }
  rate *= times.p2p_share;
  double wait = local_launch(call, times, call.shape.nodes == 1 ? 1 : 0) + (all ? times.p2p_launch : 0);
  if (call.shape.nodes > 1) {
    wait += hops(call, times, 1, call.leaves > 1 ? 1 : 0);
    // Of an all_to_all each rank has its part of the node's NICs; a single sender or root has the NIC beside it. Only
    // what goes to other nodes takes it: with N of them the bus is N/(N-1) times as fast (NVIDIA/nccl-tests#130).
    const double nic = node_rate(call, times.ring_nic_share) / call.shape.per_node * call.fullest;
    rate = std::min(rate, call.work.kind == OpKind::send ? nic : nic * (call.shape.ranks - 1) / call.apart);
  }
  return {wait, transfer(call, rate) + (all ? ring_fill(call, times, times.ring_fill.at(call.arch)) : 0)};
}

NcclMicros unbounded(const NcclCall& call, const NcclTimes& times) {
  if (!call.choice) return grouped_sends(call, times);
  if (reduced_by_network(call)) return network_reduction(call, times);
  if (call.shape.nodes > 1) {
    const bool ring = call.work.kind != OpKind::all_reduce || call.forced.algorithm == NcclAlgorithm::ring;
    return ring ? between_ring(call, times) : between_all_reduce(call, times);
  }
  if (call.choice->algorithm == NcclAlgorithm::nvls) return local_nvls(call, times);
  return call.choice->algorithm == NcclAlgorithm::tree ? local_tree(call, times) : local_ring(call, times);
}

Picos to_picos(double micros) {
  const double picos = micros * 1e6;
  return picos >= static_cast<double>(kForever) ? kForever : static_cast<Picos>(std::llround(picos));
}

Work priced(const Work& work) {
  Work result = work;
  if (work.kind == OpKind::barrier) {
    result.kind = OpKind::all_reduce;
    result.bytes = 4;
  }
  if (work.kind == OpKind::recv) result.kind = OpKind::send;
  return result;
}

// Shares of the bytes that one rank must send (or receive) within its node, and one node to the others.
struct Share {
  double rank = 0;
  double node = 0;
};

Share least_share(const Work& work, const NcclShape& shape, const Cluster& cluster) {
  const double n = shape.ranks;
  const double nodes = shape.nodes;
  const double others = (n - 1) / n;
  const double other_nodes = (nodes - 1) / nodes;
  switch (work.kind) {
    case OpKind::all_reduce:
      return {cluster.nvls || (cluster.sharp && nodes > 1) ? 1 : 2 * others,
              cluster.sharp && nodes > 1 ? 1 : 2 * other_nodes};
    case OpKind::all_gather:
    case OpKind::reduce_scatter: return {others, other_nodes};
    case OpKind::all_to_all: return {others, shape.per_node * other_nodes};
    case OpKind::gather:
    case OpKind::scatter: return {others, other_nodes};
    default: return {1, nodes > 1 ? 1. : 0.};
  }
}

}  // namespace

double bus_factor(OpKind kind, std::uint32_t ranks) {
  const double others = ranks < 2 ? 0 : (double{1} * ranks - 1) / ranks;
  switch (kind) {
    case OpKind::all_reduce: return 2 * others;
    case OpKind::all_gather:
    case OpKind::reduce_scatter:
    case OpKind::all_to_all:
    case OpKind::gather:
    case OpKind::scatter: return others;
    default: return 1;
  }
}

namespace {

double bound_micros(const Cluster& cluster, const NcclShape& shape, const Work& work) {
  if (shape.ranks < 2) return 0;
  const Share share = least_share(work, shape, cluster);
  const double bytes = static_cast<double>(work.bytes) / 1e3;
  const double local = shape.per_node > 1 ? static_cast<double>(cluster.local.bytes_per_second) / 1e9 : 0;
  if (shape.nodes == 1) return bytes * share.rank / local;
  const double line = node_line_rate(cluster, shape);
  return bytes * std::max(share.rank / (local + line / shape.per_node), share.node / line);
}

// What NCCL chooses for larger sizes, one an algorithm.
std::vector<NcclCandidate> later_choices(const Cluster& cluster, const Placement& placement, const NcclCall& call) {
  std::vector<NcclCandidate> later;
  Work larger = call.work;
  for (double bytes = kLeastChosen; bytes <= kMostChosen; bytes *= std::sqrt(2.)) {
    larger.bytes = static_cast<std::uint64_t>(bytes);
    if (larger.bytes <= call.work.bytes) continue;
    const auto choice = nccl_choice(cluster, placement, larger, call.forced);
    if (!choice) continue;
    const auto same = [&](const NcclCandidate& known) { return known.algorithm == choice->algorithm; };
    if (!same(*call.choice) && std::none_of(later.begin(), later.end(), same)) later.push_back(*choice);
  }
  return later;
}

// Of NICs that the ranks of the fullest node have each, over what they have in the mean.
double fullest_share(const Cluster& cluster, const Placement& placement, const NcclShape& shape) {
  if (shape.nodes == 1 || cluster.domain_nodes > 1 || placement.most_per_node <= shape.per_node) return 1;
  const std::uint32_t most = placement.most_per_node;
  return std::min(1.,
                  node_line_rate(cluster, {most, 1, most}) / most * shape.per_node / node_line_rate(cluster, shape));
}

}  // namespace

Picos nccl_port_bound(const Cluster& cluster, const Placement& placement, const Work& work) {
  return to_picos(bound_micros(cluster, nccl_shape(cluster, placement), priced(work)));
}

NcclCall nccl_call(const Cluster& cluster, const Placement& placement, const Work& work, const NcclForced& forced) {
  DDX_CHECK(cluster.gpu.arch != GpuArch::none && !cluster.flat);
  NcclCall call;
  call.work = priced(work);
  call.forced = forced;
  call.shape = nccl_shape(cluster, placement);
  call.choice = nccl_choice(cluster, placement, call.work, forced);
  if (!call.choice) call.choice = nccl_choice(cluster, placement, call.work);  // what is forced is not to be had here
  if (call.choice && !forced.algorithm && !forced.protocol) call.later = later_choices(cluster, placement, call);
  call.graphs = nccl_graphs(cluster, call.shape);
  call.arch = static_cast<std::size_t>(cluster.gpu.arch) - 1;
  call.fabric = static_cast<std::size_t>(cluster.fabric);
  call.wiring = cluster.wiring;
  call.domains = cluster.domain_nodes > 1;
  call.local_rate = static_cast<double>(cluster.local.bytes_per_second) / 1e9;
  call.pair_rate = cluster.wiring == Wiring::mesh ? mesh_link(cluster) : call.local_rate;
  call.leaves = std::max(1U, placement.leaves);
  const auto micros = [](Picos time) { return static_cast<double>(time) / 1e6; };
  call.more_local = micros(cluster.local.latency) - micros(local_latency(cluster.wiring));
  call.more_network = micros(cluster.network.latency) - micros(network_latency(cluster.fabric));
  call.spine = micros(cluster.spine_latency);
  call.line_rate = node_line_rate(cluster, call.shape);
  const std::uint32_t fewest = placement.fewest_per_domain > 0 ? placement.fewest_per_domain : call.shape.per_node;
  call.apart = std::max(1., double{1} * call.shape.ranks - fewest);
  call.fullest = fullest_share(cluster, placement, call.shape);
  const NcclShape one{call.shape.per_node, 1, call.shape.per_node};
  const NcclGraph ring = nccl_graphs(cluster, one).ring;
  call.inner_ring = ring.channels * ring.intra;
  call.inner_trees = call.graphs.tree.channels * nccl_tree_channel(nccl_row(cluster.gpu.arch), call.shape.nodes);
  call.bound = bound_micros(cluster, call.shape, call.work);
  Cluster plain = cluster;
  plain.nvls = plain.sharp = false;
  call.plain_bound = bound_micros(plain, call.shape, call.work);
  return call;
}

NcclMicros nccl_micros(const NcclCall& call, const NcclTimes& times) {
  if (call.shape.ranks < 2) return {times.launch.at(call.arch), 0};
  NcclMicros time = unbounded(call, times);
  NcclCall other = call;
  for (const NcclCandidate& later : call.later) {
    other.choice = later;
    NcclMicros faster = unbounded(other, times);
    faster.moving = std::max(faster.moving, call.plain_bound);
    if (faster.total() < time.total()) time = faster;
  }
  if (static_cast<Fabric>(call.fabric) == Fabric::tcpx && call.shape.nodes > 1) {
    // Its messages are long on the way, and what follows is sent meanwhile.
    time.moving = std::hypot(time.wait, time.moving) - time.wait;
  }
  // What moves takes the links for as long as they need, whatever is said of the wait before.
  const double total = std::max(time.total(), call.bound);
  time.moving = std::max(time.moving, call.bound);
  time.wait = std::max(0., total - time.moving);
  return time;
}

Price nccl_price(const Cluster& cluster, const Placement& placement, const Work& work, const NcclForced& forced) {
  const NcclCall call = nccl_call(cluster, placement, work, forced);
  const NcclMicros time = nccl_micros(call, nccl_times());
  Price price;
  price.transfer = to_picos(time.moving);
  price.latency = std::max(to_picos(time.total()), price.transfer) - price.transfer;
  price.rounding = 1;
  if (call.shape.ranks < 2) return price;
  price.algorithm = call.choice ? name_of(call.choice->algorithm) : "P2P";
  price.protocol = call.choice ? name_of(call.choice->protocol) : "Simple";
  return price;
}

}  // namespace ddx::sim
