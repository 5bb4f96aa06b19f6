#include "traces/formats/dependency_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <set>
#include <string>

namespace ddx::formats {
namespace {

using testing::ElementsAre;
using Ids = std::vector<std::uint64_t>;

class Graph {
 public:
  Graph& node(std::uint64_t id, Ids deps = {}, bool ends_later = false, Ids soft = {}) {
    const Ids& hard = lists_.emplace_back(std::move(deps));
    nodes_.push_back({id, hard, lists_.emplace_back(std::move(soft)), ends_later});
    return *this;
  }
  // "5 w5 6": node 5 runs, is waited for, 6 runs.
  std::string order() {
    std::string text;
    for (const OrderStep& step : dependency_order(nodes_, faults)) {
      if (!text.empty()) text += ' ';
      if (step.kind == OrderStep::Kind::wait) text += 'w';
      text += std::to_string(nodes_[step.node].id);
    }
    return text;
  }
  GraphFaults faults;

 private:
  std::deque<Ids> lists_;
  std::vector<GraphNode> nodes_;
};

TEST(DependencyOrder, is_by_id_among_those_that_can_run) {
  EXPECT_EQ(Graph().node(3).node(1).node(2).order(), "1 2 3");
  EXPECT_EQ(Graph().node(1, {9}).node(2).node(9, {3}).node(3).order(), "2 3 9 1");
  EXPECT_EQ(Graph().order(), "");
}

TEST(DependencyOrder, waits_once_before_the_first_that_depends_on_what_ends_later) {
  EXPECT_EQ(Graph().node(1, {}, true).node(2, {1}).node(3, {1}).order(), "1 w1 2 3");
  EXPECT_EQ(Graph().node(1, {}, true).node(2).order(), "1 2");
  EXPECT_EQ(Graph().node(1, {}, true).node(2, {}, true).node(3, {1, 2}).order(), "1 2 w1 w2 3");
}

TEST(DependencyOrder, nothing_that_could_run_stands_behind_a_wait) {
  // 4 needs nothing: a rank that held it back until 1 is over could hold up the one that 1 waits for.
  EXPECT_EQ(Graph().node(1, {}, true).node(2, {1}).node(3, {2}).node(4).order(), "1 4 w1 2 3");
}

TEST(DependencyOrder, dangling_and_duplicate_ids_are_told_and_do_not_matter) {
  Graph graph;
  EXPECT_EQ(graph.node(1, {77}).node(2, {1}).node(1).node(3, {}, false, {78}).order(), "1 1 2 3");
  EXPECT_EQ(graph.faults.dangling_count, 2U);
  EXPECT_THAT(graph.faults.dangling, ElementsAre(std::pair(1U, 77U), std::pair(3U, 78U)));
  EXPECT_EQ(graph.faults.duplicate_count, 1U);
  EXPECT_THAT(graph.faults.duplicates, ElementsAre(1U));
}

TEST(DependencyOrder, a_circle_is_named_and_cut_at_its_least_id) {
  Graph graph;
  EXPECT_EQ(graph.node(1).node(5, {7}).node(6, {5}).node(7, {6}).node(8, {7}).order(), "1 5 6 7 8");
  ASSERT_EQ(graph.faults.cycles.size(), 1U);
  EXPECT_THAT(graph.faults.cycles[0].ids, ElementsAre(5U, 7U, 6U));
  EXPECT_FALSE(graph.faults.cycles[0].soft);
  EXPECT_EQ(graph.faults.cuts, 1U);
  Graph itself;
  EXPECT_EQ(itself.node(2, {2}).order(), "2");
  EXPECT_THAT(itself.faults.cycles.at(0).ids, ElementsAre(2U));
}

TEST(DependencyOrder, a_soft_dependency_that_closes_a_circle_is_given_up_first) {
  Graph graph;
  // By the hard dependencies alone: 9 before 2 before 1.
  EXPECT_EQ(graph.node(1, {2}).node(2, {9}).node(9, {}, false, {1}).order(), "9 2 1");
  EXPECT_EQ(graph.faults.cuts, 0U);
  EXPECT_EQ(graph.faults.soft_cuts, 1U);
  EXPECT_TRUE(graph.faults.cycles.at(0).soft);
  EXPECT_EQ(Graph().node(1, {}, false, {2}).node(2).order(), "2 1") << "elsewhere it orders like the others";
}

// Every node runs once, behind what it depends on, and everything that ends later is waited for before it is used.
TEST(DependencyOrder, holds_on_random_graphs_with_and_without_circles) {
  std::uint64_t state = 7;
  const auto random = [&](std::uint64_t below) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (state >> 33) % below;
  };
  for (int round = 0; round < 300; ++round) {
    const std::size_t n = 1 + random(40);
    const bool circles = round % 2 == 1;
    std::deque<Ids> lists;
    std::vector<GraphNode> nodes;
    for (std::uint64_t id = 0; id < n; ++id) {
      Ids& deps = lists.emplace_back();
      for (std::uint64_t k = random(4); k-- > 0;) deps.push_back(circles ? random(n) : n - 1 - random(n - id));
      if (!circles) std::erase(deps, id);
      nodes.push_back({id, deps, {}, random(2) == 0});
    }
    GraphFaults faults;
    std::set<std::uint64_t> ran, waited;
    std::size_t early = 0;
    for (const OrderStep& step : dependency_order(nodes, faults)) {
      if (step.kind == OrderStep::Kind::wait) {
        EXPECT_TRUE(ran.contains(step.node));
        EXPECT_TRUE(waited.insert(step.node).second) << "waited for twice";
        continue;
      }
      bool behind = true;
      for (const std::uint64_t dep : nodes[step.node].deps) {
        behind = behind && ran.contains(dep);
        EXPECT_TRUE(!ran.contains(dep) || !nodes[dep].ends_later || waited.contains(dep));
      }
      early += behind ? 0 : 1;
      EXPECT_TRUE(ran.insert(step.node).second) << "ran twice";
    }
    EXPECT_EQ(ran.size(), n);
    EXPECT_EQ(early, faults.cuts);
    EXPECT_EQ(faults.cycles.empty(), faults.cuts == 0);
    EXPECT_TRUE(circles || faults.cuts == 0);
  }
}

TEST(DependencyOrder, takes_no_time_over_chains_and_circles_of_a_large_graph) {
  std::vector<GraphNode> nodes;
  std::deque<Ids> lists;
  constexpr std::uint64_t kMany = 200'000;
  for (std::uint64_t id = 0; id < kMany; ++id)
    nodes.push_back({id, lists.emplace_back(Ids{id ^ 1, id + 1}), {}, false});
  GraphFaults faults;
  EXPECT_EQ(dependency_order(nodes, faults).size(), kMany);
}

}  // namespace
}  // namespace ddx::formats
