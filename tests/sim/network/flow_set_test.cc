// Flows that come and go: worked out by hand, and against rates found anew at every change.
#include "sim/network/flow_set.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "tests/sim/network/sharing_problem.h"

namespace ddx::sim {
namespace {

using ddx::testing::Problem;
using ddx::testing::random_problem;
using ddx::testing::rates;
using ddx::testing::TestFlow;

constexpr std::uint64_t kRate = kPicosPerSecond;  // one byte a picosecond

TEST(FlowSet, a_flow_alone_takes_bytes_over_capacity) {
  FlowSet set({50'000'000'000});
  const auto flow = set.add(7, amount_of(1'000'001), std::vector<LinkUse>{{0}});
  EXPECT_EQ(set.next_finish(), 7 + transfer_time(1'000'001, 50'000'000'000));
  std::vector<FlowSet::FlowId> finished;
  set.take_finished(*set.next_finish(), finished);
  EXPECT_EQ(finished, std::vector{flow});
  EXPECT_TRUE(set.empty());
  EXPECT_EQ(set.next_finish(), std::nullopt);
}

TEST(FlowSet, who_comes_later_slows_down_and_who_leaves_speeds_up) {
  // A has moved 100 of 300 when B comes with 100; both at half speed until B is done at 300, A's last 100 by 400.
  FlowSet set({kRate});
  const std::vector<LinkUse> link{{0}};
  const auto a = set.add(0, amount_of(300), link);
  EXPECT_EQ(set.next_finish(), 300);
  const auto b = set.add(100, amount_of(100), link);
  EXPECT_EQ(set.next_finish(), 300);
  EXPECT_EQ(bytes_per_second(set.rate(a)), kRate / 2);
  std::vector<FlowSet::FlowId> finished;
  set.take_finished(300, finished);
  EXPECT_EQ(finished, std::vector{b});
  EXPECT_EQ(set.next_finish(), 400);
  EXPECT_EQ(bytes_per_second(set.rate(a)), kRate);
  EXPECT_EQ(set.remove(350, a), amount_of(50));
  EXPECT_TRUE(set.empty());
}

TEST(FlowSet, equal_flows_end_together_in_order_of_their_ids) {
  FlowSet set({kRate});
  const std::vector<LinkUse> link{{0}};
  std::vector<FlowSet::FlowId> flows, finished;
  for (int flow = 0; flow < 3; ++flow) flows.push_back(set.add(0, amount_of(100), link));
  EXPECT_EQ(set.next_finish(), 300);
  set.take_finished(300, finished);
  EXPECT_EQ(finished, flows);
}

TEST(FlowSet, nothing_to_move_ends_at_once_and_no_rate_never) {
  FlowSet set({kRate});
  const std::vector<LinkUse> link{{0}};
  set.add(5, 0, link);
  EXPECT_EQ(set.next_finish(), 5);
  std::vector<FlowSet::FlowId> finished;
  set.take_finished(5, finished);
  EXPECT_EQ(finished.size(), 1U);
  const auto stuck = set.add(6, amount_of(1), link, 0);
  EXPECT_EQ(set.next_finish(), kForever);
  EXPECT_EQ(set.remove(1000, stuck), amount_of(1));
}

// What a set does step by step against rates found anew at each change, to a picosecond a change.
TEST(FlowSet, agrees_with_rates_found_anew_at_every_change) {
  std::mt19937_64 random(9);
  for (int round = 0; round < 100; ++round) {
    const Problem problem = random_problem(random);
    FlowSet set(problem.capacities);
    struct Live {
      FlowSet::FlowId id;
      const TestFlow* flow;
      long double left;
    };
    std::vector<Live> live;
    Picos now = 0;
    std::size_t next = 0;
    while (next < problem.flows.size() || !live.empty()) {
      const bool add = next < problem.flows.size() && (live.empty() || random() % 2 == 0);
      if (add) {
        const TestFlow& flow = problem.flows[next++];
        if (flow.cap == 0) continue;
        const std::uint64_t bytes = random() % 10'000'000'000;
        live.push_back({set.add(now, amount_of(bytes), flow.uses, flow.cap), &flow, static_cast<long double>(bytes)});
        continue;
      }
      std::vector<TestFlow> flows;
      for (const Live& each : live) flows.push_back(*each.flow);
      const auto anew = rates(problem.capacities, flows);
      long double first = 1e30L;
      for (std::size_t at = 0; at < live.size(); ++at)
        first = std::min(first, live[at].left * 1e12L / static_cast<long double>(anew[at]));
      const Picos finish = *set.next_finish();
      ASSERT_NEAR(static_cast<double>(finish - now), static_cast<double>(first),
                  2 + static_cast<double>(first) * 1e-12 * static_cast<double>(problem.flows.size()));
      for (std::size_t at = 0; at < live.size(); ++at)
        live[at].left -= static_cast<long double>(anew[at]) * static_cast<long double>(finish - now) / 1e12L;
      now = finish;
      std::vector<FlowSet::FlowId> finished;
      set.take_finished(now, finished);
      ASSERT_FALSE(finished.empty());
      std::erase_if(live, [&](const Live& each) {
        return std::find(finished.begin(), finished.end(), each.id) != finished.end();
      });
      ASSERT_TRUE(std::is_sorted(finished.begin(), finished.end()));
    }
    EXPECT_TRUE(set.empty());
  }
}

}  // namespace
}  // namespace ddx::sim
