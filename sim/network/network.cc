#include "sim/network/network.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/check.h"
#include "base/error.h"
#include "sim/network/rate.h"

namespace ddx::sim {

namespace {

constexpr std::uint64_t kMostRanks = std::uint64_t{1} << 24;  // a table of links stays below a few hundred megabytes
constexpr std::uint64_t kMostNics = std::uint64_t{1} << 24;
constexpr Picos kMostLatency = kPicosPerSecond * 3600;

void check_link(const LinkSpec& link, const char* name) {
  if (link.bytes_per_second == 0) throw Error(std::string("cluster: ") + name + ": expected a rate of more than 0");
  if (link.bytes_per_second > kMostRate) throw Error(std::string("cluster: ") + name + ": no link is that fast");
  if (link.latency < 0 || link.latency > kMostLatency)
    throw Error(std::string("cluster: ") + name + ": expected a latency of 0 to one hour");
}

void append(Path& path, std::uint32_t link) { path.links[path.count++] = link; }

}  // namespace

Network::Network(std::uint32_t ranks, const LinkSpec& port) : ranks_(ranks), network_latency_(port.latency) {
  check_link(port, "network");
  if (ranks == 0 || ranks > kMostRanks) throw Error("cluster: expected 1 to " + std::to_string(kMostRanks) + " ranks");
  add_pairs(ranks, port.bytes_per_second);
}

Network::Network(const Cluster& cluster) {
  if (cluster.ranks() == 0 || cluster.ranks() > kMostRanks)
    throw Error("cluster: expected 1 to " + std::to_string(kMostRanks) + " ranks");
  ranks_ = static_cast<std::uint32_t>(cluster.ranks());
  ranks_per_node_ = cluster.ranks_per_node;
  network_latency_ = cluster.network.latency;
  flat_ = cluster.flat;
  // Nodes of one NVLink domain need no network.
  if (flat_ || cluster.nodes > cluster.domain_nodes) check_link(cluster.network, "network");
  if (flat_) {
    add_pairs(ranks_, cluster.network.bytes_per_second);
    return;
  }
  if (ranks_per_node_ > 1) check_link(cluster.local, "local");
  add_pairs(ranks_, std::max<std::uint64_t>(cluster.local.bytes_per_second, 1));
  local_latency_ = cluster.local.latency;
  mesh_ = cluster.wiring == Wiring::mesh && ranks_per_node_ > 1;
  domain_nodes_ = std::clamp(cluster.domain_nodes, 1U, cluster.nodes);
  if (cluster.nodes == 1) return;
  const std::uint64_t nic_rate = lay_nics(cluster);
  nodes_per_leaf_ = cluster.nodes_per_leaf < cluster.nodes ? cluster.nodes_per_leaf : 0;
  if (nodes_per_leaf_ != 0) lay_leaves(cluster, nic_rate);
}

// Gives the rate of those that are told apart.
std::uint64_t Network::lay_nics(const Cluster& cluster) {
  const std::uint64_t nics = std::max(1U, cluster.nics_per_node);
  rails_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(nics, ranks_per_node_));
  if (std::uint64_t{cluster.nodes} * rails_ > kMostNics || nics > 65'536) throw Error("cluster: too many NICs");
  by_rail_ = cluster.rails && rails_ > 1;
  first_nic_ = static_cast<std::uint32_t>(capacities_.size());
  const std::uint64_t rate = std::max<std::uint64_t>(cluster.network.bytes_per_second, 1) * nics / rails_;
  add_pairs(std::uint64_t{cluster.nodes} * rails_, rate);
  return rate;
}

void Network::lay_leaves(const Cluster& cluster, std::uint64_t nic_rate) {
  if (!(cluster.oversubscription > 0) || !std::isfinite(cluster.oversubscription))
    throw Error("cluster: oversubscription: expected a number of more than 0");
  if (cluster.spine_latency < 0 || cluster.spine_latency > kMostLatency)
    throw Error("cluster: spine_latency: expected 0 to one hour");
  spine_latency_ = cluster.spine_latency;
  first_leaf_ = static_cast<std::uint32_t>(capacities_.size());
  const double below = static_cast<double>(nic_rate) * nodes_per_leaf_ * (by_rail_ ? 1 : rails_);
  const double uplinks = std::clamp(below / cluster.oversubscription, 1.0, static_cast<double>(kMostRate));
  const std::uint64_t leaves = (cluster.nodes + nodes_per_leaf_ - 1) / nodes_per_leaf_;
  add_pairs(leaves * (by_rail_ ? rails_ : 1), static_cast<std::uint64_t>(std::llround(uplinks)));
}

void Network::add_pairs(std::uint64_t count, std::uint64_t bytes_per_second) {
  capacities_.insert(capacities_.end(), 2 * count, bytes_per_second);
}

std::uint32_t Network::rail_of(std::uint32_t rank) const {
  return static_cast<std::uint32_t>(std::uint64_t{rank % ranks_per_node_} * rails_ / ranks_per_node_);
}

std::uint32_t Network::leaf_up(std::uint32_t node, std::uint32_t rail) const {
  const std::uint32_t leaf = node / nodes_per_leaf_;
  return first_leaf_ + 2 * (by_rail_ ? leaf * rails_ + rail : leaf);
}

Path Network::path(std::uint32_t from, std::uint32_t to) const {
  DDX_CHECK(from < ranks_ && to < ranks_ && from != to);
  Path path;
  if (flat_) {
    path.links = {2 * from, 2 * to + 1};
    path.count = 2;
    path.latency = network_latency_;
    return path;
  }
  const std::uint32_t node = node_of(from), other = node_of(to);
  if (node / domain_nodes_ == other / domain_nodes_) {
    append(path, 2 * from);
    append(path, 2 * to + 1);
    path.latency = local_latency_;
    return path;
  }
  std::uint32_t rail = rail_of(from);
  const std::uint32_t other_rail = rail_of(to);
  path.latency = network_latency_;
  if (by_rail_ && rail != other_rail) {
    append(path, 2 * from);
    append(path, 2 * (node * ranks_per_node_ + to % ranks_per_node_) + 1);
    path.latency += local_latency_;
    rail = other_rail;
  }
  append(path, nic_out(node, rail));
  if (nodes_per_leaf_ != 0 && node / nodes_per_leaf_ != other / nodes_per_leaf_) {
    append(path, leaf_up(node, rail));
    append(path, leaf_up(other, other_rail) + 1);
    path.latency += spine_latency_;
  }
  append(path, nic_out(other, other_rail) + 1);
  return path;
}

Path Network::to_switch(std::uint32_t rank, SwitchPlace place) const {
  Path path;
  const bool over_nic = !flat_ && place == SwitchPlace::fabric && first_nic_ != 0;
  append(path, over_nic ? nic_out(node_of(rank), rail_of(rank)) : 2 * rank);
  path.latency = flat_ || over_nic ? network_latency_ : local_latency_;
  return path;
}

Path Network::from_switch(std::uint32_t rank, SwitchPlace place) const {
  Path path = to_switch(rank, place);
  ++path.links[0];
  return path;
}

namespace {

// How many times each number comes, ascending.
std::vector<std::pair<std::uint32_t, std::uint32_t>> counted(std::vector<std::uint32_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  std::vector<std::pair<std::uint32_t, std::uint32_t>> counts;
  for (const std::uint32_t number : numbers) {
    if (counts.empty() || counts.back().first != number) counts.emplace_back(number, 0);
    ++counts.back().second;
  }
  return counts;
}

template <class Key>
std::vector<std::pair<std::uint32_t, std::uint32_t>> counted_by(std::span<const std::uint32_t> ranks, Key key) {
  std::vector<std::uint32_t> keys;
  keys.reserve(ranks.size());
  for (const std::uint32_t rank : ranks) keys.push_back(key(rank));
  return counted(std::move(keys));
}

}  // namespace

std::vector<Party> Network::ranks_apart(std::span<const std::uint32_t> ranks) const {
  std::vector<Party> parties;
  parties.reserve(ranks.size());
  if (flat_) {
    for (const std::uint32_t rank : ranks) parties.push_back({1, capacities_[2 * rank]});
    return parties;
  }
  const auto domains = counted_by(ranks, [this](std::uint32_t rank) { return rank / ranks_per_domain(); });
  const bool over_nics = domains.size() > 1;
  // Between rails a message goes over the node first.
  const bool by_way =
      over_nics && by_rail_ && counted_by(ranks, [this](auto rank) { return rail_of(rank); }).size() > 1;
  for (const std::uint32_t rank : ranks) {
    const auto own = std::lower_bound(domains.begin(), domains.end(), std::pair(rank / ranks_per_domain(), 0U));
    const std::uint64_t links = mesh_ ? ranks_per_node_ - 1 : 1, used = mesh_ ? own->second - 1 : 1;
    std::uint64_t rate = own->second > 1 || by_way ? capacities_[2 * rank] / links * (by_way ? links : used) : 0;
    if (over_nics) rate += capacities_[nic_out(node_of(rank), rail_of(rank))];
    parties.push_back({1, rate});
  }
  return parties;
}

std::vector<Party> Network::domains_apart(std::span<const std::uint32_t> ranks) const {
  if (flat_) return {};
  const auto domain_of = [this](std::uint32_t rank) { return rank / ranks_per_domain(); };
  const auto domains = counted_by(ranks, domain_of);
  if (domains.size() < 2) return {};
  std::vector<Party> parties;
  for (const auto& [domain, count] : domains) parties.push_back({count, 0});
  const std::uint64_t rate = capacities_[first_nic_];
  const auto rails = counted_by(ranks, [this](std::uint32_t rank) { return rail_of(rank); }).size();
  // By rail, a message may leave a node over any rail that some member sits on; else over its sender's NIC.
  const auto ports = counted_by(ranks, [this](std::uint32_t rank) {
    return by_rail_ ? node_of(rank) * rails_ : node_of(rank) * rails_ + rail_of(rank);
  });
  for (const auto& [port, count] : ports) {
    const std::pair key(domain_of(port / rails_ * ranks_per_node_), 0U);
    const auto own = std::lower_bound(domains.begin(), domains.end(), key) - domains.begin();
    parties[static_cast<std::size_t>(own)].bytes_per_second += rate * (by_rail_ ? rails : 1);
  }
  return parties;
}

}  // namespace ddx::sim
