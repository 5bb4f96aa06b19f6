// Max-min fair shares: cases solved by hand, and what defines them (Bertsekas, Gallager: Data networks, 6.5.2): nobody
// can get more unless somebody who has no more gets less.
#include "sim/network/fair_share.h"

#include <algorithm>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

namespace ddx::sim {
namespace {

struct TestFlow {
  std::vector<LinkUse> uses;
  std::uint64_t cap = kNoCap;
};

std::vector<Rate> shares(const std::vector<std::uint64_t>& capacities, const std::vector<TestFlow>& flows) {
  std::vector<FlowDemand> demands;
  for (const TestFlow& flow : flows) demands.push_back({flow.uses, flow.cap});
  return fair_rates(capacities, demands);
}

std::vector<double> rates(const std::vector<std::uint64_t>& capacities, const std::vector<TestFlow>& flows) {
  std::vector<double> all;
  for (const Rate rate : shares(capacities, flows)) all.push_back(bytes_per_second(rate));
  return all;
}

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

struct Problem {
  std::vector<std::uint64_t> capacities;
  std::vector<TestFlow> flows;
};

Problem random_problem(std::mt19937_64& random) {
  Problem problem;
  const std::size_t links = 1 + random() % 12, flows = 1 + random() % 30;
  for (std::size_t link = 0; link < links; ++link) problem.capacities.push_back(1 + random() % 1'000'000'000'000);
  for (std::size_t flow = 0; flow < flows; ++flow) {
    TestFlow& made = problem.flows.emplace_back();
    for (std::uint32_t link = 0; link < links; ++link) {
      if (random() % 3 == 0) made.uses.push_back({link, static_cast<std::uint32_t>(1 + random() % 4)});
    }
    if (made.uses.empty() || random() % 4 == 0) made.cap = random() % 1'000'000'000'000;
  }
  return problem;
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

// FlowSet

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
