#include "sim/replay/cluster_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/counted.h"
#include "base/error.h"
#include "sim/collectives/nccl_graph.h"
#include "sim/collectives/nccl_time.h"
#include "sim/collectives/port_bound.h"
#include "sim/collectives/step_simulation.h"
#include "sim/network/network.h"
#include "sim/replay/flat_costs.h"

namespace ddx::sim {
namespace {

// Kinds of resource of a rank: its way to the node's switch and back, or its links to each place of its node; then its
// NIC out and in, its leaf's uplinks up and down.
using Resource = std::uint16_t;
constexpr Resource kLocalOut = 0;

// Ranks of a node whose links to each other are told apart; more are taken to have a switch.
constexpr std::uint32_t kMostMeshed = 16;

// Members of a communicator whose calls are carried out message by message to be priced: a second of it.
constexpr std::size_t kMostStepped = 4096;

// Without a figure for the network only what stays within a node is priced.
Network network_of(Cluster cluster) {
  if (cluster.network.bytes_per_second == 0) cluster.network.bytes_per_second = 1;
  if (cluster.local.bytes_per_second == 0) cluster.local.bytes_per_second = 1;
  return Network(cluster);
}

// Every rank gives its bytes once, and gets the sum once.
bool switch_reduces(const Price& price) { return price.algorithm == "NVLS" || price.algorithm == "NVLSTree"; }

// And so does every node: where the network reduces, or where trees join two.
bool crosses_once(const NcclShape& shape, const Work& work, const Price& price) {
  if (price.algorithm == "NVLS" || price.algorithm.starts_with("CollNet")) return true;
  return work.kind == OpKind::all_reduce && shape.nodes == 2 && price.algorithm.ends_with("Tree");
}

// Members that have the same of something, where most have.
template <class Key>
std::uint32_t most_of(const std::vector<RankId>& members, const Key& key) {
  std::map<std::uint32_t, std::uint32_t> counts;
  std::uint32_t most = 0;
  for (const RankId member : members) most = std::max(most, ++counts[key(member)]);
  return most;
}

std::uint64_t part_of(double share) {
  return static_cast<std::uint64_t>(std::clamp(share, 0., 1.) * static_cast<double>(kWholeResource));
}

// Out of a port and into one.
void add_pair(Resource out, std::uint64_t part, std::vector<ResourceUse>& uses) {
  if (part == 0) return;
  uses.push_back({out, part});
  uses.push_back({static_cast<Resource>(out + 1), part});
}

// As NCCL calls it. Throws Error where it has none of that name.
NcclAlgorithm nccl_algorithm(const Algorithm& algorithm) {
  for (std::size_t i = 0; i < kNcclAlgorithms; ++i) {
    if (program_of(static_cast<NcclAlgorithm>(i)) == algorithm.name) return static_cast<NcclAlgorithm>(i);
  }
  std::vector<std::string_view> known;
  for (std::size_t i = 0; i < kNcclAlgorithms; ++i) known.push_back(program_of(static_cast<NcclAlgorithm>(i)));
  throw RequestError(fmt::format("NCCL has no algorithm {}: expected one of {} on a cluster whose library is nccl",
                                 algorithm.name, fmt::join(known, ", ")));
}

class ClusterCosts final : public CostModel {
 public:
  ClusterCosts(const Cluster& cluster, const Algorithm* algorithm)
      : cluster_(cluster), algorithm_(algorithm), network_(network_of(cluster)) {
    if (algorithm != nullptr && cluster.library == Library::nccl) forced_.algorithm = nccl_algorithm(*algorithm);
  }

  std::string name() const override {
    return fmt::format("{} ({} x {}{}){}", cluster_.name.empty() ? "the cluster" : cluster_.name, cluster_.nodes,
                       cluster_.ranks_per_node, cluster_.gpu.name.empty() ? " ranks" : " " + cluster_.gpu.name,
                       algorithm_ == nullptr ? "" : fmt::format(", algorithm {}", algorithm_->name));
  }
  std::vector<std::string> notes() const override { return {notes_.begin(), notes_.end()}; }
  std::uint64_t mark(const Communicator& communicator) const override;
  std::uint64_t mark(RankId from, RankId to) const override {
    const std::uint64_t apart = (domain_of(from) == domain_of(to) ? 0U : 1U) | (leaf_of(from) == leaf_of(to) ? 0U : 2U);
    return apart | (meshed() && apart == 0 ? 4 * (std::uint64_t{place_of(to)} + 1) : 0);
  }
  std::vector<std::uint32_t> resources(RankId rank) const override;

 protected:
  std::optional<Cost> cost_of(const Communicator& communicator, const Work& work) const override;
  std::optional<Cost> cost_of(RankId from, RankId to, std::uint64_t bytes) const override;
  Picos bound(std::span<const RankId> members, const Work& work, const Price& price) const override;

 private:
  std::uint32_t node_of(RankId rank) const { return static_cast<std::uint32_t>(rank.value) / cluster_.ranks_per_node; }
  std::uint32_t domain_of(RankId rank) const { return node_of(rank) / cluster_.domain_nodes; }
  std::uint32_t leaf_of(RankId rank) const {
    return cluster_.nodes_per_leaf == 0 ? 0 : node_of(rank) / cluster_.nodes_per_leaf;
  }
  // NICs of a node that ranks can tell apart: several ranks share one, or a rank has several as one.
  std::uint32_t nics_of_node() const { return std::min(std::max(1U, cluster_.nics_per_node), cluster_.ranks_per_node); }
  std::uint32_t nic_of(RankId rank) const {
    const std::uint32_t local = static_cast<std::uint32_t>(rank.value) % cluster_.ranks_per_node;
    return node_of(rank) * nics_of_node() + local * nics_of_node() / cluster_.ranks_per_node;
  }
  // Within their nodes, each given once.
  std::set<std::uint32_t> places_of(const std::vector<RankId>& members) const {
    std::set<std::uint32_t> places;
    for (const RankId member : members) places.insert(place_of(member));
    return places;
  }
  bool fits(const std::vector<RankId>& members) const {
    return !members.empty() && std::all_of(members.begin(), members.end(), [&](RankId rank) {
      return rank.value >= 0 && static_cast<std::uint64_t>(rank.value) < cluster_.ranks();
    });
  }
  // Over more than one NVLink domain.
  bool between(const std::vector<RankId>& members) const {
    return std::any_of(members.begin(), members.end(),
                       [&](RankId rank) { return domain_of(rank) != domain_of(members.front()); });
  }
  std::optional<Price> price_of(const std::vector<RankId>& members, const Placement& placement, const Work& work) const;
  std::optional<Price> stepped_price(const std::vector<RankId>& members, const Work& work,
                                     const Algorithm& algorithm) const;
  std::vector<ResourceUse> uses_of(const std::vector<RankId>& members, const Placement& placement, const Work& work,
                                   const Price& price) const;
  double whole_share(const std::vector<RankId>& members, const Placement& placement, const Work& work,
                     const Price& price) const;
  void add_local(const std::vector<RankId>& members, std::uint64_t part, std::vector<ResourceUse>& uses) const;
  void load_by_place(const std::vector<RankId>& members, OpKind kind, Cost& cost) const;
  double leaf_rate() const;
  double nic_rate() const {
    return static_cast<double>(cluster_.network.bytes_per_second) *
           std::max(1.0, std::floor(static_cast<double>(cluster_.nics_per_node) / nics_of_node()));
  }
  std::uint32_t place_of(RankId rank) const { return static_cast<std::uint32_t>(rank.value) % cluster_.ranks_per_node; }
  bool meshed() const {
    const bool wired = cluster_.wiring == Wiring::mesh || cluster_.wiring == Wiring::cube_mesh;
    return wired && cluster_.library == Library::nccl && cluster_.ranks_per_node > 1 &&
           cluster_.ranks_per_node <= kMostMeshed && cluster_.domain_nodes == 1;
  }
  Resource nic_out() const { return static_cast<Resource>(meshed() ? cluster_.ranks_per_node : 2); }
  Resource leaf_up() const { return static_cast<Resource>(nic_out() + 2); }

  void load_root(const std::vector<RankId>& members, OpKind kind, Cost& cost) const;
  void note_choice(const Work& work, std::uint32_t ranks, const Price& price) const;

  Cluster cluster_;
  const Algorithm* algorithm_;
  NcclForced forced_;
  Network network_;
  mutable std::set<std::string> notes_;
};

// Groups of sends and barriers have no algorithm that could be set.
void ClusterCosts::note_choice(const Work& work, std::uint32_t ranks, const Price& price) const {
  if (!forced_.algorithm || work.kind == OpKind::barrier || !nccl_algorithm_from(price.algorithm)) return;
  if (name_of(*forced_.algorithm) == price.algorithm) return;
  notes_.insert(fmt::format("{} is not to be had for {} on {}: NCCL takes {}", name_of(*forced_.algorithm),
                            name_of(work.kind), counted(ranks, "rank", "ranks"), price.algorithm));
}

// Of NCCL's communicators how many sit where decides; of others also who sits beside whom.
std::uint64_t ClusterCosts::mark(const Communicator& communicator) const {
  const auto& members = communicator.members;
  if (!fits(members)) return 0;
  std::uint64_t hash = 0;
  const auto add = [&hash](std::uint64_t part) { hash = (hash ^ part) * 0x9e3779b97f4a7c15 ^ hash >> 29; };
  const Placement p = place(cluster_, members);
  for (const std::uint32_t part : {p.ranks, p.nodes, p.most_per_node, p.fewest_per_node, p.leaves, p.fewest_per_domain})
    add(part);
  add(between(members) ? 1 : 0);
  for (const std::uint32_t most : {most_of(members, [this](RankId rank) { return domain_of(rank); }),
                                   most_of(members, [this](RankId rank) { return nic_of(rank); }),
                                   most_of(members, [this](RankId rank) { return leaf_of(rank); })}) {
    add(most);
  }
  if (meshed()) {
    for (const std::uint32_t taken : places_of(members)) add(taken);
  }
  if (cluster_.library == Library::nccl || !between(members)) return hash;
  std::map<std::uint32_t, std::uint32_t> nodes, leaves;  // numbered as they first come
  for (const RankId member : members) {
    add(nodes.try_emplace(node_of(member), static_cast<std::uint32_t>(nodes.size())).first->second);
    add(leaves.try_emplace(leaf_of(member), static_cast<std::uint32_t>(leaves.size())).first->second);
    add(static_cast<std::uint32_t>(member.value) % cluster_.ranks_per_node);
  }
  return hash;
}

std::optional<Price> ClusterCosts::price_of(const std::vector<RankId>& members, const Placement& placement,
                                            const Work& work) const {
  const bool over_network = between(members);
  const LinkSpec& link = over_network ? cluster_.network : cluster_.local;
  if (link.bytes_per_second == 0) return std::nullopt;  // over the border of the node without a figure for it
  if (cluster_.library == Library::nccl) {
    Cluster shaped = cluster_;
    // A few nodes of several domains: by their number alone they would be taken for one.
    if (over_network && placement.nodes <= cluster_.domain_nodes) shaped.domain_nodes = 1;
    Price price = nccl_price(shaped, placement, work, forced_);
    // Domains are priced as if they were alike; of others the smallest may hold up all.
    const bool alike = placement.fewest_per_domain * nccl_shape(shaped, placement).nodes == placement.ranks;
    if (over_network && !alike) price.transfer += std::max<Picos>(0, bound(members, work, price) - price.total());
    return price;
  }
  const Algorithm* algorithm = algorithm_for(work, placement.ranks, cluster_.library, algorithm_);
  if (algorithm == nullptr) return std::nullopt;
  const bool alone = placement.most_per_node == 1 && placement.leaves == 1;
  if (!over_network || alone) return flat_price(work, placement.ranks, link, *algorithm);
  return stepped_price(members, work, *algorithm);
}

// Ranks of one node share its NICs, those of one leaf its uplinks: how much of the time they do depends on who sends
// to whom when, so the call is carried out once, message by message.
std::optional<Price> ClusterCosts::stepped_price(const std::vector<RankId>& members, const Work& work,
                                                 const Algorithm& algorithm) const {
  if (members.size() > kMostStepped) return std::nullopt;
  std::vector<std::uint32_t> places;
  for (const RankId member : members) places.push_back(static_cast<std::uint32_t>(member.value));
  const std::vector<Picos> arrivals(members.size(), 0);
  const auto run = [&](std::uint64_t bytes) {
    Work sized = work;
    sized.bytes = bytes;
    const auto ends = simulate_steps(algorithm, sized, arrivals, network_, places);
    return *std::max_element(ends.begin(), ends.end());
  };
  Price price;
  const Picos total = run(work.bytes);
  price.rounding = kForever;  // what it may be is known where the messages are, which have been looked at
  price.latency = std::min(total, run(0));
  price.transfer = total - price.latency;
  price.algorithm = algorithm.name;
  return price;
}

Picos ClusterCosts::bound(std::span<const RankId> members, const Work& work, const Price& price) const {
  std::vector<std::uint32_t> places;
  for (const RankId member : members) places.push_back(static_cast<std::uint32_t>(member.value));
  return port_bound(work, network_, places, reduction_of(price.algorithm, cluster_));
}

// Of the leaf's uplinks together.
double ClusterCosts::leaf_rate() const {
  return static_cast<double>(cluster_.network.bytes_per_second) * cluster_.nics_per_node * cluster_.nodes_per_leaf /
         std::max(1.0, cluster_.oversubscription);
}

// Of NCCL's calls, how much of the fullest link: two at once take what one of twice the size takes. So a link gives at
// most what one large call reaches on it, which is less than it is sold with, and what a small call leaves free while
// its pipeline fills is left to others.
double ClusterCosts::whole_share(const std::vector<RankId>& members, const Placement& placement, const Work& work,
                                 const Price& price) const {
  if (work.bytes > std::numeric_limits<std::uint64_t>::max() / 2 || price.transfer <= 0) return 1;
  Work twice = work;
  twice.bytes *= 2;
  const auto both = price_of(members, placement, twice);
  return both ? std::min(1., static_cast<double>(both->transfer) / 2 / static_cast<double>(price.transfer)) : 1;
}

// Of each member: over its port, or over its links to the places that members have.
void ClusterCosts::add_local(const std::vector<RankId>& members, std::uint64_t part,
                             std::vector<ResourceUse>& uses) const {
  if (part == 0) return;
  if (!meshed()) return add_pair(kLocalOut, part, uses);
  for (const std::uint32_t taken : places_of(members)) uses.push_back({static_cast<Resource>(taken), part});
}

// What each member moves over its links while the transfer lasts. Rings and trees cross the border of a node, and of a
// leaf, once for all members behind it; what everybody sends to everybody does not. Of gloo and MPI, whose algorithms
// know nothing of nodes, the NICs are taken to be busy all the time. The price is that of the call alone: it never
// takes more of a link than there is, but for a leaf's uplinks, which NCCL's prices know nothing of.
std::vector<ResourceUse> ClusterCosts::uses_of(const std::vector<RankId>& members, const Placement& placement,
                                               const Work& work, const Price& price) const {
  const bool to_all = work.kind == OpKind::all_to_all, over_network = between(members);
  const bool nccl = cluster_.library == Library::nccl;
  const double whole = static_cast<double>(work.bytes), moved = whole * bus_factor(work.kind, placement.ranks);
  const double all = placement.ranks;
  const double inside = most_of(members, [this](RankId rank) { return domain_of(rank); });
  const double on_nic = most_of(members, [this](RankId rank) { return nic_of(rank); });
  const double crossing = crosses_once(nccl_shape(cluster_, placement), work, price) ? whole : moved;
  const double seconds = static_cast<double>(price.transfer) / static_cast<double>(kPicosPerSecond);
  if (seconds <= 0) return {};
  double local = 0, nic = 0;  // of a member's links, and by each member of its NIC
  if (inside > 1 || !over_network) {
    const double bytes = to_all ? whole * (inside - 1) / all : switch_reduces(price) ? whole : moved;
    const double links = meshed() ? (inside - 1) / (cluster_.ranks_per_node - 1.) : 1;
    local = bytes / (static_cast<double>(cluster_.local.bytes_per_second) * links) / seconds;
  }
  if (over_network) nic = nccl ? (to_all ? whole * (all - inside) / all : crossing / inside) / nic_rate() / seconds : 1;
  const double fullest = std::max(local, nic * on_nic);
  const double scale = nccl && fullest > 0 ? whole_share(members, placement, work, price) / fullest : 1;
  std::vector<ResourceUse> uses;
  add_local(members, part_of(local * scale), uses);
  if (!over_network) return uses;
  add_pair(nic_out(), part_of(std::min(nic * scale, 1 / on_nic)), uses);
  if (placement.leaves > 1) {
    const double of_leaf = most_of(members, [this](RankId rank) { return leaf_of(rank); });
    const double up = to_all ? whole * (all - of_leaf) / all : crossing / of_leaf;
    const std::uint64_t part = use_of(leaf_up(), up, price.transfer, leaf_rate()).part;
    add_pair(leaf_up(), nccl ? part : std::min(part, part_of(1 / of_leaf)), uses);
  }
  return uses;
}

// Of a gather the root gets all over its port and its NIC, and each of the others gives its part; which of them are on
// other nodes than the root is not looked at. Of a scatter the other way round.
void ClusterCosts::load_root(const std::vector<RankId>& members, OpKind kind, Cost& cost) const {
  const bool gathers = kind == OpKind::gather;
  if ((!gathers && kind != OpKind::scatter) || meshed() || cluster_.library != Library::nccl) return;
  const std::uint64_t others = members.size() - 1;
  const std::uint64_t on_nic = most_of(members, [this](RankId rank) { return nic_of(rank); });
  const std::uint64_t of_leaf = most_of(members, [this](RankId rank) { return leaf_of(rank); });
  std::vector<ResourceUse> of_root, of_others;
  for (const ResourceUse& use : cost.uses) {
    const bool out = use.kind % 2 == 0;  // as local, NIC and leaf have it
    const bool nic = use.kind / 2 == nic_out() / 2, leaf = use.kind / 2 == leaf_up() / 2;
    const std::uint64_t all = leaf ? use.part * of_leaf : std::min(kWholeResource, nic ? use.part * on_nic : use.part);
    if (out != gathers) of_root.push_back({use.kind, std::min(kMostOfResource, all)});
    if (out == gathers) of_others.push_back({use.kind, std::max<std::uint64_t>(1, all / others)});
  }
  cost.root_uses = std::move(of_root);
  cost.uses = std::move(of_others);
}

// Of a chain from (or to) a root, where every member is behind ports of its own: the root only sends, and the last one
// only receives; of a reduce the other way round.
void ClusterCosts::load_by_place(const std::vector<RankId>& members, OpKind kind, Cost& cost) const {
  const bool chain = (kind == OpKind::broadcast || kind == OpKind::reduce) &&
                     (cost.price.algorithm == "Ring" || cost.price.algorithm == "ring");
  const bool apart = !between(members) || most_of(members, [this](RankId rank) { return domain_of(rank); }) == 1;
  if (!chain || !apart || meshed() || (between(members) && cluster_.library != Library::nccl)) return;
  std::vector<ResourceUse> outs, ins;
  for (const ResourceUse& use : cost.uses) (use.kind % 2 == 0 ? outs : ins).push_back(use);
  cost.root_uses = kind == OpKind::broadcast ? outs : ins;
  cost.last_uses = kind == OpKind::broadcast ? ins : outs;
}

std::optional<Cost> ClusterCosts::cost_of(const Communicator& communicator, const Work& work) const {
  if (!fits(communicator.members)) return std::nullopt;
  const Work priced = priced_as(work);
  const Placement placement = place(cluster_, communicator.members);
  if (placement.ranks == 1) return Cost{};
  const auto price = price_of(communicator.members, placement, priced);
  if (!price) return std::nullopt;
  note_choice(priced, placement.ranks, *price);
  Cost cost{*price, uses_of(communicator.members, placement, priced, *price), {}, {}};
  load_root(communicator.members, priced.kind, cost);
  load_by_place(communicator.members, priced.kind, cost);
  return cost;
}

std::optional<Cost> ClusterCosts::cost_of(RankId from, RankId to, std::uint64_t bytes) const {
  const std::vector<RankId> ends{from, to};
  if (!fits(ends)) return std::nullopt;
  if (from == to) return Cost{};
  const Placement placement = place(cluster_, ends);
  const Work work{OpKind::send, bytes, DataType::unknown, RedOp::unknown};
  const bool over_network = domain_of(from) != domain_of(to);
  const auto price = price_of(ends, placement, work);
  if (!price) return std::nullopt;
  Cost cost{*price, {}, {}, {}};
  const double moved = static_cast<double>(bytes);
  const LinkSpec& link = over_network ? cluster_.network : cluster_.local;
  const auto add = [&cost](Resource out, std::uint64_t part) {
    cost.uses.push_back({out, part});
    cost.receiver_uses.push_back({static_cast<Resource>(out + 1), part});
  };
  const Resource out = over_network ? nic_out() : kLocalOut;
  const std::uint64_t part = cluster_.library == Library::nccl
                                 ? part_of(whole_share(ends, placement, work, *price))
                                 : use_of(out, moved, price->transfer, static_cast<double>(link.bytes_per_second)).part;
  if (!over_network && meshed()) {
    cost.uses.push_back({static_cast<Resource>(place_of(to)), part});
    return cost;
  }
  add(out, part);
  if (over_network && leaf_of(from) != leaf_of(to)) {
    add(leaf_up(), use_of(leaf_up(), moved, price->transfer, leaf_rate()).part);
  }
  return cost;
}

std::vector<std::uint32_t> ClusterCosts::resources(RankId rank) const {
  const auto number = static_cast<std::uint32_t>(rank.value);
  const std::uint32_t nics = nics_of_node(), nic = nic_of(rank), local = nic_out();
  std::vector<std::uint32_t> made;
  for (std::uint32_t kind = 0; kind < local; ++kind) {
    made.push_back(meshed() && kind == place_of(rank) ? kNoResource : local * number + kind);
  }
  const auto first_nic = static_cast<std::uint32_t>(local * cluster_.ranks());
  const std::uint32_t first_leaf = first_nic + 2 * cluster_.nodes * nics;
  for (const std::uint32_t first : {first_nic + 2 * nic, first_leaf + 2 * leaf_of(rank)}) {
    made.push_back(first);
    made.push_back(first + 1);
  }
  return made;
}

}  // namespace

Placement place(const Cluster& cluster, const std::vector<RankId>& members) {
  std::map<std::uint32_t, std::uint32_t> on_node;
  for (const RankId member : members) ++on_node[static_cast<std::uint32_t>(member.value) / cluster.ranks_per_node];
  Placement placement;
  placement.ranks = static_cast<std::uint32_t>(members.size());
  placement.nodes = static_cast<std::uint32_t>(on_node.size());
  placement.most_per_node = placement.fewest_per_node = on_node.begin()->second;
  std::set<std::uint32_t> leaves;
  std::map<std::uint32_t, std::uint32_t> in_domain;
  for (const auto& [node, count] : on_node) {
    in_domain[node / cluster.domain_nodes] += count;
    placement.most_per_node = std::max(placement.most_per_node, count);
    placement.fewest_per_node = std::min(placement.fewest_per_node, count);
    leaves.insert(cluster.nodes_per_leaf == 0 ? 0 : node / cluster.nodes_per_leaf);
  }
  placement.leaves = static_cast<std::uint32_t>(leaves.size());
  placement.fewest_per_domain = std::min_element(in_domain.begin(), in_domain.end(), [](const auto& a, const auto& b) {
                                  return a.second < b.second;
                                })->second;
  return placement;
}

std::unique_ptr<CostModel> cluster_costs(const Cluster& cluster, const Algorithm* algorithm) {
  if (cluster.flat) return flat_costs({cluster.network, algorithm, cluster.library});
  return std::make_unique<ClusterCosts>(cluster, algorithm);
}

}  // namespace ddx::sim
