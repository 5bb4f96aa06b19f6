// What a collective of NCCL (or RCCL) takes, when nothing else is under way:
//
//     t(S) = launch + hops + S f / bus + E phi(S)
//
// f: bus factor of the kind (all_reduce 2 (n-1)/n). bus: what the links carry in the long run. phi: the filling of the
// pipeline, which grows linearly up to a knee and with a small power of S beyond it; so this is a + (S/B)(1 + (S0/S)^g)
// with g = 1 - power, in a form that also holds below the knee. The constants are fitted to published measurements
// (sim/calibrate, docs/accuracy.md), by generation of GPU and kind of network, never by run.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "sim/cluster/cluster.h"
#include "sim/collectives/nccl_choice.h"
#include "sim/collectives/nccl_graph.h"
#include "sim/collectives/work.h"

namespace ddx::sim {

constexpr std::size_t kTimedArchs = 5;    // volta, ampere, hopper, blackwell, cdna3
constexpr std::size_t kTimedFabrics = 7;  // as Fabric has them

using PerArch = std::array<double, kTimedArchs>;
using PerFabric = std::array<double, kTimedFabrics>;

struct NcclTimes {
  // Within one node, or one NVLink domain.
  PerArch launch{};      // us, of the smallest call
  PerArch ring_share{};  // bus bandwidth over what NCCL's graph says
  PerArch ring_loop{};   // further steps that each loop of a ring costs
  PerArch ring_fill{};   // us at 1 MiB of a ring of two ranks; grows with (n-1)^ring_ranks_power
  double ring_ranks_power = 1;
  double ring_power = 0;        // of the size
  double rooted_fill = 1;       // of a broadcast's or reduce's, over an all_reduce's
  PerArch nvls_share{};         // bytes of an all_reduce a second, over the rate of the local link, of many ranks
  double nvls_heads = 0;        // that share is (1 - nvls_heads/n) of it
  PerArch nvls_cap{};           // bus bandwidth over the rate of the local link, at most
  PerArch nvls_fill{};          // us at 1 MiB, of eight ranks
  double nvls_ranks_power = 0;  // of their number, over eight
  double nvls_power = 0;        // of the size
  double tree_share = 1;        // bus bandwidth of a tree in one node over a ring's
  double tree_fill = 0;         // us at 1 MiB
  double p2p_launch = 0;        // us more, of an all_to_all
  double p2p_share = 1;         // bus bandwidth of all_to_all and sends over a ring's
  std::array<double, kNcclProtocols> channel{};  // GB/s of one channel's ring: LL, LL128, Simple

  // Between nodes.
  PerFabric nic_share{};       // of the NICs' line rate, in an all_reduce
  PerFabric ring_nic_share{};  // and in rings of other kinds
  PerFabric hop{};             // us, one way
  PerFabric net_fill{};        // us at the knee, of an all_reduce over two nodes; grows with log2 of the nodes
  double net_power = 0;
  double slow_knee = 0;  // MiB: of the networks that lag (EFA's first generation, TCPXO); 1 MiB elsewhere
  double slow_power = 0;
  PerArch between_cap{};      // bus bandwidth of an all_reduce over several nodes, over the local link's rate, at most
  double unforced_share = 1;  // of NVLSTree's speed: what NCCL gets where it chooses, over more than two nodes
  double ring_net_fill = 0;   // us at 1 MiB of a ring over several nodes, as ring_fill
  double domain_fill = 0;     // us at 512 MiB, for each doubling of NVLink domains of several nodes
  double domain_power = 0;
};

// The fitted ones. A test fits them again.
const NcclTimes& nccl_times();

// A call as the formulas need it; what does not depend on the fitted constants is worked out once.
struct NcclCall {
  Work work;  // a barrier is an all_reduce of a few bytes, a receive a send
  NcclForced forced;
  NcclShape shape;
  std::optional<NcclCandidate> choice;  // nullopt: grouped sends
  std::vector<NcclCandidate> later;     // what NCCL chooses for larger sizes, of algorithms that differ from `choice`
  NcclGraphs graphs;
  std::size_t arch = 0;  // into PerArch
  std::size_t fabric = 0;
  Wiring wiring = Wiring::switched;
  bool domains = false;  // NVLink domains of several nodes
  std::uint32_t leaves = 1;
  double local_rate = 0;   // GB/s
  double pair_rate = 0;    // GB/s of the links between two ranks of a node
  double line_rate = 0;    // GB/s, of the NICs of one node
  double apart = 0;        // ranks that a rank reaches by its NIC only, at the most
  double fullest = 1;      // of a rank's part of that, where nodes have unlike numbers: on the fullest one
  double inner_ring = 0;   // GB/s: the bus of NCCL's ring within one node
  double inner_trees = 0;  // GB/s: what trees between nodes may carry
  double bound = 0;        // us: nccl_port_bound()
  double plain_bound = 0;  // us: of links that reduce nothing
  // us that a cluster states beyond what its kind of link takes: one way within a node, between nodes, between leaves.
  double more_local = 0, more_network = 0, spine = 0;
};
NcclCall nccl_call(const Cluster& cluster, const Placement& placement, const Work& work, const NcclForced& forced = {});

struct NcclMicros {
  double wait = 0;  // what does not depend on the size
  double moving = 0;
  double total() const { return wait + moving; }
};
// NCCL's own estimates say where it changes its algorithm, and by these times that is not where the other one becomes
// faster: no call is told to take longer than by an algorithm that NCCL takes for larger ones. So no time falls when
// the size grows.
NcclMicros nccl_micros(const NcclCall& call, const NcclTimes& times);

// The fitted times are those of ordinary links; what a cluster states beyond (or below) that is added for each message
// that has to wait for another, and the way over the spine for each that takes it.
//
// Any kind of operation: gather, scatter, all_to_all and sends are grouped sends; a barrier is an all_reduce of a few
// bytes. Never below what the stated links can carry. What is forced and cannot be had is left aside. The cluster must
// have GPUs and must not be flat.
Price nccl_price(const Cluster& cluster, const Placement& placement, const Work& work, const NcclForced& forced = {});

// The least time in which the stated links carry what the operation must move.
Picos nccl_port_bound(const Cluster& cluster, const Placement& placement, const Work& work);

// What nccl-tests multiplies bytes over time by to get the bus bandwidth of a kind, among `ranks`.
double bus_factor(OpKind kind, std::uint32_t ranks);

}  // namespace ddx::sim
