// Max-min fair shares: cases solved by hand, and what defines them (Bertsekas, Gallager: Data networks, 6.5.2): nobody
// can get more unless somebody who has no more gets less.
#include "sim/network/fair_share.h"

#include <algorithm>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "tests/sim/network/sharing_problem.h"

namespace ddx::sim {
namespace {

using ddx::testing::Problem;
using ddx::testing::random_problem;
using ddx::testing::rates;
using ddx::testing::shares;
using ddx::testing::TestFlow;

TEST(FairShare, one_link_is_shared_alike) {
  EXPECT_EQ(rates({100}, {{{{0}}}}), (std::vector<double>{100}));
  EXPECT_EQ(rates({100}, {{{{0}}}, {{{0}}}, {{{0}}}, {{{0}}}}), (std::vector<double>{25, 25, 25, 25}));
}

TEST(FairShare, three_links_in_a_line) {
  // One flow over all three, one on each: the long one gets what the fullest link gives.
  EXPECT_EQ(rates({100, 100, 100}, {{{{0}, {1}, {2}}}, {{{0}}}, {{{1}}}, {{{2}}}}),
            (std::vector<double>{50, 50, 50, 50}));
  EXPECT_EQ(rates({100, 20, 60}, {{{{0}, {1}, {2}}}, {{{0}}}, {{{1}}}, {{{2}}}}),
            (std::vector<double>{10, 90, 10, 50}));
}

TEST(FairShare, parking_lot) {
  // Flow i gets on at link i and goes to the end: the last link has all of them.
  EXPECT_EQ(rates({90, 90, 90}, {{{{0}, {1}, {2}}}, {{{1}, {2}}}, {{{2}}}}), (std::vector<double>{30, 30, 30}));
  // A narrow first link leaves the rest to the others.
  EXPECT_EQ(rates({10, 90, 90}, {{{{0}, {1}, {2}}}, {{{1}, {2}}}, {{{2}}}}), (std::vector<double>{10, 40, 40}));
}

TEST(FairShare, bertsekas_gallager_example) {
  // Two flows share link 0 of 1, three link 1 of 1, one of them both, link 2 of 2 has the third of link 1 and one more.
  const std::uint64_t unit = 600;
  EXPECT_EQ(rates({unit, unit, 2 * unit}, {{{{0}}}, {{{0}, {1}}}, {{{1}}}, {{{1}, {2}}}, {{{2}}}}),
            (std::vector<double>{400, 200, 200, 200, 1000}));
}

TEST(FairShare, a_flow_at_its_cap_leaves_the_rest) {
  EXPECT_EQ(rates({100}, {{{{0}}, 10}, {{{0}}}, {{{0}}}}), (std::vector<double>{10, 45, 45}));
  EXPECT_EQ(rates({100}, {{{{0}}, 10}, {{{0}}, 20}}), (std::vector<double>{10, 20}));
  EXPECT_EQ(rates({}, {{{}, 10}}), (std::vector<double>{10}));
  EXPECT_EQ(rates({100}, {{{{0}}, 0}, {{{0}}}}), (std::vector<double>{0, 100}));
}

TEST(FairShare, a_flow_of_weight_two_takes_twice_its_rate) {
  EXPECT_EQ(rates({90}, {{{{0, 2}}}, {{{0, 1}}}}), (std::vector<double>{30, 30}));
  EXPECT_EQ(rates({90, 10}, {{{{0, 2}, {1, 1}}}, {{{0, 1}}}}), (std::vector<double>{10, 70}));
}

TEST(FairShare, a_third_is_exact_to_the_last_bit) {
  const auto thirds = shares({100}, {{{{0}}}, {{{0}}}, {{{0}}}});
  EXPECT_EQ(thirds[0], (Rate{rate_of(100).units, 3}));
}

// Left over on a link by rounding down once a flow.
constexpr Wide kRounding = 200;

TEST(FairShare, no_link_is_over_its_capacity_and_every_flow_has_its_bottleneck) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 2000; ++round) {
    const Problem problem = random_problem(random);
    const auto got = shares(problem.capacities, problem.flows);
    std::vector<Wide> load(problem.capacities.size()), largest(problem.capacities.size()), whole;
    for (const Rate& rate : got) whole.push_back(rate.units / rate.parts);
    for (std::size_t flow = 0; flow < got.size(); ++flow) {
      for (const LinkUse& use : problem.flows[flow].uses) {
        load[use.link] += whole[flow] * use.weight;
        largest[use.link] = std::max(largest[use.link], whole[flow]);
      }
    }
    for (std::size_t link = 0; link < load.size(); ++link)
      ASSERT_TRUE(load[link] <= rate_of(problem.capacities[link]).units);
    for (std::size_t flow = 0; flow < got.size(); ++flow) {
      const TestFlow& asked = problem.flows[flow];
      ASSERT_TRUE(asked.cap == kNoCap || whole[flow] <= rate_of(asked.cap).units);
      const bool capped = asked.cap != kNoCap && got[flow] == rate_of(asked.cap);
      const bool bound = std::any_of(asked.uses.begin(), asked.uses.end(), [&](const LinkUse& use) {
        return load[use.link] + kRounding >= rate_of(problem.capacities[use.link]).units &&
               whole[flow] + kRounding >= largest[use.link];
      });
      ASSERT_TRUE(capped || bound) << "round " << round << ", flow " << flow;
    }
  }
}

TEST(FairShare, the_order_of_flows_decides_nothing) {
  std::mt19937_64 random(8);
  for (int round = 0; round < 300; ++round) {
    const Problem problem = random_problem(random);
    const auto got = shares(problem.capacities, problem.flows);
    std::vector<std::size_t> order(got.size());
    std::iota(order.begin(), order.end(), 0U);
    std::shuffle(order.begin(), order.end(), random);
    std::vector<TestFlow> shuffled;
    for (const std::size_t flow : order) shuffled.push_back(problem.flows[flow]);
    const auto again = shares(problem.capacities, shuffled);
    for (std::size_t at = 0; at < order.size(); ++at) ASSERT_EQ(again[at], got[order[at]]);
  }
}

}  // namespace
}  // namespace ddx::sim
