// Replays message by message: what is under way at one time shares links, max-min fair. Right values: worked out by
// hand beside each test, and the closed forms.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/cluster/cluster_file.h"
#include "sim/replay/cluster_costs.h"
#include "sim/replay/reference_replay.h"
#include "sim/replay/step_costs.h"
#include "tests/support/ops_text.h"
#include "tests/support/random_program.h"

namespace ddx::sim {
namespace {

using ddx::testing::trace_of;

struct Timed {
  ReplayResult result;
  std::vector<Picos> ends;  // by rank
  Picos end = 0;
};

Timed timed(const Trace& trace, const CostModel& costs, ReplayOptions options = {}) {
  options.timing.costs = &costs;
  Timed timed;
  timed.result = replay(trace, options);
  timed.ends = timed.result.rank_end;
  for (const Picos end : timed.ends) timed.end = std::max(timed.end, end);
  return timed;
}

// 1 GB/s, 1 us: a kilobyte (of 1,000) takes a microsecond.
Cluster slow() { return flat("1GB/s,1us"); }

Picos by_steps(const Cluster& cluster, const std::string& ops) {
  return timed(trace_of(ops), *step_costs(cluster, find_algorithm("ring"))).end;
}
Picos by_closed_form(const Cluster& cluster, const std::string& ops) {
  return timed(trace_of(ops), *cluster_costs(cluster, find_algorithm("ring"))).end;
}

constexpr Picos kMicro = 1'000'000;

// 2 (n-1) = 2 steps of 1,000 of 2,000 bytes and 1 us of latency each; two of them at one time: each step takes 2 us.
TEST(ReplaySteps, two_streams_of_one_pair_of_ranks) {
  const std::string groups = "world 2\npg a = 0,1\npg b = 0,1\n";
  const std::string both =
      groups + "all all_reduce i8 2000 a async stream=1\nall all_reduce i8 2000 b async stream=2\nall host_sync\n";
  EXPECT_EQ(by_steps(slow(), groups + "all all_reduce i8 2000 a\n"), 4 * kMicro);
  EXPECT_EQ(by_steps(slow(), both), 6 * kMicro);
  EXPECT_EQ(by_closed_form(slow(), both), 6 * kMicro);
  // Without latency: exactly twice.
  const Cluster ideal = flat("1GB/s,0us");
  for (const auto& time : {by_steps, by_closed_form}) {
    EXPECT_EQ(time(ideal, groups + "all all_reduce i8 2000 a\n"), 2 * kMicro);
    EXPECT_EQ(time(ideal, both), 4 * kMicro);
  }
}

// The second comes when the first one's first step is half through: that one has 500 bytes left, then 500 at half the
// rate, 1 us; its second step meets the first and the second of the other ...: as much is moved as both need.
TEST(ReplaySteps, one_that_comes_later) {
  const Cluster ideal = flat("1GB/s,0us");
  EXPECT_EQ(by_steps(ideal,
                     "world 2\npg a = 0,1\npg b = 0,1\nall all_reduce i8 2000 a async=x\nall compute 500ns\n"
                     "all all_reduce i8 2000 b async=y\nall wait x\nall wait y\n"),
            4 * kMicro);
}

// Four hosts under two leaves whose uplinks carry as much as one host's port.
Cluster two_leaves() {
  return parse_cluster(R"({"nodes": 4, "library": "gloo", "network": {"fabric": "tcp", "rate": "1GB/s",
    "latency": "0us", "rails": false, "nodes_per_leaf": 2, "oversubscription": 2}})",
                       "c.json");
}

TEST(ReplaySteps, disjoint_groups_that_share_an_uplink) {
  const std::string groups = "world 4\npg a = 0,2\npg b = 1,3\npg c = 0,1\npg d = 2,3\n";
  const std::string one = groups + "0,2 all_reduce i8 2000 a\n";
  for (const auto& time : {by_steps, by_closed_form}) {
    EXPECT_EQ(time(two_leaves(), one), 2 * kMicro);
    EXPECT_EQ(time(two_leaves(), one + "1,3 all_reduce i8 2000 b\n"), 4 * kMicro);
    // Each under its leaf: nothing is shared.
    EXPECT_EQ(time(two_leaves(), groups + "0,1 all_reduce i8 2000 c\n2,3 all_reduce i8 2000 d\n"), 2 * kMicro);
  }
}

TEST(ReplaySteps, a_message_beside_a_collective) {
  // Rank 0 sends 1,000 bytes to rank 2 while it sends its 1,000 of the first step to rank 1: each takes 2 us, and what
  // rank 1 sends is not held up. The second step is alone: 1 us.
  const Cluster ideal = flat("1GB/s,0us");
  const std::string ops =
      "world 3\npg a = 0,1\n0,1 all_reduce i8 2000 a async\n0 send i8 1000 to 2 async\n2 recv i8 1000 from 0\n"
      "all host_sync\n";
  const Timed run = timed(trace_of(ops), *step_costs(ideal, find_algorithm("ring")));
  EXPECT_EQ(run.ends, (std::vector<Picos>{3 * kMicro, 3 * kMicro, 2 * kMicro}));
}

// Of two ranks one sends the other 3,000 bytes and gets 1,000: the busier port decides, whoever comes first.
TEST(ReplaySteps, splits_count_whoever_comes_first) {
  const std::string calls =
      "0 all_to_all i8 4000 in_splits=1000,3000 out_splits=1000,1000\n"
      "1 all_to_all i8 4000 in_splits=1000,3000 out_splits=3000,3000\n";
  for (const char* late : {"0 compute 1us\n", "1 compute 1us\n"}) {
    EXPECT_EQ(by_steps(flat("1GB/s,0us"), std::string("world 2\n") + late + calls), 4 * kMicro) << late;
  }
}

TEST(ReplaySteps, alone_they_take_their_closed_forms) {
  for (const int ranks : {2, 3, 8, 17}) {
    for (const char* kind : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"}) {
      const std::string once = fmt::format("all {} f32 {}\n", kind, 17 * ranks * 96);
      std::string text = fmt::format("world {}\n", ranks);
      for (int i = 0; i < 4; ++i) text += once + "all compute 3us\n";
      EXPECT_EQ(by_steps(slow(), text), by_closed_form(slow(), text)) << kind << " of " << ranks;
    }
  }
}

// "all_gather" of so many bytes in all, and so on.
std::string call_of(const std::string& kind, std::uint64_t bytes, std::uint64_t ranks) {
  if (kind == "barrier") return "all barrier\n";
  const std::uint64_t count = kind == "all_gather" ? std::max<std::uint64_t>(1, bytes / ranks) : bytes;
  return fmt::format("all {} u8 {}{}\n", kind, count, kind == "broadcast" || kind == "reduce" ? " root=0" : "");
}

// What NCCL chooses, by its steps: alone a call takes what NCCL's model says, or up to a hundredth more.
TEST(ReplaySteps, of_nccl_alone_take_what_nccl_takes) {
  for (const char* name : {"dgx-h100", "dgx-a100:2", "dgx-h100:4", "dgx-b200:3", "gb200-nvl72:36"}) {
    const Cluster cluster = read_cluster(name);
    const auto steps = step_costs(cluster), closed = cluster_costs(cluster);
    for (const char* kind :
         {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all", "barrier"}) {
      for (const std::uint64_t bytes : {1U << 10, 1U << 16, 1U << 20, 1U << 27}) {
        const std::string call = call_of(kind, bytes, cluster.ranks());
        const Trace trace = trace_of(fmt::format("world {}\n{}", cluster.ranks(), call));
        const Picos by_steps = timed(trace, *steps).end, by_model = timed(trace, *closed).end;
        EXPECT_GE(by_steps + kMicro / 100, by_model) << name << ' ' << call;
        EXPECT_LE(by_steps, by_model + by_model / 100) << name << ' ' << call;
      }
    }
    EXPECT_THAT(steps->notes(), ::testing::IsEmpty()) << name;
  }
}

// Two groups of one rank a node: with a NIC each nobody is held up; over one NIC each moves at half the speed.
TEST(ReplaySteps, of_nccl_share_what_they_share) {
  const auto steps = step_costs(read_cluster("dgx-h100:2"));
  const auto time = [&](const std::string& ops) {
    return timed(trace_of("world 16\npg a = 0,8\npg b = 1,9\npg c = 0,8\n" + ops), *steps).end;
  };
  const std::string a = "0,8 all_reduce f32 67108864 a async stream=1\n";
  const Picos alone = time(a);
  EXPECT_EQ(time(a + "1,9 all_reduce f32 67108864 b async stream=2\n"), alone);
  const Picos both = time(a + "0,8 all_reduce f32 67108864 c async stream=2\n");
  EXPECT_GE(both, 19 * alone / 10);
  EXPECT_LE(both, 2 * alone);
}

// NVLS over several nodes has no steps: what is taken in its place is said, and takes as long.
TEST(ReplaySteps, what_has_no_steps_is_said) {
  Cluster cluster = read_cluster("dgx-h100:4");
  cluster.sharp = true;
  const auto steps = step_costs(cluster), closed = cluster_costs(cluster);
  const Trace trace = trace_of("world 32\nall all_reduce f32 268435456\n");
  const Picos by_model = timed(trace, *closed).end, by_steps = timed(trace, *steps).end;
  EXPECT_NEAR(static_cast<double>(by_steps), static_cast<double>(by_model), .01 * static_cast<double>(by_model));
  EXPECT_THAT(steps->notes(),
              ::testing::ElementsAre("there are no steps of NVLS for all_reduce among 32 ranks: they go "
                                     "as those of ring, as long as NVLS takes"));
}

// A chain goes round from its root: 1,000 bytes from rank 2 to rank 0 and on to rank 1, which comes late.
TEST(ReplaySteps, roots_come_first) {
  const Timed run = timed(trace_of("world 3\n1 compute 10us\nall broadcast i8 1000 root=2\n"),
                          *step_costs(slow(), find_algorithm("ring")));
  EXPECT_EQ(run.ends, (std::vector<Picos>{3 * kMicro, 10 * kMicro, 1 * kMicro}));
}

TEST(ReplaySteps, what_does_not_run_has_no_times_and_is_judged_as_without) {
  const Timed run = timed(trace_of("world 2\nall all_reduce i8 2000\n0 barrier\n"), *step_costs(slow()));
  EXPECT_EQ(run.result.outcome, ReplayResult::Outcome::deadlock);
  EXPECT_TRUE(run.ends.empty());
  EXPECT_EQ(timed(trace_of("world 2\nall all_reduce f32 ?\n"), *step_costs(slow())).result.outcome,
            ReplayResult::Outcome::refused);
}

// Whatever the order of visits, and whether something was known or was made up for.
TEST(ReplaySteps, do_not_depend_on_the_order_of_visits) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    ddx::testing::ProgramOptions program;
    program.seed = seed;
    const Trace trace = trace_of(random_program(program));
    const auto costs = step_costs(slow());
    ReplayOptions options;
    options.stream_ordered = seed % 2 == 0;
    const Timed in_order = timed(trace, *costs, options);
    ASSERT_EQ(in_order.result.outcome, ReplayResult::Outcome::completes) << "seed " << seed << in_order.result.reason;
    ASSERT_GT(in_order.end, 0);
    for (std::uint64_t visits = 1; visits <= 3; ++visits) {
      options.visit_seed = visits;
      EXPECT_EQ(timed(trace, *costs, options).ends, in_order.ends) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace ddx::sim
