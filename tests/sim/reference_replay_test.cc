// The semantics of the reference replay, one small program each.
#include "sim/replay/reference_replay.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/ops_text.h"

namespace ddx::sim {
namespace {

using ddx::testing::trace_of;

std::string outcome(const std::string& text, const ReplayOptions& options = {}) {
  return std::string(name_of(replay(trace_of(text), options).outcome));
}

ReplayOptions streams() {
  ReplayOptions options;
  options.stream_ordered = true;
  return options;
}
ReplayOptions eager() {
  ReplayOptions options;
  options.eager_up_to = UINT64_MAX;
  return options;
}

// "seq state" of every row of a rank.
std::string rows_of(const Trace& snapshot, std::size_t rank) {
  std::string text;
  const Program& program = snapshot.program(snapshot.ranks[rank]);
  for (std::size_t row = 0; row < program.size(); ++row) {
    if (row > 0) text += ", ";
    const auto seq = program.seq(row);
    text += fmt::format("{}{} {}", name_of(snapshot.signature(program.signature(row)).kind),
                        seq ? fmt::format(" {}", *seq) : "", name_of(program.state(row)));
  }
  return text;
}

TEST(ReferenceReplay, counts_collectives_and_p2p_apart_and_per_communicator) {
  const auto result =
      replay(trace_of("world 2\n"
                      "pg a = 0,1\n"
                      "0 all_reduce f32 1 pg0\n"
                      "0 send f32 1 to 1 pg0\n"
                      "0 barrier a\n"
                      "0 all_reduce f32 1 pg0\n"
                      "0 send f32 1 to 1 pg0\n"
                      "0 new_group 0,1\n"
                      "1 all_reduce f32 1 pg0\n"
                      "1 recv f32 1 from 0 pg0\n"
                      "1 barrier a\n"
                      "1 all_reduce f32 1 pg0\n"
                      "1 recv f32 1 from 0 pg0\n"
                      "1 new_group 0,1\n"));
  EXPECT_EQ(result.outcome, ReplayResult::Outcome::completes);
  EXPECT_EQ(rows_of(result.snapshot, 0),
            "all_reduce 1 completed, send 1 completed, barrier 1 completed, all_reduce 2 completed, "
            "send 2 completed, new_group 1 completed");
}

TEST(ReferenceReplay, shows_how_far_each_rank_came) {
  const std::string text =
      "world 3\n"
      "pg a = 0,1\n"
      "0,1 all_reduce f32 1\n"
      "2 all_reduce f32 1\n"
      "0,1 all_gather f32 2\n"  // rank 2 never comes
      "0,1 barrier a\n"
      "0,1 barrier\n"
      "2 stuck data loader\n"
      "2 barrier\n";
  const auto blocking = replay(trace_of(text));
  EXPECT_EQ(blocking.outcome, ReplayResult::Outcome::deadlock);
  EXPECT_EQ(blocking.unfinished.text(), "0,1");
  EXPECT_EQ(rows_of(blocking.snapshot, 0),
            "all_reduce 1 completed, all_gather 2 started, barrier 1 planned, barrier 3 planned");
  EXPECT_EQ(rows_of(blocking.snapshot, 2), "all_reduce 1 completed, stop completed, barrier 2 planned");
  EXPECT_EQ(blocking.reason, "waiting: ranks 0,1 in all_gather f32 x 2 (group pg0, seq 2) for rank 2");

  // On streams the host runs ahead, and another communicator's stream goes on beside the one that is held up.
  const auto ordered = replay(trace_of(text), streams());
  EXPECT_EQ(rows_of(ordered.snapshot, 0),
            "all_reduce 1 completed, all_gather 2 started, barrier 1 completed, barrier 3 scheduled");
  const RankRecord& record = ordered.snapshot.ranks[0];
  EXPECT_TRUE(record.snapshot);
  EXPECT_EQ(record.progress[0].last_enqueued, 3U);
  EXPECT_EQ(record.progress[0].last_started, 2U);
  EXPECT_EQ(record.progress[0].last_completed, 1U);
}

TEST(ReferenceReplay, loops_are_run_out) {
  const auto result =
      replay(trace_of("world 2\n"
                      "repeat 2\n"
                      "all barrier\n"
                      "repeat 2\n"
                      "all all_reduce f32 1\n"
                      "end\n"
                      "end\n"));
  EXPECT_EQ(rows_of(result.snapshot, 1),
            "barrier 1 completed, all_reduce 2 completed, all_reduce 3 completed, "
            "barrier 4 completed, all_reduce 5 completed, all_reduce 6 completed");
}

TEST(ReferenceReplay, sends_head_to_head) {
  const std::string text =
      "world 2\n"
      "0 send f32 1 to 1\n"
      "0 recv f32 1 from 1\n"
      "1 send f32 1 to 0\n"
      "1 recv f32 1 from 0\n";
  EXPECT_EQ(outcome(text), "deadlock");
  EXPECT_EQ(outcome(text, streams()), "deadlock") << "one stream runs in order, whoever waits for it";
  EXPECT_EQ(outcome(text, eager()), "completes");
  EXPECT_EQ(outcome("world 2\n"
                    "all group_begin\n"
                    "0 send f32 1 to 1\n"
                    "0 recv f32 1 from 1\n"
                    "1 send f32 1 to 0\n"
                    "1 recv f32 1 from 0\n"
                    "all group_end\n"),
            "completes")
      << "order inside a group does not matter";
}

TEST(ReferenceReplay, a_group_holds_the_host_until_all_its_parts_are_done) {
  const auto result =
      replay(trace_of("world 3\n"
                      "0 group_begin\n"
                      "0 send f32 1 to 1\n"
                      "0 send f32 1 to 2\n"
                      "0 group_end\n"
                      "0 barrier\n"
                      "1 recv f32 1 from 0\n"
                      "1 barrier\n"
                      "2 barrier\n"));
  EXPECT_EQ(result.outcome, ReplayResult::Outcome::deadlock);
  EXPECT_EQ(rows_of(result.snapshot, 0),
            "group_begin completed, send 1 completed, send 2 started, group_end started, barrier 1 planned");
  const Program& program = result.snapshot.program(result.snapshot.ranks[0]);
  EXPECT_EQ(program.group(1), 0U);
  EXPECT_EQ(program.group(2), 0U);
  EXPECT_EQ(program.group(4), std::nullopt);
}

TEST(ReferenceReplay, async_calls_return_at_once_and_waits_join_them) {
  // Crossed orders of two groups: only the wait that comes too early hangs.
  const std::string groups = "world 2\npg a = 0,1\npg b = 0,1\n";
  EXPECT_EQ(outcome(groups + "0 all_reduce f32 1 a async=x\n"
                             "0 all_reduce f32 1 b\n"
                             "0 wait x\n"
                             "1 all_reduce f32 1 b\n"
                             "1 all_reduce f32 1 a\n"),
            "completes");
  EXPECT_EQ(outcome(groups + "0 all_reduce f32 1 a async=x\n"
                             "0 wait x\n"
                             "0 all_reduce f32 1 b\n"
                             "1 all_reduce f32 1 b\n"
                             "1 all_reduce f32 1 a\n"),
            "deadlock");
  EXPECT_EQ(outcome(groups + "0 all_reduce f32 1 a async\n"
                             "0 host_sync\n"
                             "0 all_reduce f32 1 b\n"
                             "1 all_reduce f32 1 b\n"
                             "1 all_reduce f32 1 a\n"),
            "deadlock");
  // Both on one stream of rank 0: they run in order there, async or not.
  EXPECT_EQ(outcome(groups + "0 all_reduce f32 1 a async stream=3\n"
                             "0 all_reduce f32 1 b async stream=3\n"
                             "1 all_reduce f32 1 b\n"
                             "1 all_reduce f32 1 a\n"),
            "deadlock");
}

TEST(ReferenceReplay, a_wait_in_a_loop_waits_for_the_round_before) {
  const auto result =
      replay(trace_of("world 2\n"
                      "0 repeat 3\n"
                      "0 wait x\n"  // the first time there is nothing to wait for
                      "0 all_reduce f32 1 async=x\n"
                      "end\n"
                      "1 all_reduce f32 1\n"));
  EXPECT_EQ(rows_of(result.snapshot, 0),
            "wait completed, all_reduce 1 completed, wait completed, all_reduce 2 started, wait started, "
            "all_reduce 3 planned");
}

TEST(ReferenceReplay, a_communicator_runs_in_order_over_streams) {
  // Rank 0 puts pg0's second call on another stream; it may still not overtake the first.
  const auto result =
      replay(trace_of("world 2\n"
                      "0 all_reduce f32 1 stream=1 async\n"
                      "0 all_reduce f32 2 stream=2 async\n"
                      "1 stuck\n"));
  EXPECT_EQ(rows_of(result.snapshot, 0), "all_reduce 1 started, all_reduce 2 scheduled");
  EXPECT_EQ(outcome("world 2\n"
                    "0 all_reduce f32 1 stream=1 async\n"
                    "0 all_reduce f32 2 stream=2 async\n"
                    "1 all_reduce f32 1\n"
                    "1 all_reduce f32 2\n"),
            "completes");
}

TEST(ReferenceReplay, the_host_runs_ahead_only_so_far) {
  const std::string text =
      "world 2\n"
      "0 repeat 5\n"
      "0 all_reduce f32 1\n"
      "end\n"
      "1 stuck\n";
  ReplayOptions options = streams();
  options.max_ahead = 2;
  EXPECT_EQ(rows_of(replay(trace_of(text), options).snapshot, 0),
            "all_reduce 1 started, all_reduce 2 scheduled, all_reduce 3 scheduled, all_reduce 4 planned, "
            "all_reduce 5 planned");
}

TEST(ReferenceReplay, what_must_agree) {
  const auto pair = [](const std::string& a, const std::string& b) {
    return outcome("world 2\npg g = 1,0\n0 " + a + "\n1 " + b + "\n");
  };
  EXPECT_EQ(pair("all_reduce f32 8 g", "all_reduce f32 9 g"), "mismatch");
  EXPECT_EQ(pair("all_reduce f32 8 g", "all_reduce i32 8 g"), "mismatch");
  EXPECT_EQ(pair("all_reduce f32 8 g", "reduce f32 8 root=0 g"), "mismatch");
  EXPECT_EQ(pair("all_reduce f32 8 redop=sum g", "all_reduce f32 8 redop=max g"), "mismatch");
  EXPECT_EQ(pair("all_reduce f32 8 redop=sum g", "all_reduce f32 8 g"), "completes") << "not said: may be the same";
  EXPECT_EQ(pair("broadcast f32 8 root=0 g", "broadcast f32 8 root=1 g"), "mismatch");
  EXPECT_EQ(pair("broadcast f32 8 root=0 g", "broadcast f32 8 root=0 g"), "completes");
  EXPECT_EQ(pair("all_gather f32 8 out=16 g", "all_gather f32 8 out=17 g"), "mismatch");
  EXPECT_EQ(pair("gather f32 8 root=0 g", "gather f32 8 out=? root=0 g"), "completes") << "only a root has an output";
  EXPECT_EQ(pair("all_to_all f32 8 g", "all_to_all f32 9 g"), "mismatch");
  EXPECT_EQ(pair("all_to_all f32 5 in_splits=2,3 out_splits=4,5 out=9 g",
                 "all_to_all f32 6 in_splits=1,5 out_splits=1,2 out=3 g"),
            "mismatch")
      << "rank 0 is position 1: it sends 2 to rank 1, which expects 2 from position 1, but not 5 from itself";
  EXPECT_EQ(pair("all_to_all f32 5 in_splits=2,3 out_splits=4,3 out=7 g",
                 "all_to_all f32 5 in_splits=1,4 out_splits=1,2 out=3 g"),
            "completes");
  EXPECT_EQ(pair("split color=0 key=0 g", "split color=1 key=0 g"), "completes") << "colours are each rank's own";
  EXPECT_EQ(pair("send f32 8 to 1 g", "recv f32 9 from 0 g"), "mismatch");
  EXPECT_EQ(pair("send f32 8 to 1 tag=1 g", "recv f32 8 from 0 tag=2 g"), "completes") << "order pairs, not tags";
}

TEST(ReferenceReplay, unknown_fields_do_not_make_the_verdict_depend_on_who_comes_first) {
  const std::string text =
      "world 3\n"
      "0 all_reduce f32 8\n"
      "1 all_reduce f32 8 redop=sum\n"
      "2 all_reduce f32 8 redop=max\n";
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    ReplayOptions options;
    options.visit_seed = seed;
    EXPECT_EQ(outcome(text, options), "mismatch") << seed;
  }
}

TEST(ReferenceReplay, a_mismatch_is_told_with_its_sides) {
  const auto result =
      replay(trace_of("world 4\n"
                      "all barrier\n"
                      "0,1,3 all_reduce f32 8\n"
                      "2 all_reduce f32 4\n"));
  ASSERT_EQ(result.mismatches.size(), 1U);
  EXPECT_EQ(result.mismatches[0].seq, 2U);
  ASSERT_EQ(result.mismatches[0].variants.size(), 2U);
  EXPECT_EQ(result.mismatches[0].variants[0].ranks.text(), "0,1,3");
  EXPECT_EQ(result.mismatches[0].variants[1].ranks.text(), "2");
  EXPECT_EQ(result.unfinished.text(), "0-3") << "it blocks by default";
}

TEST(ReferenceReplay, calls_that_nobody_can_answer_wait_for_ever) {
  EXPECT_EQ(outcome("world 2\n0 send f32 1 to 7\n"), "deadlock") << "a peer that is not there";
  EXPECT_EQ(outcome("world 3\npg a = 0,1\n2 barrier a\n"), "deadlock") << "not a member";
  EXPECT_EQ(outcome("world 2\nabsent 1\n0 barrier\n"), "deadlock") << "a member of whom there is no record";
  EXPECT_EQ(outcome("world 2\nall barrier\n0 exit early\n1 crash late\n"), "completes");
}

TEST(ReferenceReplay, refuses_what_it_cannot_replay) {
  const auto reason = [](const std::string& text) {
    const auto result = replay(trace_of(text));
    EXPECT_EQ(result.outcome, ReplayResult::Outcome::refused) << text;
    return result.reason;
  };
  EXPECT_EQ(reason("world 2\nrepeat 1000000000000\nall barrier\nend\n"),
            "more than 50,000,000 operations, too many to run");
  // Each alone could be run out; together they are told before the first one is.
  std::string many = "world 300\n";
  for (int rank = 0; rank < 300; ++rank) {
    many += "repeat 20000000\n" + std::to_string(rank) + " compute " + std::to_string(rank + 1) + "us\nend\n";
  }
  EXPECT_EQ(reason(many), "more than 50,000,000 operations, too many to run");
  EXPECT_EQ(reason("world 2\n1 record snapshot\n1 barrier seq=3\n"),
            "rank 1 has a recorder's buffer, not its whole program");
  EXPECT_EQ(reason("world 2\n0 unknown f32 1 name=all_shuffle\n"),
            "rank 0: operation 'all_shuffle' is of no kind that can be replayed");
  EXPECT_EQ(reason("world 2\npg a = ? size=2\nall in a pos=1\nall barrier a\n"), "two ranks hold position 1 of a");
  Trace twice = trace_of("world 2\nall barrier\n");
  twice.ranks[1].rank = RankId(0);
  EXPECT_EQ(replay(twice).reason, "rank 0 has two records");
}

TEST(ReferenceReplay, ranks_that_came_the_same_way_share_a_program) {
  const auto result = replay(trace_of("world 1000\nall barrier\n0-998 all_reduce f32 1\n999 stuck\n"));
  EXPECT_EQ(result.snapshot.programs.size(), 2U);
}

TEST(ReferenceReplay, stops_in_mid_run) {
  const Trace trace = trace_of("world 2\nall barrier\nall all_reduce f32 1\n");
  const auto after = [&](std::uint64_t turns) {
    ReplayOptions options;
    options.stop_after = turns;
    return replay(trace, options);
  };
  const ReplayResult fresh = after(0);
  EXPECT_EQ(fresh.outcome, ReplayResult::Outcome::stopped);
  EXPECT_EQ(rows_of(fresh.snapshot, 0), "barrier 1 planned, all_reduce 2 planned");
  EXPECT_EQ(fresh.running.text(), "0,1");

  // Rank 0 takes the first turn, and then waits for rank 1.
  const ReplayResult apart = after(1);
  EXPECT_EQ(rows_of(apart.snapshot, 0), "barrier 1 started, all_reduce 2 planned");
  EXPECT_EQ(rows_of(apart.snapshot, 1), "barrier 1 planned, all_reduce 2 planned");
  EXPECT_EQ(apart.running.text(), "1");
  EXPECT_EQ(apart.unfinished.text(), "0,1");

  const ReplayResult rest = after(1000);
  EXPECT_EQ(rest.outcome, ReplayResult::Outcome::completes);
  EXPECT_TRUE(rest.running.empty());
}

}  // namespace
}  // namespace ddx::sim
