#include "traces/formats/lane_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <string>

namespace ddx::formats {
namespace {

using Ids = std::vector<std::uint64_t>;

class LaneGraph {
 public:
  LaneGraph& compute(std::uint64_t id, std::uint32_t lane, std::uint64_t length, Ids deps = {}) {
    return add(id, {lane, true, length}, false, std::move(deps));
  }
  LaneGraph& call(std::uint64_t id, std::uint32_t lane, Ids deps = {}) {
    return add(id, {lane, false, 0}, true, std::move(deps));
  }
  LaneGraph& send(std::uint64_t id, std::uint32_t lane, Ids deps = {}) {
    return add(id, {lane, false, 0}, false, std::move(deps));
  }
  LaneGraph& note(std::uint64_t id, Ids deps = {}) { return add(id, {}, false, std::move(deps)); }

  std::vector<OrderStep> steps() const {
    GraphFaults faults;
    return lane_order(nodes, dependency_order(nodes, faults), lanes);
  }
  std::string order() const {
    std::string text;
    for (const OrderStep& step : steps()) {
      if (!text.empty()) text += ' ';
      if (step.kind == OrderStep::Kind::wait) text += 'w';
      text += std::to_string(nodes[step.node].id);
    }
    return text;
  }
  std::vector<GraphNode> nodes;
  std::vector<Lane> lanes;

 private:
  LaneGraph& add(std::uint64_t id, Lane lane, bool ends_later, Ids deps) {
    nodes.push_back({id, lists_.emplace_back(std::move(deps)), {}, ends_later});
    lanes.push_back(lane);
    return *this;
  }
  std::deque<Ids> lists_;
};

TEST(LaneOrder, waits_only_for_other_lanes) {
  EXPECT_EQ(LaneGraph().compute(1, 0, 5).compute(2, 0, 5, {1}).order(), "1 2");
  EXPECT_EQ(LaneGraph().compute(1, 0, 5).compute(2, 1, 5, {1}).order(), "1 w1 2");
  EXPECT_EQ(LaneGraph().compute(1, 0, 5).compute(2, 0, 5).compute(3, 1, 5, {1, 2}).compute(4, 1, 5, {1}).order(),
            "1 2 w1 4 w2 3")
      << "4 is ready at 5, 3 at 10";
  EXPECT_EQ(LaneGraph().compute(1, 0, 5).note(2, {1}).compute(3, 1, 5, {2}).order(), "1 w1 2 3")
      << "what depends on a note depends on what it depends on";
  EXPECT_EQ(LaneGraph().compute(1, 0, 5).send(2, 1, {1}).compute(3, 0, 5, {2}).order(), "1 w1 2 3");
}

TEST(LaneOrder, what_waits_for_calls_comes_last) {
  EXPECT_EQ(LaneGraph().call(1, 9).compute(2, 0, 5, {1}).compute(3, 0, 5).compute(4, 1, 5, {3}).order(),
            "1 3 w3 4 w1 2");
}

TEST(LaneOrder, calls_of_one_lane_keep_their_order) {
  EXPECT_EQ(LaneGraph().compute(1, 0, 9).compute(2, 1, 1).call(3, 9, {1}).call(4, 9, {2}).order(), "1 2 w1 3 w2 4");
  EXPECT_EQ(LaneGraph().compute(1, 0, 9).compute(2, 1, 1).call(3, 8, {1}).call(4, 9, {2}).order(), "1 2 w2 4 w1 3");
}

TEST(LaneOrder, circles_and_taken_ids_do_not_lose_a_node) {
  EXPECT_EQ(LaneGraph().compute(1, 0, 1, {2}).compute(2, 0, 1, {1}).compute(2, 1, 1).order(), "2 1 2");
}

// Random computations: with each issued by a host that only waits where it is told to, nothing starts before what it
// depends on has ended, and nothing later than that and its lane ask for.
TEST(LaneOrder, no_wait_holds_up_what_could_run) {
  std::mt19937 random(7);
  const auto below = [&random](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (int round = 0; round < 300; ++round) {
    LaneGraph graph;
    const std::size_t n = 1 + below(40), lanes = 1 + below(4);
    for (std::size_t id = 0; id < n; ++id) {
      Ids deps;
      for (std::size_t k = below(3); id > 0 && k > 0; --k) deps.push_back(below(id));
      graph.compute(id, static_cast<std::uint32_t>(below(lanes)), below(20), deps);
    }
    std::uint64_t host = 0;
    std::vector<std::uint64_t> end(n, 0), free_at(lanes, 0);
    std::size_t ran = 0;
    for (const OrderStep& step : graph.steps()) {
      if (step.kind == OrderStep::Kind::wait) {
        host = std::max(host, end[step.node]);
        continue;
      }
      ++ran;
      std::uint64_t ready = 0;
      for (const std::uint64_t dep : graph.nodes[step.node].deps) ready = std::max(ready, end[dep]);
      std::uint64_t& free = free_at[*graph.lanes[step.node].number];
      const std::uint64_t start = std::max(host, free);
      ASSERT_GE(start, ready) << "round " << round << " node " << step.node;
      ASSERT_LE(start, std::max(ready, free)) << "round " << round << " node " << step.node;
      end[step.node] = free = start + graph.lanes[step.node].length;
    }
    ASSERT_EQ(ran, n);
  }
}

}  // namespace
}  // namespace ddx::formats
