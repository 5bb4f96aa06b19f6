// Steps as events: ranks that come at different times, messages that share links, what is refused.
#include "sim/collectives/step_simulation.h"

#include <algorithm>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/sim/collectives/plain_steps.h"

namespace ddx::sim {
namespace {

constexpr LinkSpec kUnit{kPicosPerSecond, 100};  // one byte a picosecond

std::vector<Picos> ends(std::string_view name, const Work& work, const std::vector<Picos>& arrivals,
                        const Network& network) {
  return simulate_steps(*find_algorithm(name), work, arrivals, network);
}
Picos last(const std::vector<Picos>& times) { return *std::max_element(times.begin(), times.end()); }

TEST(StepSimulation, each_rank_ends_when_its_own_part_is_done) {
  // A chain of one chunk: rank r has it after r hops, and is done when it has passed it on.
  EXPECT_EQ(ends("ring", {OpKind::broadcast, 1000}, {0, 0, 0}, Network(3, kUnit)),
            (std::vector<Picos>{1000, 2100, 2200}));
}

TEST(StepSimulation, a_late_rank_holds_up_those_behind_it) {
  // all_gather on three ranks, blocks of 1000: rank 1 comes at 5000 and only then sends its own to rank 2.
  // Rank 2: own to 0 by 1100; 1's at 6100, 0's (which 1 has had since 1100, and sends second) at 7200 since rank 1's
  // second step begins when its first send has left, at 6000.
  EXPECT_EQ(ends("ring", {OpKind::all_gather, 3000}, {0, 5000, 0}, Network(3, kUnit)),
            (std::vector<Picos>{7200, 7000, 7100}));
}

TEST(StepSimulation, messages_into_one_port_share_it) {
  // Two senders of 1000 into the root. The second comes 500 later: the first has 500 left, both go at half speed until
  // 1500, the second has 500 left and is done at 2000.
  EXPECT_EQ(ends("linear", {OpKind::gather, 3000}, {0, 0, 500}, Network(3, kUnit)),
            (std::vector<Picos>{2100, 1500, 2000}));
  // Three at once: 1/3 each.
  EXPECT_EQ(ends("linear", {OpKind::gather, 4000}, {0, 0, 0, 0}, Network(4, kUnit)),
            (std::vector<Picos>{3100, 3000, 3000, 3000}));
}

TEST(StepSimulation, ranks_of_a_node_share_its_nic) {
  Cluster cluster;
  cluster.nodes = 2;
  cluster.ranks_per_node = 2;
  cluster.local = {10 * kPicosPerSecond, 1};
  cluster.network = kUnit;
  cluster.nics_per_node = 1;
  const Network network(cluster);
  // Ranks 0 and 1 exchange with 2 and 3 at once: twice as long as with a NIC each.
  EXPECT_EQ(last(ends("bcube", {OpKind::all_reduce, 4000}, {0, 0, 0, 0}, network)),
            // Within the node 2000 at 10 bytes, between them 1000 with half a NIC; then back.
            2 * (200 + 1) + 2 * (2000 + 100));
  cluster.nics_per_node = 2;
  EXPECT_EQ(last(ends("bcube", {OpKind::all_reduce, 4000}, {0, 0, 0, 0}, Network(cluster))),
            2 * (200 + 1) + 2 * (1000 + 100));
}

TEST(StepSimulation, an_oversubscribed_leaf_slows_all_that_cross_it) {
  Cluster cluster;
  cluster.nodes = 4;
  cluster.network = kUnit;
  cluster.nodes_per_leaf = 2;
  cluster.oversubscription = 4;  // two NICs below, half a NIC above
  const Network network(cluster);
  const std::vector<Picos> at_once(4);
  // Neighbours 0-1 and 2-3 in full speed; 0-2 and 1-3 over the spine at a quarter.
  EXPECT_EQ(last(ends("bcube", {OpKind::all_reduce, 4000}, at_once, network)), 2 * (2000 + 100) + 2 * (4000 + 100));
}

TEST(StepSimulation, where_the_members_sit_decides) {
  Cluster cluster;
  cluster.nodes = 2;
  cluster.ranks_per_node = 2;
  cluster.local = {10 * kPicosPerSecond, 1};
  cluster.network = kUnit;
  cluster.nics_per_node = 2;
  const Network network(cluster);
  const std::vector<Picos> arrivals(2);
  const Algorithm& ring = *find_algorithm("ring");
  const Work work{OpKind::all_reduce, 2000};
  EXPECT_EQ(last(simulate_steps(ring, work, arrivals, network, std::vector<std::uint32_t>{0, 1})), 2 * (100 + 1));
  EXPECT_EQ(last(simulate_steps(ring, work, arrivals, network, std::vector<std::uint32_t>{1, 3})), 2 * (1000 + 100));
}

TEST(StepSimulation, every_algorithm_runs_on_nodes_with_rails_and_leaves) {
  Cluster cluster;
  cluster.nodes = 8;
  cluster.ranks_per_node = 4;
  cluster.local = {450'000'000'000, 700'000};
  cluster.network = {50'000'000'000, 5'000'000};
  cluster.nics_per_node = 4;
  cluster.nodes_per_leaf = 4;
  cluster.oversubscription = 2;
  const Network network(cluster);
  for (const Algorithm& algorithm : algorithms()) {
    for (const OpKind kind : algorithm.kinds) {
      if (!algorithm.runs(kind, {32, 4, false})) continue;
      const auto done = ends(algorithm.name, {kind, 10'000'000}, std::vector<Picos>(32), network);
      EXPECT_GT(last(done), 0) << algorithm.name << " " << name_of(kind);
      EXPECT_LT(last(done), kPicosPerSecond) << algorithm.name << " " << name_of(kind);
    }
  }
  EXPECT_THROW(ends("nvls", {OpKind::all_reduce, 1}, std::vector<Picos>(32), network), Error) << "no switch for all";
}

// Members may be numbered in any way: on a flat network a rotation of a ring is the same ring.
TEST(StepSimulation, numbering_decides_nothing) {
  std::mt19937_64 random(3);
  for (const std::uint32_t n : {5U, 16U, 33U}) {
    const Network network(n, {1'000'000'007, 30'000});
    std::vector<Picos> arrivals(n);
    for (Picos& arrival : arrivals) arrival = static_cast<Picos>(random() % 100'000'000);
    for (const char* name : {"ring", "pairwise", "bruck"}) {
      const Work work{std::string_view(name) == "ring" ? OpKind::all_reduce : OpKind::all_to_all, 1'000'003};
      const auto straight = ends(name, work, arrivals, network);
      for (std::uint32_t by = 1; by < n; ++by) {
        std::vector<Picos> rotated(arrivals);
        std::rotate(rotated.begin(), rotated.begin() + by, rotated.end());
        auto turned = ends(name, work, rotated, network);
        std::rotate(turned.begin(), turned.end() - by, turned.end());
        ASSERT_EQ(turned, straight) << name << " on " << n << " by " << by;
      }
      // Nor do the numbers of the ports, which are the order of the events.
      std::vector<std::uint32_t> places(n);
      std::iota(places.begin(), places.end(), 0U);
      std::shuffle(places.begin(), places.end(), random);
      ASSERT_EQ(simulate_steps(*find_algorithm(name), work, arrivals, network, places), straight) << name;
    }
  }
}

TEST(StepSimulation, all_alike_on_any_run_with_late_ranks) {
  std::mt19937_64 random(4);
  for (const Algorithm& algorithm : algorithms()) {
    const OpKind kind = algorithm.kinds.front();
    for (const std::uint32_t n : {2U, 8U, 13U, 24U}) {
      if (!algorithm.runs(kind, flat_members(n))) continue;
      std::vector<Picos> arrivals(n);
      for (Picos& arrival : arrivals) arrival = static_cast<Picos>(random() % 20'000'000);
      const Network network(n, {50'000'000'000, 1'000'000});
      const auto first = ends(algorithm.name, {kind, 3'000'000}, arrivals, network);
      EXPECT_EQ(ends(algorithm.name, {kind, 3'000'000}, arrivals, network), first) << algorithm.name;
      for (std::uint32_t rank = 0; rank < n; ++rank) EXPECT_GE(first[rank], arrivals[rank]) << algorithm.name;
      // Moving everybody moves the end, and nothing else.
      for (Picos& arrival : arrivals) arrival += 777;
      auto moved = ends(algorithm.name, {kind, 3'000'000}, arrivals, network);
      for (Picos& end : moved) end -= 777;
      EXPECT_EQ(moved, first) << algorithm.name;
    }
  }
}

struct Place {
  std::string name;
  Network network;
  Members members;
};

std::vector<Place> places() {
  Cluster cluster;
  cluster.ranks_per_node = 4;
  cluster.local = {450'000'000'000, 700'000};
  cluster.network = {50'000'000'000, 5'000'000};
  std::vector<Place> all{{"flat 9", Network(9, {25'000'000'000, 2'000'000}), flat_members(9)},
                         {"flat 16", Network(16, {25'000'000'000, 2'000'000}), flat_members(16)}};
  cluster.nodes = 4;
  cluster.nics_per_node = 1;
  all.push_back({"one NIC", Network(cluster), {16, 4, false}});
  cluster.nics_per_node = 4;
  cluster.nodes_per_leaf = 1;
  cluster.oversubscription = 3;
  cluster.spine_latency = 1'000'000;
  all.push_back({"rails and leaves", Network(cluster), {16, 4, false}});
  cluster.rails = false;
  cluster.nodes_per_leaf = 3;
  all.push_back({"no rails", Network(cluster), {16, 4, false}});
  return all;
}

// Ranks that come at any time, so that messages meet in ports and on links in any way.
TEST(StepSimulation, agrees_with_plain_sharing_at_every_event) {
  std::mt19937_64 random(11);
  for (const Place& place : places()) {
    for (const Algorithm& algorithm : algorithms()) {
      for (const OpKind kind : algorithm.kinds) {
        if (!algorithm.runs(kind, place.members)) continue;
        for (const std::uint64_t bytes : {0U, 999U, 3'000'000U}) {
          std::vector<Picos> arrivals(place.members.ranks);
          for (Picos& arrival : arrivals) arrival = static_cast<Picos>(random() % 200'000'000);
          const Work work{kind, bytes};
          const auto fast = simulate_steps(algorithm, work, arrivals, place.network);
          const auto schedule = algorithm.schedule(work, place.members);
          const auto plain = ddx::testing::plain_steps(*schedule, algorithm.reduces_in, arrivals, place.network);
          for (std::size_t rank = 0; rank < fast.size(); ++rank) {
            // An end half way between two picoseconds may fall to either side.
            ASSERT_NEAR(static_cast<double>(fast[rank]), plain[rank], 20)
                << algorithm.name << " " << name_of(kind) << " of " << bytes << " on " << place.name << ", rank "
                << rank;
          }
        }
      }
    }
  }
}

TEST(StepSimulation, refuses_what_makes_no_sense) {
  const Network network(4, kUnit);
  const Algorithm& ring = *find_algorithm("ring");
  const std::vector<Picos> four(4);
  EXPECT_THROW(simulate_steps(ring, {OpKind::all_to_all, 1}, four, network), Error);
  EXPECT_THROW(simulate_steps(ring, {OpKind::all_reduce, 1}, {}, network), Error);
  EXPECT_THROW(simulate_steps(ring, {OpKind::all_reduce, 1}, std::vector<Picos>{0, -1}, network), Error);
  EXPECT_THROW(simulate_steps(ring, {OpKind::all_reduce, 1}, std::vector<Picos>(5), network), Error);
  EXPECT_THROW(
      simulate_steps(ring, {OpKind::all_reduce, 1}, std::vector<Picos>(2), network, std::vector<std::uint32_t>{0, 9}),
      Error);
  EXPECT_THROW(
      simulate_steps(ring, {OpKind::all_reduce, 1}, std::vector<Picos>(2), network, std::vector<std::uint32_t>{1, 1}),
      Error);
  EXPECT_THROW(simulate_steps(ring, {OpKind::all_reduce, ~std::uint64_t{0}}, four, network), Error)
      << "a message too large";
  EXPECT_THROW(simulate_steps(ring, {OpKind::all_reduce, std::uint64_t{1} << 50}, four, Network(4, {1, 0})), Error)
      << "longer than the clock";
  EXPECT_THROW(flat_price({OpKind::all_reduce, 1}, 3, kUnit, *find_algorithm("halving-doubling")), Error);
  EXPECT_THROW(flat_price({OpKind::all_reduce, 1}, 0, kUnit, ring), Error);
  EXPECT_THROW(flat_price({OpKind::all_reduce, 1}, 2, {0, 0}, ring), Error);
}

}  // namespace
}  // namespace ddx::sim
