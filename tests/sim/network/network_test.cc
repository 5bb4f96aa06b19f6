#include "sim/network/network.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "base/error.h"

namespace ddx::sim {
namespace {

constexpr LinkSpec kNic{50'000'000'000, 5'000'000};
constexpr LinkSpec kLocal{450'000'000'000, 700'000};

// Four nodes of 4 ranks with 4 NICs on rails, two nodes a leaf, half the bandwidth above.
Cluster rails() {
  Cluster cluster;
  cluster.nodes = 4;
  cluster.ranks_per_node = 4;
  cluster.local = kLocal;
  cluster.network = kNic;
  cluster.nics_per_node = 4;
  cluster.nodes_per_leaf = 2;
  cluster.oversubscription = 2;
  cluster.spine_latency = 1'000'000;
  return cluster;
}

std::vector<std::uint64_t> capacities(const Network& network, const Path& path) {
  std::vector<std::uint64_t> all;
  for (const std::uint32_t link : path.all()) all.push_back(network.capacities()[link]);
  return all;
}

TEST(Network, flat_gives_every_rank_one_port) {
  const Network network(3, kNic);
  EXPECT_EQ(network.capacities().size(), 6U);
  const Path there = network.path(0, 2), back = network.path(2, 0);
  EXPECT_EQ(there.latency, kNic.latency);
  EXPECT_EQ(capacities(network, there), (std::vector<std::uint64_t>{kNic.bytes_per_second, kNic.bytes_per_second}));
  // Full duplex: the way back shares nothing with it.
  for (const std::uint32_t link : there.all())
    EXPECT_EQ(std::count(back.links.begin(), back.links.begin() + back.count, link), 0);
  EXPECT_EQ(network.path(0, 1).links[0], there.links[0]);
  EXPECT_EQ(network.path(1, 2).links[1], there.links[1]);
}

TEST(Network, within_a_node_only_its_switch_is_used) {
  const Network network(rails());
  const Path path = network.path(0, 3);
  EXPECT_EQ(path.latency, kLocal.latency);
  EXPECT_EQ(capacities(network, path), (std::vector<std::uint64_t>(2, kLocal.bytes_per_second)));
}

TEST(Network, same_rail_and_leaf_goes_from_nic_to_nic) {
  const Network network(rails());
  const Path path = network.path(1, 5);
  EXPECT_EQ(path.latency, kNic.latency);
  EXPECT_EQ(capacities(network, path), (std::vector<std::uint64_t>(2, kNic.bytes_per_second)));
}

TEST(Network, other_leaf_goes_over_the_spine) {
  const Network network(rails());
  const Path path = network.path(1, 9);
  EXPECT_EQ(path.latency, kNic.latency + 1'000'000);
  // A leaf of one rail has two NICs below and half of that above.
  EXPECT_EQ(capacities(network, path), (std::vector<std::uint64_t>(4, kNic.bytes_per_second)));
  EXPECT_EQ(network.path(5, 13).links[1], path.links[1]) << "the leaf's way up is shared";
  EXPECT_NE(network.path(2, 10).links[1], path.links[1]) << "each rail has its own";
}

TEST(Network, other_rail_goes_over_the_nodes_switch_first) {
  const Network network(rails());
  const Path path = network.path(0, 7);
  EXPECT_EQ(path.latency, kNic.latency + kLocal.latency);
  EXPECT_EQ(capacities(network, path), (std::vector<std::uint64_t>{kLocal.bytes_per_second, kLocal.bytes_per_second,
                                                                   kNic.bytes_per_second, kNic.bytes_per_second}));
  EXPECT_EQ(path.links[3], network.path(3, 7).links[1]) << "into the NIC of the rank's own rail";
  EXPECT_EQ(network.path(0, 15).count, 6);
}

TEST(Network, without_rails_every_nic_reaches_every_other) {
  Cluster cluster = rails();
  cluster.rails = false;
  const Network network(cluster);
  EXPECT_EQ(network.path(0, 7).count, 2);
  EXPECT_EQ(network.path(0, 15).count, 4);
  // One leaf for all NICs of two nodes: eight below, half of that above.
  EXPECT_EQ(capacities(network, network.path(0, 15))[1], 4 * kNic.bytes_per_second);
}

TEST(Network, ranks_share_a_nic_or_have_several) {
  Cluster cluster = rails();
  cluster.nics_per_node = 1;
  const Network one(cluster);
  EXPECT_EQ(one.path(0, 4).links[0], one.path(3, 4).links[0]);
  cluster.nics_per_node = 2;
  const Network two(cluster);
  EXPECT_EQ(two.path(0, 4).links[0], two.path(1, 4).links[0]);
  EXPECT_NE(two.path(0, 4).links[0], two.path(2, 6).links[0]);
  cluster.nics_per_node = 8;
  const Network eight(cluster);
  EXPECT_EQ(capacities(eight, eight.path(0, 4)), (std::vector<std::uint64_t>(2, 2 * kNic.bytes_per_second)));
}

TEST(Network, a_domain_of_several_nodes_is_local) {
  Cluster cluster = rails();
  cluster.domain_nodes = 2;
  const Network network(cluster);
  EXPECT_EQ(network.path(0, 7).latency, kLocal.latency);
  EXPECT_EQ(network.path(0, 8).latency, kNic.latency + 1'000'000);
  EXPECT_EQ(network.ranks_per_domain(), 8U);
}

TEST(Network, switches_are_reached_by_the_port_that_leads_there) {
  const Network network(rails());
  EXPECT_EQ(capacities(network, network.to_switch(1, SwitchPlace::node)), (std::vector{kLocal.bytes_per_second}));
  EXPECT_EQ(network.to_switch(1, SwitchPlace::fabric).links[0], network.path(1, 5).links[0]);
  EXPECT_EQ(network.from_switch(5, SwitchPlace::fabric).links[0], network.path(1, 5).links[1]);
}

// Every path of a small cluster: links that exist, each once, the way there apart from the way back.
TEST(Network, paths_are_made_of_different_links) {
  for (const std::uint32_t nics : {1U, 2U, 3U, 4U, 5U}) {
    for (const std::uint32_t leaf : {0U, 1U, 3U}) {
      for (const bool by_rail : {false, true}) {
        Cluster cluster = rails();
        cluster.nics_per_node = nics;
        cluster.nodes_per_leaf = leaf;
        cluster.rails = by_rail;
        const Network network(cluster);
        for (std::uint32_t from = 0; from < network.ranks(); ++from) {
          for (std::uint32_t to = 0; to < network.ranks(); ++to) {
            if (from == to) continue;
            const Path path = network.path(from, to), back = network.path(to, from);
            std::set<std::uint32_t> links(path.all().begin(), path.all().end());
            ASSERT_EQ(links.size(), path.count);
            ASSERT_LT(*links.rbegin(), network.capacities().size());
            for (const std::uint32_t link : back.all()) ASSERT_FALSE(links.contains(link));
          }
        }
      }
    }
  }
}

TEST(Network, says_what_is_wrong_with_a_cluster) {
  const auto problem = [](auto change) {
    Cluster cluster = rails();
    change(cluster);
    try {
      const Network network(cluster);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(problem([](Cluster&) {}), "");
  EXPECT_EQ(problem([](Cluster& c) { c.network.bytes_per_second = 0; }),
            "cluster: network: expected a rate of more than 0");
  EXPECT_EQ(problem([](Cluster& c) { c.local.bytes_per_second = 0; }),
            "cluster: local: expected a rate of more than 0");
  EXPECT_NE(problem([](Cluster& c) { c.local.latency = -1; }), "");
  EXPECT_NE(problem([](Cluster& c) { c.nodes = 0; }), "");
  EXPECT_NE(problem([](Cluster& c) { c.nodes = c.ranks_per_node = 1U << 31; }), "");
  EXPECT_NE(problem([](Cluster& c) { c.nics_per_node = ~0U; }), "");
  EXPECT_NE(problem([](Cluster& c) { c.oversubscription = 0; }), "");
  EXPECT_NE(problem([](Cluster& c) { c.oversubscription = 0.0 / 0.0; }), "");
  EXPECT_NE(problem([](Cluster& c) { c.network.bytes_per_second = ~std::uint64_t{0}; }), "");
}

}  // namespace
}  // namespace ddx::sim
