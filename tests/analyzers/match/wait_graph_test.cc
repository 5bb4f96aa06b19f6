#include "analyzers/match/wait_graph.h"

#include <gtest/gtest.h>

#include "tests/support/ops_text.h"

namespace ddx::analyzers {
namespace {

using Edges = std::vector<std::pair<std::vector<std::uint32_t>, std::vector<std::uint32_t>>>;  // waiters -> missing

WaitGraph graph_of(std::uint32_t ranks, const Edges& edges) {
  WaitGraph graph;
  for (std::uint32_t r = 0; r < ranks; ++r) graph.ranks.emplace_back(r);
  graph.waits_in.resize(ranks);
  graph.awaited_in.resize(ranks);
  for (const auto& [waiters, missing] : edges) {
    Instance instance;
    instance.waiters = waiters;
    instance.missing = missing;
    add_instance(graph, std::move(instance));
  }
  return graph;
}

using Sets = std::vector<std::vector<std::uint32_t>>;
using Set = std::vector<std::uint32_t>;

TEST(WaitGraph, a_chain_is_no_circle) {
  const WaitGraph graph = graph_of(4, {{{0, 1}, {2}}, {{2}, {3}}});
  EXPECT_EQ(cycles(graph), Sets{});
  EXPECT_EQ(who_waits_on(graph, {3}), (Set{0, 1, 2}));
  EXPECT_EQ(who_waits_on(graph, {2}), (Set{0, 1}));
}

TEST(WaitGraph, victims_are_no_part_of_the_circle) {
  // 0 and 1 wait for each other; 2 waits for 1, 3 for 2.
  const WaitGraph graph = graph_of(4, {{{0}, {1}}, {{1}, {0}}, {{2}, {1}}, {{3}, {2}}});
  EXPECT_EQ(cycles(graph), (Sets{{0, 1}}));
  EXPECT_EQ(on_every_cycle(graph, {0, 1}), (Set{0, 1}));
  EXPECT_EQ(shortest_cycle(graph, {0, 1}, 0).size(), 2u);
}

TEST(WaitGraph, one_against_three) {
  // 0-2 wait for 3 in one group, 3 waits for them in another: only 3 is on every circle.
  const WaitGraph graph = graph_of(4, {{{0, 1, 2}, {3}}, {{3}, {0, 1, 2}}});
  EXPECT_EQ(cycles(graph), (Sets{{0, 1, 2, 3}}));
  EXPECT_EQ(on_every_cycle(graph, {0, 1, 2, 3}), (Set{3}));
}

TEST(WaitGraph, two_against_two_has_no_single_culprit) {
  const WaitGraph graph = graph_of(4, {{{0, 1}, {2, 3}}, {{2, 3}, {0, 1}}});
  EXPECT_EQ(on_every_cycle(graph, {0, 1, 2, 3}), Set{});
}

TEST(WaitGraph, a_ring_goes_through_all) {
  const WaitGraph graph = graph_of(3, {{{0}, {1}}, {{1}, {2}}, {{2}, {0}}});
  EXPECT_EQ(on_every_cycle(graph, {0, 1, 2}), (Set{0, 1, 2}));
  const auto steps = shortest_cycle(graph, {0, 1, 2}, 1);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].rank, 1u);
  EXPECT_EQ(steps[1].rank, 2u);
  EXPECT_EQ(steps[2].rank, 0u);
}

TEST(WaitGraph, two_circles_apart) {
  const WaitGraph graph = graph_of(5, {{{0}, {1}}, {{1}, {0}}, {{3}, {4}}, {{4}, {3}}, {{2}, {0, 4}}});
  EXPECT_EQ(cycles(graph), (Sets{{0, 1}, {3, 4}}));
}

TEST(WaitGraph, who_waits_for_itself_is_a_circle) {
  const WaitGraph graph = graph_of(3, {{{0}, {0}}, {{1}, {0}}});
  EXPECT_EQ(cycles(graph), Sets{{0}});
  EXPECT_EQ(on_every_cycle(graph, {0}), Set{0});
}

// 0 and 1 wait for each other, but 0 has gone on from the call in which it waits for 1.
TEST(WaitGraph, a_wait_that_a_rank_went_on_from_closes_no_certain_circle) {
  WaitGraph graph = graph_of(2, {{{0}, {1}}, {{1}, {0}}});
  EXPECT_EQ(cycles(graph), Sets({{0, 1}}));
  graph.passed = {{0}, {}};
  EXPECT_EQ(cycles(without_passed(graph)), Sets{});
}

// Half of the ranks issue a before b, the others b before a: the graph has a node a call, not one a rank, and its edges
// grow with the ranks, not with their square.
TEST(WaitGraph, ranks_at_one_collective_share_a_node) {
  constexpr std::size_t kRanks = 2048;
  const Evidence evidence = testing::evidence_of(
      "world 2048\npg a = 0-2047\npg b = 0-2047\n0-2047 record snapshot part stream_ordered\n"
      "0-1023 all_reduce f32 8 a seq=1 [started]\n0-1023 all_gather f32 8 b seq=1 [scheduled]\n"
      "1024-2047 all_gather f32 8 b seq=1 [started]\n1024-2047 all_reduce f32 8 a seq=1 [scheduled]\n");
  const WaitGraph graph = issue_order_graph(build_job_view(evidence, {}));
  std::size_t edges = 0;
  for (const Instance& instance : graph.instances) edges += instance.waiters.size() + instance.missing.size();
  EXPECT_EQ(graph.instances.size(), 2u);
  EXPECT_EQ(edges, 2 * kRanks);
  ASSERT_EQ(cycles(graph).size(), 1u);
  EXPECT_EQ(cycles(graph).front().size(), kRanks);
}

TEST(WaitGraph, deep_chains_need_no_stack) {
  Edges edges;
  constexpr std::uint32_t kRanks = 200'000;
  for (std::uint32_t r = 0; r + 1 < kRanks; ++r) edges.push_back({{r}, {r + 1}});
  EXPECT_EQ(cycles(graph_of(kRanks, edges)), Sets{});
  edges.push_back({{kRanks - 1}, {0}});
  EXPECT_EQ(cycles(graph_of(kRanks, edges)).front().size(), kRanks);
}

}  // namespace
}  // namespace ddx::analyzers
