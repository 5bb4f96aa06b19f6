// Network: the links of a cluster, and which of them a message between two ranks goes over.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/cluster/cluster.h"

namespace ddx::sim {

// A message holds all links of its path at once (cut through), and arrives `latency` after it has left the last one.
struct Path {
  std::array<std::uint32_t, 6> links{};
  std::uint8_t count = 0;
  Picos latency = 0;
  std::span<const std::uint32_t> all() const { return std::span(links).first(count); }
};

// Where a reduction in the network happens: in the switch of a node (NVLink), or in the fabric between nodes (SHARP).
enum class SwitchPlace : std::uint8_t { node, fabric };

// One of those who send to each other: so many ranks behind ports of so many bytes a second in one direction.
struct Party {
  std::uint32_t ranks = 1;
  std::uint64_t bytes_per_second = 0;
};

// Links are numbered; each is one direction. Out of flat clusters: two a rank, its port's out and in. Else, in this
// order: two a rank for its node's switch; two a NIC; two a leaf and rail, where there are leaves.
// - Within an NVLink domain: out and in of the two ranks.
// - Between domains: out of the sender's NIC, up from its leaf and down to the other's where they differ, into the
//   receiver's NIC. With rails, rank i of a node uses NIC i and leaves it on the rail where the receiver sits: where
//   that is another rail than its own, it first goes over the node's switch to the rank there (NCCL calls it PXN).
//   Several ranks of a node share a NIC where there are fewer NICs; a rank has several NICs as one where there are
//   more.
class Network {
 public:
  // The cluster has at least one rank, and every rate that it needs is more than 0; else an Error that names the field.
  explicit Network(const Cluster& cluster);
  // Of `ranks` ranks with a port each.
  Network(std::uint32_t ranks, const LinkSpec& port);

  std::uint32_t ranks() const { return ranks_; }
  // That share one node's switch (an NVLink domain).
  std::uint32_t ranks_per_domain() const { return ranks_per_node_ * domain_nodes_; }
  bool flat() const { return flat_; }
  std::uint32_t nics_per_node() const { return rails_; }                     // that are told apart
  std::span<const std::uint64_t> capacities() const { return capacities_; }  // bytes a second, by link

  Path path(std::uint32_t from, std::uint32_t to) const;  // of two different ranks
  Path to_switch(std::uint32_t rank, SwitchPlace place) const;
  Path from_switch(std::uint32_t rank, SwitchPlace place) const;

  // These ranks, each given once, as those who send to each other: one by one, and by NVLink domain. What they can
  // send at most: their links within the domain (of a mesh, those to each other) and their NICs as far as messages
  // between them take these; of domains, the NICs.
  std::vector<Party> ranks_apart(std::span<const std::uint32_t> ranks) const;
  std::vector<Party> domains_apart(std::span<const std::uint32_t> ranks) const;

 private:
  std::uint32_t node_of(std::uint32_t rank) const { return rank / ranks_per_node_; }
  std::uint32_t rail_of(std::uint32_t rank) const;
  std::uint32_t nic_out(std::uint32_t node, std::uint32_t rail) const {
    return first_nic_ + 2 * (node * rails_ + rail);
  }
  std::uint32_t leaf_up(std::uint32_t node, std::uint32_t rail) const;
  std::uint64_t lay_nics(const Cluster& cluster);
  void lay_leaves(const Cluster& cluster, std::uint64_t nic_rate);
  void add_pairs(std::uint64_t count, std::uint64_t bytes_per_second);

  std::uint32_t ranks_ = 1;
  std::uint32_t ranks_per_node_ = 1;
  std::uint32_t rails_ = 1;  // NICs of a node that are told apart
  bool flat_ = true;
  bool by_rail_ = false;
  bool mesh_ = false;  // a rank's port is links to each other of its node
  std::uint32_t domain_nodes_ = 1;
  std::uint32_t nodes_per_leaf_ = 0;
  std::uint32_t first_nic_ = 0;
  std::uint32_t first_leaf_ = 0;
  Picos local_latency_ = 0;
  Picos network_latency_ = 0;
  Picos spine_latency_ = 0;
  std::vector<std::uint64_t> capacities_;
};

}  // namespace ddx::sim
