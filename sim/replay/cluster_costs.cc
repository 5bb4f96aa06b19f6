#include "sim/replay/cluster_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "sim/collectives/nccl_time.h"
#include "sim/replay/flat_costs.h"

namespace ddx::sim {
namespace {

// Kinds of resource of a rank: its way to the node's switch and back, its NIC, its leaf's uplinks.
using Resource = std::uint16_t;
constexpr Resource kLocalOut = 0;
constexpr Resource kLocalIn = 1;
constexpr Resource kNicOut = 2;
constexpr Resource kNicIn = 3;
constexpr Resource kLeafUp = 4;
constexpr Resource kLeafDown = 5;

// Thousandths of a link of `bytes_per_second` that `bytes` in `time` need. More than 1000: the link alone makes it
// slower than the price says.
std::uint16_t share(double bytes, Picos time, double bytes_per_second) {
  if (time <= 0 || bytes <= 0 || bytes_per_second <= 0) return 0;
  const double part = bytes / (bytes_per_second * (static_cast<double>(time) / static_cast<double>(kPicosPerSecond)));
  return static_cast<std::uint16_t>(std::clamp(std::lround(part * 1000), 1L, 60'000L));
}

class ClusterCosts final : public CostModel {
 public:
  ClusterCosts(const Cluster& cluster, const Algorithm* algorithm) : cluster_(cluster), algorithm_(algorithm) {}

  std::string name() const override {
    return fmt::format("{} ({} x {}{})", cluster_.name.empty() ? "the cluster" : cluster_.name, cluster_.nodes,
                       cluster_.ranks_per_node, cluster_.gpu.name.empty() ? " ranks" : " " + cluster_.gpu.name);
  }
  std::uint64_t mark(const Communicator& communicator) const override;
  std::uint64_t mark(RankId from, RankId to) const override {
    return (domain_of(from) == domain_of(to) ? 0U : 1U) | (leaf_of(from) == leaf_of(to) ? 0U : 2U);
  }
  std::optional<Cost> collective(const Communicator& communicator, const Work& work) const override;
  std::optional<Cost> transfer(RankId from, RankId to, std::uint64_t bytes) const override;
  std::vector<std::uint32_t> resources(RankId rank) const override;

 private:
  std::uint32_t node_of(RankId rank) const { return static_cast<std::uint32_t>(rank.value) / cluster_.ranks_per_node; }
  std::uint32_t domain_of(RankId rank) const { return node_of(rank) / cluster_.domain_nodes; }
  std::uint32_t leaf_of(RankId rank) const {
    return cluster_.nodes_per_leaf == 0 ? 0 : node_of(rank) / cluster_.nodes_per_leaf;
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
  std::optional<Price> price_of(const Placement& placement, const Work& work, bool between) const;
  std::vector<ResourceUse> uses_of(const std::vector<RankId>& members, const Placement& placement, const Work& work,
                                   const Price& price) const;
  double leaf_rate() const;

  Cluster cluster_;
  const Algorithm* algorithm_;
};

std::uint64_t ClusterCosts::mark(const Communicator& communicator) const {
  if (!fits(communicator.members)) return 0;
  const Placement p = place(cluster_, communicator.members);
  std::uint64_t leaves = 1;
  for (std::size_t i = 1; i < communicator.members.size(); ++i) {
    leaves += leaf_of(communicator.members[i]) != leaf_of(communicator.members[i - 1]) ? 1U : 0U;
  }
  std::uint64_t hash = p.ranks;
  for (const std::uint64_t part :
       {std::uint64_t{p.nodes}, std::uint64_t{p.most_per_node}, std::uint64_t{p.fewest_per_node}, leaves}) {
    hash = hash * 0x9e3779b97f4a7c15 + part;
  }
  return hash;
}

std::optional<Price> ClusterCosts::price_of(const Placement& placement, const Work& work, bool between) const {
  const LinkSpec& link = between ? cluster_.network : cluster_.local;
  if (link.bytes_per_second == 0) return std::nullopt;  // over the border of the node without a figure for it
  if (cluster_.library == Library::nccl) {
    if (!between || placement.nodes > cluster_.domain_nodes) return nccl_price(cluster_, placement, work);
    // A few nodes of several domains: by their number alone they would be taken for one.
    Cluster apart = cluster_;
    apart.domain_nodes = 1;
    return nccl_price(apart, placement, work);
  }
  const Members members = flat_members(placement.ranks);
  const Algorithm* algorithm = algorithm_;
  if (algorithm == nullptr || !algorithm->runs(work.kind, members)) {
    algorithm = choose_algorithm(work, placement.ranks, cluster_.library);
  }
  if (algorithm == nullptr) return std::nullopt;
  return flat_price(work, placement.ranks, link, *algorithm);
}

// Of the leaf's uplinks together.
double ClusterCosts::leaf_rate() const {
  return static_cast<double>(cluster_.network.bytes_per_second) * cluster_.nics_per_node * cluster_.nodes_per_leaf /
         std::max(1.0, cluster_.oversubscription);
}

// What each member moves over its links while the transfer lasts. Rings and trees cross the border of a node once for
// all its members, and spread that over their NICs; what everybody sends to everybody does not.
std::vector<ResourceUse> ClusterCosts::uses_of(const std::vector<RankId>& members, const Placement& placement,
                                               const Work& work, const Price& price) const {
  const double moved = static_cast<double>(work.bytes) * bus_factor(work.kind, placement.ranks);
  const bool to_all = work.kind == OpKind::all_to_all;
  const double inside = placement.most_per_node, all = placement.ranks;
  const double local = to_all ? static_cast<double>(work.bytes) * (inside - 1) / all : moved;
  const double nic = to_all ? static_cast<double>(work.bytes) * (all - inside) / all : moved / inside;
  std::vector<ResourceUse> uses;
  const auto add = [&](Resource out, double bytes, double rate) {
    const std::uint16_t part = share(bytes, price.transfer, rate);
    if (part == 0) return;
    uses.push_back({out, part});
    uses.push_back({static_cast<std::uint16_t>(out + 1), part});
  };
  const bool over_network = between(members);
  if (inside > 1 || !over_network) add(kLocalOut, local, static_cast<double>(cluster_.local.bytes_per_second));
  if (!over_network) return uses;
  const double nics = std::max(1.0, std::floor(static_cast<double>(cluster_.nics_per_node) / cluster_.ranks_per_node));
  add(kNicOut, nic, nics * static_cast<double>(cluster_.network.bytes_per_second));
  const bool leaves = cluster_.nodes_per_leaf > 0 && std::any_of(members.begin(), members.end(), [&](RankId rank) {
                        return leaf_of(rank) != leaf_of(members.front());
                      });
  if (leaves) add(kLeafUp, to_all ? nic : moved / (inside * cluster_.nodes_per_leaf), leaf_rate());
  return uses;
}

std::optional<Cost> ClusterCosts::collective(const Communicator& communicator, const Work& work) const {
  if (!fits(communicator.members)) return std::nullopt;
  Work priced = work;
  // Making groups is a meeting of all, no more.
  if (work.kind == OpKind::new_group || work.kind == OpKind::split_group) priced.kind = OpKind::barrier;
  const Placement placement = place(cluster_, communicator.members);
  if (placement.ranks == 1) return Cost{};
  const auto price = price_of(placement, priced, between(communicator.members));
  if (!price) return std::nullopt;
  return Cost{*price, uses_of(communicator.members, placement, priced, *price), {}};
}

std::optional<Cost> ClusterCosts::transfer(RankId from, RankId to, std::uint64_t bytes) const {
  const std::vector<RankId> ends{from, to};
  if (!fits(ends)) return std::nullopt;
  if (from == to) return Cost{};
  const Placement placement = place(cluster_, ends);
  const Work work{OpKind::send, bytes, DataType::unknown, RedOp::unknown};
  const bool over_network = domain_of(from) != domain_of(to);
  const auto price = price_of(placement, work, over_network);
  if (!price) return std::nullopt;
  Cost cost{*price, {}, {}};
  const double moved = static_cast<double>(bytes);
  const LinkSpec& link = over_network ? cluster_.network : cluster_.local;
  const std::uint16_t part = share(moved, price->transfer, static_cast<double>(link.bytes_per_second));
  cost.uses.push_back({over_network ? kNicOut : kLocalOut, part});
  cost.receiver_uses.push_back({over_network ? kNicIn : kLocalIn, part});
  if (leaf_of(from) != leaf_of(to)) {
    const std::uint16_t up = share(moved, price->transfer, leaf_rate());
    cost.uses.push_back({kLeafUp, up});
    cost.receiver_uses.push_back({kLeafDown, up});
  }
  return cost;
}

std::vector<std::uint32_t> ClusterCosts::resources(RankId rank) const {
  const auto number = static_cast<std::uint32_t>(rank.value);
  const std::uint32_t node = node_of(rank), local = number % cluster_.ranks_per_node;
  const std::uint32_t nics = std::min(std::max(1U, cluster_.nics_per_node), cluster_.ranks_per_node);
  const std::uint32_t nic = node * nics + local * nics / cluster_.ranks_per_node;
  const auto first_nic = static_cast<std::uint32_t>(2 * cluster_.ranks());
  const std::uint32_t first_leaf = first_nic + 2 * cluster_.nodes * nics;
  std::vector<std::uint32_t> made{2 * number, 2 * number + 1, first_nic + 2 * nic, first_nic + 2 * nic + 1};
  made.push_back(first_leaf + 2 * leaf_of(rank));
  made.push_back(first_leaf + 2 * leaf_of(rank) + 1);
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
  for (const auto& [node, count] : on_node) {
    placement.most_per_node = std::max(placement.most_per_node, count);
    placement.fewest_per_node = std::min(placement.fewest_per_node, count);
  }
  return placement;
}

std::unique_ptr<CostModel> cluster_costs(const Cluster& cluster, const Algorithm* algorithm) {
  if (cluster.flat) return flat_costs({cluster.network, algorithm, cluster.library});
  if (algorithm != nullptr && cluster.library == Library::nccl) {
    throw Error("NCCL chooses by itself: an algorithm can be set on flat networks and on clusters of gloo or MPI");
  }
  return std::make_unique<ClusterCosts>(cluster, algorithm);
}

}  // namespace ddx::sim
