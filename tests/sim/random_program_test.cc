// The generator, its faults, the cut to ring buffers and the oracle: what other tests rely on.
#include "tests/support/random_program.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "sim/replay/reference_replay.h"
#include "tests/support/cut.h"
#include "tests/support/ops_text.h"
#include "tests/support/oracle.h"

namespace ddx::testing {
namespace {

using sim::ReplayOptions;
using sim::ReplayResult;
using Outcome = sim::ReplayResult::Outcome;

ReplayOptions streams(std::uint32_t max_ahead = 1024) {
  ReplayOptions options;
  options.stream_ordered = true;
  options.max_ahead = max_ahead;
  return options;
}

TEST(RandomProgram, completes_in_every_model) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    ProgramOptions options;
    options.seed = seed;
    const Trace trace = trace_of(random_program(options));
    for (const ReplayOptions& model : {ReplayOptions{}, streams(), streams(0)}) {
      const ReplayResult result = sim::replay(trace, model);
      ASSERT_EQ(result.outcome, Outcome::completes) << "seed " << seed << ": " << result.reason;
    }
  }
}

TEST(RandomProgram, has_what_real_jobs_have) {
  std::map<OpKind, int> kinds;
  std::size_t groups = 0, asynchronous = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    ProgramOptions options;
    options.seed = seed;
    const CallLists lists = random_program(options);
    EXPECT_GE(lists.world, 2);
    EXPECT_LE(lists.world, 32);
    groups += lists.groups.size();
    for (const auto& list : lists.ranks) {
      for (const Call& call : list) {
        ++kinds[call.kind];
        asynchronous += call.kind != OpKind::wait && call.async_id != 0 ? 1 : 0;
      }
    }
  }
  for (const OpKind kind :
       {OpKind::all_reduce, OpKind::reduce_scatter, OpKind::all_gather, OpKind::broadcast, OpKind::all_to_all,
        OpKind::barrier, OpKind::send, OpKind::recv, OpKind::group_begin, OpKind::wait, OpKind::compute}) {
    EXPECT_GT(kinds[kind], 100) << name_of(kind);
  }
  EXPECT_GT(groups, 100U);
  EXPECT_GT(asynchronous, 100U);
}

TEST(RandomProgram, is_the_same_for_the_same_seed) {
  ProgramOptions options;
  options.seed = 7;
  const std::string text = ops_text_of(random_program(options));
  EXPECT_EQ(ops_text_of(random_program(options)), text);
  options.seed = 8;
  EXPECT_NE(ops_text_of(random_program(options)), text);
}

TEST(RandomProgram, replay_does_not_depend_on_the_order_of_visits) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    ProgramOptions options;
    options.seed = seed;
    CallLists lists = random_program(options);
    inject(lists, kAllFaults[seed % std::size(kAllFaults)], seed);
    const Trace trace = trace_of(lists);
    for (ReplayOptions model : {ReplayOptions{}, streams(), streams(3)}) {
      const ReplayResult in_order = sim::replay(trace, model);
      for (model.visit_seed = 1; model.visit_seed <= 5; ++model.visit_seed) {
        const ReplayResult shuffled = sim::replay(trace, model);
        ASSERT_EQ(shuffled.outcome, in_order.outcome) << "seed " << seed;
        ASSERT_EQ(shuffled.unfinished, in_order.unfinished) << "seed " << seed;
        ASSERT_EQ(text_of(shuffled.snapshot), text_of(in_order.snapshot)) << "seed " << seed;
      }
    }
  }
}

TEST(Fault, changes_one_list_and_mostly_the_outcome) {
  for (const FaultKind kind : kAllFaults) {
    int injected = 0, harmless = 0;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      ProgramOptions options;
      options.seed = seed;
      const CallLists before = random_program(options);
      CallLists after = before;
      const auto fault = inject(after, kind, seed);
      if (!fault) {
        EXPECT_EQ(before.ranks, after.ranks);
        continue;
      }
      ++injected;
      EXPECT_EQ(fault->kind, kind);
      for (std::size_t rank = 0; rank < before.ranks.size(); ++rank) {
        const bool changed = before.ranks[rank] != after.ranks[rank];
        EXPECT_EQ(changed, static_cast<int>(rank) == fault->rank) << name_of(kind) << " seed " << seed;
      }
      harmless += sim::replay(trace_of(after)).outcome == Outcome::completes ? 1 : 0;
    }
    EXPECT_GT(injected, 20) << name_of(kind);
    // An order between groups can be changed with impunity, and so can the last call before a stop.
    EXPECT_LT(harmless, kind == FaultKind::swap_groups ? injected : 1 + injected / 10) << name_of(kind);
  }
}

TEST(Cut, keeps_the_tail_and_says_so) {
  const ReplayResult result =
      sim::replay(trace_of("world 3\n"
                           "all all_reduce f32 1\n"
                           "all all_reduce f32 2\n"
                           "all compute 1ms\n"
                           "all all_reduce f32 3\n"
                           "0,1 barrier\n"
                           "0,1 all_reduce f32 4\n"
                           "2 crash gone\n"));
  CutOptions options;
  options.ring_min = options.ring_max = 2;
  options.timing = false;
  EXPECT_EQ(text_of(cut(result, options)),
            "world 3\n"
            "absent 2\n"
            "0,1 record snapshot head_lost timing=off\n"
            "0,1 in pg0 enqueued=4 completed=3\n"
            "0,1 all_reduce f32 3 pg0 seq=3 [completed]\n"
            "0,1 barrier pg0 seq=4 [scheduled]\n");
  options.without = {RankId(0)};
  options.dead_leave_dumps = true;
  options.ring_min = options.ring_max = 8;
  options.timing = true;
  EXPECT_EQ(text_of(cut(result, options)),
            "world 3\n"
            "absent 0\n"
            "1 record snapshot timing=on\n"
            "1 in pg0 enqueued=4 started=4 completed=3\n"
            "1 all_reduce f32 1 pg0 seq=1 [completed]\n"
            "1 all_reduce f32 2 pg0 seq=2 [completed]\n"
            "1 all_reduce f32 3 pg0 seq=3 [completed]\n"
            "1 barrier pg0 seq=4 [started]\n"
            "2 record snapshot timing=on\n"
            "2 in pg0 enqueued=3 started=3 completed=3\n"
            "2 all_reduce f32 1 pg0 seq=1 [completed]\n"
            "2 all_reduce f32 2 pg0 seq=2 [completed]\n"
            "2 all_reduce f32 3 pg0 seq=3 [completed]\n");
}

// Three ranks that do `calls` on pg0, and `calls_of_2` on rank 2.
CallLists three(const std::vector<std::uint64_t>& calls, const std::vector<std::uint64_t>& calls_of_2) {
  CallLists lists;
  lists.world = 3;
  lists.ranks.resize(3);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    for (const std::uint64_t count : rank == 2 ? calls_of_2 : calls) {
      Call call;
      call.kind = OpKind::all_reduce;
      call.group = "pg0";
      call.count = count;
      lists.ranks[rank].push_back(call);
    }
  }
  return lists;
}

TEST(Oracle, names_whom_one_edit_puts_right) {
  const std::vector<RankId> nobody, rank2{RankId(2)};
  EXPECT_EQ(single_edit_culprits(three({1, 2, 3}, {1, 2, 3})), nobody);
  EXPECT_EQ(single_edit_culprits(three({1, 2, 3}, {1, 3})), rank2) << "skipped";
  EXPECT_EQ(single_edit_culprits(three({1, 2, 3}, {1, 2, 2, 3})), rank2) << "one more";
  EXPECT_EQ(single_edit_culprits(three({1, 2, 3}, {1, 9, 3})), rank2) << "another size";
  EXPECT_EQ(single_edit_culprits(three({1, 2, 3}, {1, 3, 2})), rank2) << "swapped";
  EXPECT_EQ(single_edit_culprits(three({1, 2, 3}, {1})), nobody) << "two edits";
  CallLists two = three({1, 2, 3}, {1, 3});
  two.world = 2;
  two.ranks.erase(two.ranks.begin());
  EXPECT_EQ(single_edit_culprits(two).size(), 2U) << "of two ranks either may be wrong";
  CallLists dead = three({1, 2, 3}, {1});
  dead.ranks[2].emplace_back().kind = OpKind::stop;
  EXPECT_EQ(single_edit_culprits(dead), rank2) << "stopped";
}

TEST(Oracle, finds_the_injected_fault) {
  int decidable = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    ProgramOptions options;
    options.seed = seed;
    options.steps = 3;
    options.world = 2 + static_cast<int>(seed % 10);
    CallLists lists = random_program(options);
    const FaultKind kind = kAllFaults[seed % std::size(kAllFaults)];
    const auto fault = inject(lists, kind, seed);
    if (!fault || sim::replay(trace_of(lists)).outcome == Outcome::completes) continue;
    const auto culprits = single_edit_culprits(lists);
    EXPECT_TRUE(std::find(culprits.begin(), culprits.end(), RankId(fault->rank)) != culprits.end())
        << "seed " << seed << ' ' << name_of(kind) << " on rank " << fault->rank << "\n";
    decidable += culprits.size() == 1 ? 1 : 0;
  }
  EXPECT_GT(decidable, 60);
}

}  // namespace
}  // namespace ddx::testing
