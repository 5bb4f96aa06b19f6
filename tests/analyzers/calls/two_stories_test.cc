// Programs and dumps in which the nearest conclusion is not the only one, or not the right one: who is named, and how
// firmly.
#include <gtest/gtest.h>

#include <algorithm>

#include "analyzers/analyzer.h"
#include "tests/support/cut.h"
#include "tests/support/ops_text.h"
#include "tests/support/told.h"

namespace ddx {
namespace {

using testing::told;

std::vector<Finding> of_programs(const char* ops) {
  Evidence evidence;
  evidence.trace = testing::snapshot_of(ops);
  return analyzers::analyze(evidence);
}

std::vector<Finding> of_dumps(const char* ops) {
  Evidence evidence;
  testing::CutOptions all;
  all.dead_leave_dumps = true;
  evidence.trace = testing::cut(sim::replay(testing::trace_of(ops)), all);
  return analyzers::analyze(evidence);
}

LogEvent time_out_of(RankId rank) {
  LogEvent end;
  end.rank = rank;
  ProcessEnd timed_out;
  timed_out.what = "RuntimeError: Timed out waiting 3000ms for recv operation to complete";
  timed_out.secondary = true;
  end.fact = timed_out;
  return end;
}

// One conclusion is drawn, of these ranks, at most this firmly; "": none at all.
void expect(const std::vector<Finding>& findings, std::string_view code, std::string_view ranks,
            Confidence at_most = Confidence::high) {
  if (code.empty()) {
    EXPECT_TRUE(findings.empty()) << told(findings);
    return;
  }
  ASSERT_FALSE(findings.empty()) << "wanted " << code;
  EXPECT_EQ(findings[0].code, code) << told(findings);
  EXPECT_EQ(findings[0].ranks.text(), ranks) << told(findings);
  EXPECT_LE(findings[0].confidence, at_most) << told(findings);
  for (const Finding& f : findings) {
    EXPECT_TRUE(&f == &findings[0] || f.severity != Severity::error) << "also blamed: " << told(findings);
  }
}

// One rank waits alone in a call, all others are idle. Whole programs tell a step more from a call that does not belong
// there; dumps tell neither from a job that is moving.
TEST(OneRankAhead, with_a_step_more) {
  const char* ops = "world 4\nrepeat 9\n0-3 all_gather bf16 8\n0-3 all_reduce f32 8\nend\n3 all_gather bf16 8\n";
  expect(of_programs(ops), "uneven-steps", "0-2", Confidence::medium);
  expect(of_dumps(ops), "inconclusive", "none");
}

TEST(OneRankAhead, with_a_call_that_others_make_too) {
  const char* ops = "world 4\n0-3 all_gather f32 8\n0-3 barrier\n2 all_gather f32 8\n";
  expect(of_programs(ops), "rank-skipped", "2");
  expect(of_dumps(ops), "inconclusive", "none");
}

TEST(OneRankAhead, with_a_call_that_nobody_else_makes) {
  const char* ops = "world 4\n0-3 all_gather f32 8\n0-3 barrier\n2 all_reduce f32 77\n";
  expect(of_programs(ops), "rank0-only", "2");
  Evidence timed_out = testing::evidence_of(
      "world 4\n0-3 record snapshot part stream_ordered\n0-3 all_gather f32 8 seq=1 [completed]\n"
      "0-3 barrier seq=2 [completed]\n2 all_reduce f32 77 seq=3 [started]\n");
  timed_out.events.push_back(time_out_of(RankId(2)));
  expect(analyzers::analyze(timed_out), "rank0-only", "2", Confidence::medium);
}

TEST(OneRankAhead, in_the_first_call_of_its_group) {
  const char* ops = "world 4\n2 all_reduce f32 77\n";
  expect(of_programs(ops), "rank0-only", "2");
  expect(of_dumps(ops), "inconclusive", "none");
}

TEST(OneRankAhead, of_ranks_whose_lists_say_that_they_are_stuck) {
  expect(of_programs("world 4\n0-3 barrier\n0 all_reduce f32 9\n1-3 stuck \"in the loader\"\n"), "missing-ranks",
         "1-3");
}

TEST(OneRankAhead, making_a_group) {
  expect(of_programs("world 3\n0-2 barrier\n1 new_group 0,1\n"), "group-create", "1");
}

TEST(OneRankAhead, in_a_job_that_timed_out) {
  Evidence evidence = testing::evidence_of(
      "world 4\n0-3 record snapshot part stream_ordered\n0-3 all_reduce f32 8 seq=1 [completed]\n"
      "0-3 all_reduce f32 8 seq=2 [completed]\n3 all_reduce f32 8 seq=3 [started]\n");
  expect(analyzers::analyze(evidence), "inconclusive", "none");
  evidence.events.push_back(time_out_of(RankId(3)));
  expect(analyzers::analyze(evidence), "missing-ranks", "0-2", Confidence::low);
}

// 0 and 1 have sent to each other without waiting, and both wait with 2 for 3: it is 3 who does not come.
TEST(CallsThatReturnAtOnce, hold_nobody) {
  const char* isends =
      "world 4\n0 send f32 64 to 1 async stream=1\n1 send f32 64 to 0 async stream=2\n0-2 all_reduce f32 8\n"
      "3 stuck \"in the loader\"\n0 recv f32 64 from 1 stream=2\n1 recv f32 64 from 0 stream=1\n";
  expect(of_programs(isends), "missing-ranks", "3");
  expect(of_dumps(isends), "missing-ranks", "3");
}

TEST(CallsThatReturnAtOnce, hold_nobody_in_collectives_either) {
  const char* async =
      "world 4\npg x = 0,1\npg y = 0,1\n0 all_reduce f32 8 x async\n1 all_reduce f32 8 y async\n0-2 barrier pg0\n"
      "3 stuck \"in the loader\"\n0 all_reduce f32 8 y\n1 all_reduce f32 8 x\n";
  expect(of_programs(async), "missing-ranks", "3");
  expect(of_dumps(async), "missing-ranks", "3");
}

// The same sends, each waited for before the receive is posted.
TEST(CallsThatReturnAtOnce, hold_who_waits_for_them) {
  expect(of_programs("world 3\n0 send f32 64 to 1 async=s\n1 send f32 64 to 0 async=s\n0-1 wait s\n"
                     "0 recv f32 64 from 1\n1 recv f32 64 from 0\n0-2 barrier\n"),
         "p2p-cycle", "0,1");
}

TEST(SendToItself, is_a_circle_of_one) {
  const char* ops = "world 2\n0 send f32 8 to 0\n0 recv f32 8 from 0\n0-1 all_reduce f32 1\n";
  expect(of_programs(ops), "p2p-cycle", "0");
  expect(of_dumps(ops), "p2p-cycle", "0");
}

TEST(SendToItself, ends_in_a_batch) {
  expect(of_programs("world 2\n0 group_begin\n0 send f32 8 to 0\n0 recv f32 8 from 0\n0 group_end\n0-1 barrier\n"), "",
         "");
}

// The pipeline's first stage sends once more: rank 1 never posts a *receive*.
TEST(Unmatched, names_the_half_that_is_missing) {
  const auto findings = of_programs(
      "world 3\nrepeat 4\n0 send f32 64 to 1\n1 recv f32 64 from 0\nend\n0 send f32 64 to 1\n0-2 all_reduce f32 8\n");
  expect(findings, "p2p-unmatched", "0,1");
  EXPECT_NE(findings[0].summary.find("rank 1 never posts the receive"), std::string::npos) << told(findings);
}

// The last stage goes on to the loss a micro-batch early. Its whole list shows that the receive never comes.
TEST(Unmatched, against_a_call_of_another_group) {
  const char* ops =
      "world 3\npg pp = 1,2\nrepeat 3\n1 send bf16 512 to 2 pp\n2 recv bf16 512 from 1 pp\nend\n"
      "1 send bf16 512 to 2 pp\n0-2 all_reduce f32 1 pg0\n";
  expect(of_programs(ops), "p2p-unmatched", "1,2");
  expect(of_dumps(ops), "p2p-unmatched", "1,2", Confidence::medium);
}

// Buckets in another order on one rank, step by step: nothing was left out. With a call less it was.
TEST(Order, of_all_steps_is_no_call_left_out) {
  expect(of_programs("world 4\nrepeat 2\n0-2 all_reduce f32 10\n0-2 all_reduce f32 20\n3 all_reduce f32 20\n"
                     "3 all_reduce f32 10\nend\n"),
         "order-inverted", "3");
  expect(of_programs("world 4\nrepeat 2\n0-2 all_reduce f32 10\n0-2 all_reduce f32 20\n0-2 all_reduce f32 30\n"
                     "3 all_reduce f32 20\n3 all_reduce f32 10\n3 all_reduce f32 30\nend\n"),
         "order-inverted", "3");
  expect(of_programs("world 4\nrepeat 3\n0-3 all_reduce f32 10\n0-3 all_reduce f32 20\nend\n0-2 all_reduce f32 10\n"
                     "all all_reduce f32 20\nall all_reduce f32 10\nall all_reduce f32 20\n"),
         "rank-skipped", "3");
}

// A call like those of the loop before it, but of another place in the code, is no round more.
TEST(RepeatedCall, of_another_place_is_no_step) {
  const char* loop = "world 4\nrepeat 3\nall all_reduce f32 1000 @train.py:40:step\nend\n";
  expect(of_programs((std::string(loop) + "0,1,3 all_reduce f32 1000 @train.py:50:eval\n"
                                          "all all_reduce f32 2000 @train.py:60:step\n")
                         .c_str()),
         "rank-skipped", "2");
  expect(of_programs((std::string(loop) + "0,1,3 all_reduce f32 1000 @train.py:40:step\n"
                                          "all all_reduce f32 2000 @train.py:60:step\n")
                         .c_str()),
         "uneven-steps", "2");
}

// One call more of a step that holds others too, of which there are as many as elsewhere: that call alone is too many.
TEST(OneCallMore, of_a_longer_step_is_no_step_more) {
  const std::string step = "repeat 5\nall all_gather f32 8 b\nall all_reduce f32 8 a\nend\n";
  const std::string groups = "world 4\npg a = 0-3\npg b = 0-3\n";
  expect(of_programs((groups + step + "2 all_reduce f32 8 a\n").c_str()), "rank-skipped", "2");
}

TEST(Bytes, that_agree_are_another_datatype) {
  expect(of_programs("world 4\n0-2 all_reduce f32 100\n3 all_reduce bf16 200\n"), "mismatch-dtype", "3");
  expect(of_programs("world 4\n0-2 all_reduce f32 100\n3 all_reduce bf16 300\n"), "mismatch-size", "3");
}

// Two ranks, and only rank 1 makes the gather: one more there or one less on rank 0.
TEST(TwoRanks, have_no_majority) {
  expect(
      of_programs("world 2\nrepeat 4\n0-1 all_reduce f32 4096\nend\n1 all_gather f32 16\n0-1 broadcast i64 8 root=0\n"
                  "0-1 all_reduce f32 4096\n"),
      "rank-skipped", "0,1", Confidence::medium);
}

// What a size that was not recorded may be is not what it is: it agrees with 10 and with 20, which do not agree.
TEST(SizeNotRecorded, is_on_no_side) {
  expect(of_programs("world 4\n0,3 all_reduce f32 ?\n1 all_reduce f32 10\n2 all_reduce f32 20\n"), "mismatch-size",
         "1,2", Confidence::medium);
  expect(of_programs("world 4\n0 all_reduce f32 ?\n1,3 all_reduce f32 10\n2 all_reduce f32 20\n"), "mismatch-size",
         "2");
  expect(of_programs("world 3\n0 all_reduce f32 ?\n1,2 all_reduce f32 10\n"), "", "");
}

// Two that happen to agree are no majority among many that all differ; of three sizes one that most ranks have is.
TEST(ManySizes, need_more_than_half_for_a_majority) {
  expect(of_programs("world 6\n0,1 all_reduce f32 1\n2 all_reduce f32 2\n3 all_reduce f32 3\n4 all_reduce f32 4\n"
                     "5 all_reduce f32 5\n"),
         "mismatch-size", "0-5", Confidence::medium);
  expect(of_programs("world 6\n0-3 all_reduce f32 1\n4 all_reduce f32 2\n5 all_reduce f32 3\n"), "mismatch-size",
         "4,5");
  // What each sends to each other may differ by right, though two send the same much: nobody is blamed.
  expect(of_programs("world 4\n0,1 all_to_all f32 4\n2 all_to_all f32 8\n3 all_to_all f32 12\n0-3 barrier\n"),
         "stuck-in-collective", "none", Confidence::low);
}

// Rank 0 alone broadcasts where the others do four other things: it is named, and they are not said to broadcast.
TEST(RankZero, is_alone_whatever_the_others_do) {
  const auto findings = analyzers::analyze(testing::evidence_of(
      "world 7\n0-6 record snapshot part stream_ordered\n0-6 all_reduce f32 8 pg0 seq=1 [completed]\n"
      "1,2 barrier pg0 seq=2 [started]\n0 broadcast f32 77 root=0 pg0 seq=2 [started]\n"
      "3 all_gather f32 5 pg0 seq=2 [started]\n4 reduce_scatter f32 7 pg0 seq=2 [started]\n"
      "5 all_reduce f32 123 pg0 seq=2 [started]\n6 all_reduce f32 124 pg0 seq=2 [started]\n"));
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].code, "rank0-only") << told(findings);
  EXPECT_EQ(findings[0].ranks.text(), "0") << told(findings);
  EXPECT_NE(findings[0].summary.find("ranks 1-6 do not"), std::string::npos) << told(findings);
}

// Rounds before show that the gather of 102 follows that of 101: who makes it in its place has left one out. A size
// that no round has seen is just wrong.
TEST(LastCallOfAnotherSize, is_told_by_the_rounds_before) {
  const std::string rounds =
      "world 4\nrepeat 5\n0-3 all_gather f32 101\n0-3 all_gather f32 102\n"
      "0-3 all_gather f32 103\nend\n";
  expect(of_programs((rounds + "0,1,3 all_gather f32 101\n2 all_gather f32 102\n").c_str()), "rank-skipped", "2");
  expect(of_programs((rounds + "0,1,3 all_gather f32 101\n2 all_gather f32 99\n").c_str()), "mismatch-size", "2");
  const auto more =
      of_programs((rounds + "0-3 all_gather f32 101\n0,1,3 all_gather f32 102\n2 all_gather f32 101\n").c_str());
  expect(more, "rank-skipped", "2");
  EXPECT_NE(more[0].summary.find("makes one all_gather f32 x 101 more"), std::string::npos) << told(more);
}

// A batch of two calls under one number, in which rank 2 issued a call of another group in between.
TEST(Batch, is_of_one_group) {
  expect(analyzers::analyze(testing::evidence_of(
             "world 3\npg b = 0-2\n0-2 record snapshot part stream_ordered\n0-2 all_reduce f32 64 seq=1 [completed]\n"
             "2 all_reduce f32 8 b seq=1 [completed]\n0-2 all_reduce f32 64 seq=1 [completed]\n"
             "0,1 all_reduce f32 8 b seq=1 [completed]\n")),
         "", "");
}

// Rings that lost their beginnings. The sender announces each shape in a small message, which NCCL sends ahead: it is
// over although its receive has not run, and the next send in flight does not meet that receive.
const char* const kAnnounced =
    "world 2\n0-1 record snapshot part stream_ordered head_lost\n"
    "0 send i64 3 to 1 [completed]\n0 send bf16 4000 to 1 [completed]\n0 send i64 3 to 1 [completed]\n"
    "0 send bf16 4000 to 1 [completed]\n0 send i64 3 to 1 [completed]\n0 send bf16 4000 to 1 [started]\n"
    "1 recv bf16 4000 from 0 [completed]\n1 recv i64 3 from 0 [completed]\n1 recv bf16 4000 from 0 [completed]\n"
    "1 recv i64 3 from 0 [scheduled]\n";

TEST(SmallSends, run_ahead_of_their_receives) {
  const auto findings = analyzers::analyze(testing::evidence_of(kAnnounced));
  expect(findings, "inconclusive", "none");
  EXPECT_NE(findings[0].summary.find("rank 1 is in recv i64 x 3 from 0"), std::string::npos) << told(findings);
}

TEST(SmallSends, of_which_nothing_is_retained_leave_it_open) {
  expect(analyzers::analyze(testing::evidence_of("world 2\n0-1 record snapshot part stream_ordered head_lost\n"
                                                 "0 send bf16 4000 to 1 [started]\n1 recv i64 3 from 0 [scheduled]\n")),
         "p2p-size", "0,1", Confidence::low);
}

// Here what is over shows that the two in flight do meet.
TEST(SmallSends, do_not_excuse_a_pair_that_meets) {
  const auto findings = analyzers::analyze(testing::evidence_of(
      "world 2\n0-1 record snapshot part stream_ordered head_lost\n0 send bf16 4000 to 1 [completed]\n"
      "0 send i64 3 to 1 [completed]\n0 send bf16 4000 to 1 [started]\n1 recv bf16 4000 from 0 [completed]\n"
      "1 recv i64 3 from 0 [completed]\n1 recv bf16 5000 from 0 [started]\n"));
  expect(findings, "p2p-size", "0,1");
  EXPECT_EQ(findings[0].confidence, Confidence::high);
}

// 0 to 2 wait for 3 and 4, and these are in a call that all its members entered: what keeps that one keeps all.
TEST(EveryoneArrived, below_who_waits) {
  const auto findings = analyzers::analyze(testing::evidence_of(
      "world 5\npg b = 3,4\n0-4 record snapshot part stream_ordered\n0-2 all_reduce f32 8 pg0 seq=1 [started]\n"
      "3,4 all_gather f32 9 b seq=1 [started]\n"));
  expect(findings, "stuck-in-collective", "none");
  EXPECT_NE(findings[0].summary.find("all_gather f32 x 9"), std::string::npos) << told(findings);
  EXPECT_EQ(findings[0].victims.text(), "0-4");
}

// gloo has no stream: a call may be open that a later one has overtaken.
TEST(WithoutStreams, an_overtaken_call_is_still_waited_for) {
  expect(analyzers::analyze(testing::evidence_of(
             "world 3\npg b = 0,1\n0-2 record snapshot part backend=gloo\n0-2 barrier seq=1 [completed]\n"
             "0,1 broadcast f32 8 root=0 seq=2 [scheduled]\n0,1 broadcast f32 9 root=0 seq=3 [completed]\n")),
         "missing-ranks", "2");
}

// Rank 2 leaves an asynchronous all_reduce out and goes on to an exchange that the others have posted behind theirs.
TEST(WentPast, who_meets_the_others_behind_a_call_skipped_it) {
  expect(of_dumps("world 3\n0,1 all_reduce f32 8 pg0 async\n0-2 group_begin\n0 send f32 4 to 1\n0 recv f32 4 from 2\n"
                  "1 send f32 4 to 2\n1 recv f32 4 from 0\n2 send f32 4 to 0\n2 recv f32 4 from 1\n0-2 group_end\n"),
         "rank-skipped", "2", Confidence::medium);
}

// Rank 0 is in a collective by itself; rank 1 waits for its send. Alone among four it is the odd one, of two it is not.
TEST(AloneInACall, while_its_partner_waits) {
  expect(of_dumps("world 4\n0-3 barrier pg0\n0 broadcast f32 8 root=0 pg0\n1 recv f32 4 from 0\n3 send f32 4 to 0\n"
                  "0 send f32 4 to 1\n0 recv f32 4 from 3\n2 recv f32 9 from 3\n3 send f32 9 to 2\n"),
         "p2p-unmatched", "0", Confidence::medium);
  expect(of_dumps("world 2\n0,1 barrier pg0\n0 broadcast f32 8 root=0 pg0\n1 recv f32 4 from 0\n0 send f32 4 to 1\n"),
         "p2p-unmatched", "0,1", Confidence::medium);
}

// Rank 2 is missing; what its stack shows decides what that is called.
TEST(MissingRank, is_a_stuck_host_where_its_stack_is_outside_of_any_call) {
  const auto with_stack = [](std::string distributed_call) {
    Evidence evidence;
    evidence.trace = testing::cut(sim::replay(
        testing::trace_of("world 3\n0-2 barrier pg0\n0,1 all_reduce f32 8 pg0\n2 stuck \"in the loader\"\n")));
    HostStack stack;
    stack.frames = {"data.py:31 in load"};
    stack.main_thread = true;
    stack.call_site = "data.py:31 in load";
    stack.distributed_call = std::move(distributed_call);
    LogEvent event;
    event.rank = RankId(2);
    event.fact = stack;
    evidence.events.push_back(event);
    return analyzers::analyze(evidence);
  };
  expect(with_stack(""), "stuck-host", "2", Confidence::medium);
  expect(with_stack("recv"), "missing-ranks", "2", Confidence::medium);
}

}  // namespace
}  // namespace ddx
