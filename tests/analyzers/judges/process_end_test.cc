#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzers/analyzer.h"
#include "analyzers/liveness/liveness.h"
#include "tests/analyzers/judges/story.h"
#include "tests/support/ops_text.h"

namespace ddx::analyzers {
namespace {

using test::brief;
using test::ranks;
using test::Story;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr auto kRun = judge_process_ends;

ProcessEnd raised(const std::string& what, bool secondary = false) {
  ProcessEnd end;
  end.what = what;
  end.secondary = secondary;
  return end;
}
ProcessEnd killed_by(std::int64_t signal, const std::string& what) {
  ProcessEnd end;
  end.kind = ProcessEnd::Kind::signal;
  end.signal = signal;
  end.what = what;
  return end;
}
ElasticFailure failure(std::int64_t rank, std::int64_t code, bool root) {
  ElasticFailure fact;
  fact.rank = RankId(rank);
  fact.exit_code = code;
  fact.root_cause = root;
  return fact;
}
WatchdogTimeout timeout(std::uint64_t seq) {
  WatchdogTimeout fact;
  fact.seq = seq;
  fact.op_type = "ALLREDUCE";
  return fact;
}

TEST(ProcessEnd, AnExceptionOnTheRankThatLeftNoDump) {
  Story story;
  story.dump(0, 2, 4).dump(1, 2, 4).dump(3, 2, 4);
  ProcessEnd end = raised("KeyError: '_sample_idx'");
  end.call_site = "train.py:565 in load_state_dict";
  story.in("rank2.log").by(2).says(end);
  const auto findings = kRun(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("dead-rank error high 2"));
  EXPECT_EQ(findings[0].victims, ranks({0, 1, 3}));
  EXPECT_THAT(findings[0].summary, HasSubstr("Rank 2 raised KeyError: '_sample_idx' (train.py:565"));
  EXPECT_THAT(findings[0].explanation, HasSubstr("rank 2 left none"));
  EXPECT_EQ(findings[0].evidence.at(0).path, "rank2.log");
}

TEST(ProcessEnd, ALogWithoutRankIsOfTheOneRankWithoutDump) {
  Story story;
  story.dump(0, 2, 4).dump(1, 2, 4).dump(3, 2, 4);
  story.in("train.log").says(raised("ValueError: bad shard"));
  EXPECT_THAT(brief(kRun(story.evidence())), ElementsAre("dead-rank error medium 2"));
}

TEST(ProcessEnd, ALogWithoutRankNamesTheFileOnly) {
  Story story;
  story.in("train.log").says(raised("ValueError: bad shard"));
  const auto findings = kRun(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("dead-rank error medium none"));
  EXPECT_THAT(findings[0].subjects, ElementsAre("line train.log:1"));
}

TEST(ProcessEnd, TheCrashComesBeforeTheLostConnection) {
  Story story;
  RankAddress of3{RankId(3), "node-a", "192.0.2.21"};
  RankAddress of9{RankId(9), "node-b", "192.0.2.22"};
  story.in("addresses.csv").says(of3).says(of9);
  story.in("rank3.log").by(3).at(6.981).says(killed_by(11, "Segmentation fault"));
  story.in("rank9.log").by(9).at(7.412).on("node-b", 1830).says(NetSocketError{"192.0.2.21", "recv", "Broken pipe"});
  story.by(9).at(7.412).on("node-b", 1830).says(ReturnCode{"transport/net_socket.cc:368", 6});
  story.by(9).at(7.420).on("node-b", 1830).says(ReturnCode{"init.cc:904", 3});
  const auto findings = kRun(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("dead-rank error high 3"));
  EXPECT_EQ(findings[0].victims, ranks({9}));
  EXPECT_THAT(findings[0].explanation,
              HasSubstr("rank 9 lost its connection to 192.0.2.21, where rank 3 ran, 431 ms later"));
  EXPECT_THAT(findings[0].explanation, HasSubstr("innermost error is 6 (remote error"));
}

TEST(ProcessEnd, AClosedConnectionIsAConsequence) {
  Story story;
  story.world(4);
  story.by(0).at(10.1).says(raised("RuntimeError: Connection closed by peer", true));
  story.by(1).at(10.0).says(raised("FileNotFoundError: shard 7"));
  story.by(2).at(9.0).says(raised("RuntimeError: Connection reset by peer", true));  // a clock that is behind
  EXPECT_THAT(brief(kRun(story.evidence())), ElementsAre("dead-rank error high 1"));
}

TEST(ProcessEnd, LauncherTableNamesTheRankOfANamelessTraceback) {
  Story story;
  story.says(raised("KeyError: 'x'"));
  story.says(failure(5, 1, true)).says(failure(0, -15, false)).says(failure(1, 1, false));
  const auto findings = kRun(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("dead-rank error medium 5"));
  EXPECT_THAT(findings[0].summary, HasSubstr("KeyError"));
}

TEST(ProcessEnd, SigkillInTheLaunchersTable) {
  Story story;
  story.says(failure(3, -9, true)).says(failure(0, -15, false)).says(failure(1, -15, false));
  const auto findings = kRun(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("dead-rank error high 3"));
  EXPECT_THAT(findings[0].advice, HasSubstr("out-of-memory"));
}

TEST(ProcessEnd, KilledButSeenAfterTheSurvivorsFell) {
  Story story;
  story.dump(0, 7, 4).dump(1, 7, 4).dump(2, 7, 4);
  for (int rank = 0; rank < 3; ++rank) {
    story.in("rank" + std::to_string(rank) + ".log")
        .by(rank)
        .says(raised("RuntimeError: Connection closed by peer", true));
  }
  story.in("torchrun.log").at(31).says(failure(1, 1, false)).at(31).says(failure(2, 1, false));
  story.at(31).says(failure(3, -9, false)).at(31).says(failure(0, 1, true));
  const auto findings = kRun(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("dead-rank error high 3"));
  EXPECT_EQ(findings[0].victims, ranks({0, 1, 2}));
}

TEST(ProcessEnd, KilledByTheLauncherAfterItsGraceIsAConsequence) {
  Story story;
  story.at(31).says(failure(0, 1, true)).at(62).says(failure(3, -9, false));
  EXPECT_THAT(brief(kRun(story.evidence())), ElementsAre("dead-rank error medium 0"));
}

TEST(ProcessEnd, AllLeftWithExitCodeOneAndNobodySaysWhy) {
  Story story;
  story.says(failure(1, 1, true)).says(failure(0, 1, false)).says(failure(2, 1, false)).says(failure(3, 1, false));
  EXPECT_THAT(brief(kRun(story.evidence())), ElementsAre("inconclusive info low none"));
}

TEST(ProcessEnd, OneLeftAndTheOthersHadToBeStopped) {
  Story story;
  story.says(failure(1, 1, true)).says(failure(0, -15, false)).says(failure(2, -15, false));
  EXPECT_THAT(brief(kRun(story.evidence())), ElementsAre("dead-rank error medium 1"));
}

TEST(ProcessEnd, GlooAbortsOnDataOfAnotherSize) {
  Story story;
  ProcessEnd end;
  end.kind = ProcessEnd::Kind::abort;
  end.what =
      "gloo::EnforceNotMet: op.preamble.length <= op.nbytes. 1024 vs 512. Received data size doesn't match expected "
      "size.";
  story.by(0).says(end);
  for (int rank : {1, 3}) story.by(rank).says(raised("RuntimeError: Connection closed by peer", true));
  story.says(failure(1, 1, false)).says(failure(0, -6, true)).says(failure(3, 1, false));
  const auto findings = kRun(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("mismatch-size error low none"));
  EXPECT_EQ(findings[0].victims, ranks({0}));
}

TEST(ProcessEnd, ExitCode137IsSigkill) {
  Story story;
  ProcessEnd end;
  end.kind = ProcessEnd::Kind::exit_code;
  end.exit_code = 137;
  story.by(6).says(end);
  EXPECT_THAT(kRun(story.evidence()).at(0).summary, HasSubstr("SIGKILL"));
}

TEST(ProcessEnd, OfTwoOwnErrorsTheEarlierIsTheCause) {
  Story story;
  story.in("a.log").by(4).at(100).says(raised("ZeroDivisionError: division by zero"));
  story.in("b.log").by(2).at(103).says(raised("AssertionError: lost data"));
  EXPECT_THAT(brief(kRun(story.evidence())), ElementsAre("dead-rank error high 4"));
}

TEST(ProcessEnd, AlikeAtTheSameMomentIsOneCauseOfAll) {
  Story story;
  for (int rank = 0; rank < 4; ++rank) {
    story.in("rank" + std::to_string(rank) + ".log")
        .by(rank)
        .at(50 + 0.1 * rank)
        .says(raised("FileNotFoundError: /data"));
  }
  const auto findings = kRun(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("dead-rank error medium 0-3"));
  EXPECT_THAT(findings[0].explanation, HasSubstr("one common cause"));
}

TEST(ProcessEnd, WithoutTimesTwoDifferentErrorsAreNotOrdered) {
  Story story;
  story.world(8);
  story.in("rank1.log").by(1).says(raised("KeyError: 'a'"));
  story.in("rank6.log").by(6).says(raised("OSError: disk"));
  const auto findings = kRun(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("dead-rank error low 1,6"));
  EXPECT_THAT(findings[0].summary, HasSubstr("which came first is not known"));
}

TEST(ProcessEnd, TheWatchdogsAbortIsNoDeath) {
  Story story;
  for (int rank = 0; rank < 3; ++rank) story.by(rank).at(600 + rank).says(timeout(9));
  for (int rank = 0; rank < 3; ++rank) story.by(rank).at(605).says(killed_by(6, "terminate called"));
  story.says(failure(0, -6, true)).says(failure(1, -6, false));
  EXPECT_THAT(kRun(story.evidence()), IsEmpty());
}

TEST(ProcessEnd, KilledAfterTheOthersTimedOutIsAConsequence) {
  Story story;
  story.by(0).at(600).says(timeout(9)).by(1).at(600).says(timeout(9));
  story.by(2).at(660).says(killed_by(9, "Killed"));
  EXPECT_THAT(kRun(story.evidence()), IsEmpty());
}

TEST(ProcessEnd, CleanAndAskedEndsAreNone) {
  Story story;
  ProcessEnd clean;
  clean.kind = ProcessEnd::Kind::exit_code;
  clean.exit_code = 0;
  story.by(0).says(clean).by(1).says(killed_by(15, "SIGTERM")).by(2).says(raised("KeyboardInterrupt"));
  story.says(failure(3, 0, false));
  EXPECT_THAT(kRun(story.evidence()), IsEmpty());
}

TEST(ProcessEnd, OnlyReportsOfALostPeerNameNobody) {
  Story story;
  story.world(4);
  for (int rank : {0, 1, 3}) story.by(rank).says(raised("RuntimeError: Connection closed by peer", true));
  const auto findings = kRun(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("inconclusive info low none"));
  EXPECT_THAT(findings[0].summary, HasSubstr("nothing here is of rank 2"));
}

// Rank 2 left first, with status 0, which no launcher lists; rank 0 was asked to stop, and so does not say why it
// ended.
TEST(ProcessEnd, WhoWasAskedToStopIsNotSuspected) {
  Story story;
  for (int rank : {1, 3}) story.by(rank).says(raised("RuntimeError: Connection closed by peer", true));
  story.says(failure(0, -15, false));
  const auto findings = kRun(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("inconclusive info low none"));
  EXPECT_THAT(findings[0].summary, HasSubstr("nothing here is of rank 2"));
  EXPECT_THAT(findings[0].explanation, HasSubstr("or a rank that nothing here speaks of"));
  EXPECT_THAT(findings[0].advice, Not(HasSubstr("rank 0")));
}

// Ends that all follow from something else, and nothing else in the evidence: dead, and nobody knows of what.
TEST(UnexplainedEnds, AreNotClean) {
  const std::pair<const char*, const char*> cases[] = {
      {"SignalException: Process 4917 got signal: 15", "stopped from outside"},
      {"KeyboardInterrupt", "stopped from outside"},
      {"DistBackendError: NCCL error: remote process exited or there was a network error", "rank 0 raised"},
  };
  for (const auto& [what, says] : cases) {
    SCOPED_TRACE(what);
    Story story;
    story.by(0).says(raised(what, true));
    const auto findings = analyzers::analyze(story.evidence());
    ASSERT_THAT(brief(findings), ElementsAre("inconclusive info low none"));
    EXPECT_THAT(findings[0].summary + findings[0].explanation, HasSubstr(says));
    EXPECT_FALSE(findings[0].evidence.empty());
  }
}

// A warning that explains no end does not hide that the job died, and stands before what is not known.
TEST(UnexplainedEnds, AreToldBesideWhatDoesNotExplainThem) {
  Story story;
  story.says(raised("SignalException: Process 4917 got signal: 15", true));
  Evidence evidence = story.evidence();
  evidence.trace = testing::evidence_of(
                       "world 3\n0-2 record snapshot part stream_ordered\n0-1 in pg0 timeout=60s since=1\n"
                       "2 in pg0 timeout=9s since=1\n0-2 barrier pg0 seq=1 [completed]\n")
                       .trace;
  const auto findings = analyzers::analyze(evidence);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].code, "timeout-short");
  EXPECT_EQ(findings[1].code, "inconclusive");
}

// Two ranks said why they ended, and which came first is not known: that is little, but more than that they are
// missing.
TEST(ProcessEnd, ErrorsOfUnknownOrderAreStillTheCause) {
  Story story;
  story.in("rank1.log").by(1).says(raised("KeyError: 3")).in("rank2.log").by(2).says(raised("ValueError: no"));
  Evidence evidence = story.evidence();
  evidence.trace = testing::evidence_of(
                       "world 4\n0-3 record snapshot part backend=gloo\n0-3 barrier pg0 seq=1 [completed]\n"
                       "0,3 all_reduce f32 8 pg0 seq=2 [scheduled]\n")
                       .trace;
  const auto findings = analyzers::analyze(evidence);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(brief(findings)[0], "dead-rank error low 1,2");
}

// A rank that dumped while calls were waited in was alive in the hang: that it left with status 1 later says little.
TEST(ProcessEnd, WhoDumpedInTheHangMayHaveGivenUp) {
  for (const bool dumped : {true, false}) {
    Story story;
    story.world(3).dump(0, 2, 3).dump(2, 2, 3);
    if (dumped) story.dump(1, 1, 3);
    story.says(failure(1, 1, true));
    EXPECT_THAT(brief(kRun(story.evidence())),
                ElementsAre(dumped ? "dead-rank error low 1" : "dead-rank error medium 1"));
  }
}

// Then what the calls say of the hang is the answer; an end in a later attempt than the dumps' stands by itself.
TEST(ProcessEnd, TheHangComesBeforeWhoGaveUpInIt) {
  const char* const dumps =
      "world 3\n0-2 record snapshot part backend=gloo attempt=0\n0-2 barrier pg0 seq=1 [completed]\n"
      "0,2 all_reduce f32 8 pg0 seq=2 [scheduled]\n";
  for (const std::uint32_t attempt : {0U, 1U}) {
    Story story;
    story.attempt(attempt).says(failure(1, 1, true));
    Evidence evidence = story.evidence();
    evidence.trace = testing::evidence_of(dumps).trace;
    const auto findings = analyzers::analyze(evidence);
    ASSERT_FALSE(findings.empty());
    EXPECT_EQ(findings[0].code, attempt == 0 ? "missing-ranks" : "dead-rank");
    EXPECT_EQ(findings[0].ranks, ranks({1}));
  }
}

TEST(ProcessEnd, AnUnresolvedNameIsNotADeath) {
  Story story;
  story.by(1).says(raised("ValueError: host not found: Name or service not known")).also(NameResolutionError{""});
  EXPECT_THAT(kRun(story.evidence()), IsEmpty());
}

TEST(ProcessEnd, OneFindingAnAttempt) {
  Story story;
  story.attempt(0).by(3).at(10).says(raised("RuntimeError: CUDA out of memory"));
  story.attempt(1).by(5).at(90).says(raised("KeyError: 'k'"));
  const auto findings = kRun(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("dead-rank error high 3", "dead-rank error high 5"));
  EXPECT_THAT(findings[0].explanation, HasSubstr("attempt 0"));
}

TEST(ProcessEnd, AnAttemptThatTheJobOutlivedIsAWarning) {
  Story story;
  story.attempt(0).by(3).at(10).says(raised("RuntimeError: CUDA out of memory"));
  story.attempt(1).by(0).at(90).says(ProgressNotice{"step 5"});
  EXPECT_THAT(brief(kRun(story.evidence())), ElementsAre("dead-rank warning high 3"));
}

TEST(ProcessEnd, TheKernelsKillIsJoinedByPid) {
  Story story;
  story.in("rank7.log").by(7).on("node-b", 4711).says(ProgressNotice{"step 1"});
  ProcessEnd end;
  end.kind = ProcessEnd::Kind::oom_kill;
  end.what = "python";
  story.in("dmesg").on("", 4711).says(end);
  const auto findings = kRun(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("dead-rank error high 7"));
  EXPECT_THAT(findings[0].summary, HasSubstr("out of memory"));
}

TEST(ProcessEnd, ALineWithoutRankIsOfTheRankThatAnotherNames) {
  Story story;
  ProcessEnd end;
  end.kind = ProcessEnd::Kind::oom_kill;
  story.says(end).by(5).says(end);
  const auto findings = kRun(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("dead-rank error high 5"));
  EXPECT_THAT(findings[0].summary, HasSubstr("Rank 5 was killed by the kernel"));
}

TEST(ProcessEnd, ACheckForNanIsToldElsewhere) {
  Story story;
  story.by(3).says(raised("RuntimeError: Loss is nan at step 300"));
  EXPECT_THAT(kRun(story.evidence()), IsEmpty());
}

TEST(ProcessEnd, FourThousandRanksStayReadable) {
  Story story;
  story.world(4096);
  story.by(1234).at(1).says(raised("KeyError: 'x'"));
  for (int rank = 0; rank < 4096; ++rank) {
    if (rank != 1234) story.by(rank).at(2).says(raised("RuntimeError: Connection closed by peer", true));
  }
  const auto findings = kRun(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("dead-rank error high 1234"));
  EXPECT_EQ(findings[0].victims.size(), 4095u);
  EXPECT_LT(findings[0].summary.size(), 120u);
  EXPECT_LT(findings[0].explanation.size(), 1000u);
  EXPECT_LE(findings[0].evidence.size(), 12u);
}

// ---- time-outs that block the host ----------------------------------------------------------------------------------

NetSocketError waited() { return {"", "recv", "Timed out waiting 3000ms for recv operation to complete"}; }

TEST(HostTimeout, OneRankOfFourDidNotWait) {
  Story story;
  for (int rank : {0, 1, 3}) {
    story.by(rank).says(raised("RuntimeError: Timed out waiting 3000ms for recv operation", true)).also(waited());
  }
  for (int rank : {1, 2, 3}) story.says(failure(rank, 1, false));
  story.says(failure(0, 1, true));
  EXPECT_THAT(brief(judge_host_timeouts(story.evidence())), ElementsAre("lagging-rank warning low 2"));
  for (const Finding& finding : kRun(story.evidence())) EXPECT_TRUE(finding.ranks.empty()) << finding.summary;
}

TEST(HostTimeout, AllWaited) {
  Story story;
  for (int rank = 0; rank < 4; ++rank) story.by(rank).says(waited());
  EXPECT_THAT(brief(judge_host_timeouts(story.evidence())), ElementsAre("timeout error low none"));
}

TEST(HostTimeout, WhoLostTheWaitingPeerIsAVictimToo) {
  Story story;
  story.by(0).says(raised("RuntimeError: Timed out waiting 3000ms for recv operation", true)).also(waited());
  for (int rank : {1, 3}) story.by(rank).says(raised("RuntimeError: Connection closed by peer", true));
  const auto findings = judge_host_timeouts(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("timeout error low none"));
  EXPECT_EQ(findings[0].victims, ranks({0, 1, 3}));
  EXPECT_THAT(kRun(story.evidence()), IsEmpty());
}

}  // namespace
}  // namespace ddx::analyzers
