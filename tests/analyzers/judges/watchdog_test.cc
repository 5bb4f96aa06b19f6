#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzers/liveness/liveness.h"
#include "tests/analyzers/judges/story.h"

namespace ddx::analyzers {
namespace {

using test::brief;
using test::ranks;
using test::Story;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

WatchdogTimeout timeout(std::uint64_t seq, const std::string& op, std::uint64_t in, std::uint64_t out,
                        Nanos limit = 600 * kSecond) {
  WatchdogTimeout fact;
  fact.seq = seq;
  fact.op_type = op;
  fact.numel_in = in;
  fact.numel_out = out;
  fact.timeout = limit;
  return fact;
}
WatchdogStatus status(std::uint64_t failed, std::uint64_t enqueued, std::uint64_t completed) {
  WatchdogStatus fact;
  fact.failed_seq = failed;
  fact.last_enqueued = enqueued;
  fact.last_completed = completed;
  return fact;
}

TEST(Watchdog, OneSizeAgainstSeven) {
  Story story;
  for (int rank : {5, 2, 7, 1, 0, 3, 6, 4}) {
    const std::uint64_t size = rank == 0 ? 209715200 : 104857600;
    story.by(rank).says(timeout(1, "ALLREDUCE", size, size, 10 * kSecond));
  }
  const auto findings = judge_watchdog(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("mismatch-size error high 0"));
  EXPECT_EQ(findings[0].victims, ranks({1, 2, 3, 4, 5, 6, 7}));
  EXPECT_THAT(findings[0].summary, HasSubstr("209,715,200"));
  EXPECT_THAT(findings[0].subjects, ElementsAre("seq 1"));
}

TEST(Watchdog, TwoEqualSidesNameBoth) {
  Story story;
  story.by(0).says(timeout(7, "ALLREDUCE", 10, 10)).by(1).says(timeout(7, "ALLREDUCE", 20, 20));
  EXPECT_THAT(brief(judge_watchdog(story.evidence())), ElementsAre("mismatch-size error medium 0,1"));
}

TEST(Watchdog, UnequalSplitsOfAllToAllAreLegal) {
  Story story;
  for (int rank = 0; rank < 4; ++rank) story.by(rank).says(timeout(7, "ALLTOALL_BASE", 10 + std::uint64_t(rank), 16));
  EXPECT_THAT(brief(judge_watchdog(story.evidence())), ElementsAre("stuck-in-collective error low none"));
}

TEST(Watchdog, OneTypeAgainstThree) {
  Story story;
  for (int rank = 0; rank < 4; ++rank) {
    story.by(rank).group("0").says(timeout(12, rank == 2 ? "BROADCAST" : "ALLREDUCE", 8, 8));
  }
  EXPECT_THAT(brief(judge_watchdog(story.evidence())), ElementsAre("mismatch-type error high 2"));
}

// One group has one name, in the words of logs and of dumps.
TEST(Watchdog, TheWorldsGroupIsCalledAsInDumps) {
  const auto told = [](const char* name) {
    Story story;
    for (int rank = 0; rank < 4; ++rank) {
      story.by(rank).group(name).says(timeout(12, rank == 2 ? "BROADCAST" : "ALLREDUCE", 8, 8));
    }
    const auto findings = judge_watchdog(story.evidence());
    return findings.empty() ? "" : findings[0].subjects.front() + "; " + findings[0].summary;
  };
  for (const char* name : {"0", "default_pg", "0(default_pg)"}) {
    EXPECT_THAT(told(name), ::testing::StartsWith("group default_pg; ")) << name;
    EXPECT_THAT(told(name), HasSubstr("of group default_pg")) << name;
  }
  EXPECT_THAT(told("7"), ::testing::StartsWith("group 7; "));
}

TEST(Watchdog, TheOddRankHasWhatTheOthersHaveOneLater) {
  Story story;
  for (int rank = 0; rank < 4; ++rank) {
    if (rank == 3) {
      story.by(3).says(timeout(12, "BROADCAST", 5, 5));
    } else {
      story.by(rank).says(timeout(12, "ALLREDUCE", 8, 8)).by(rank).says(timeout(13, "BROADCAST", 5, 5));
    }
  }
  const auto findings = judge_watchdog(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("rank-skipped error medium 3"));
  EXPECT_THAT(findings[0].summary, HasSubstr("rank 3 skipped one operation"));
}

TEST(Watchdog, AllEnteredAndAgree) {
  Story story;
  for (int rank : {2, 5, 1, 3, 7, 0, 4, 6}) {
    story.by(rank).at(18390).says(timeout(120049, "_ALLGATHER_BASE", 16384000, 131072000, 1800 * kSecond));
    story.by(rank).at(18390).says(status(120049, 120051, 120048));
  }
  story.by(7).at(18876).says(HeartbeatStuck{480 * kSecond});
  const auto findings = judge_watchdog(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("stuck-in-collective error medium none"));
  EXPECT_THAT(findings[0].explanation, HasSubstr("The sizes are right for 8 ranks"));
  EXPECT_THAT(findings[0].explanation,
              HasSubstr("heartbeat message (8 min without progress, and it comes just that long"));
  EXPECT_THAT(findings[0].advice, Not(HasSubstr("heartbeat")));
}

TEST(Watchdog, ABufferForSevenOfEight) {
  Story story;
  story.world(8);
  for (int rank = 0; rank < 8; ++rank) story.by(rank).group("0").says(timeout(3, "_ALLGATHER_BASE", 100, 700));
  EXPECT_THAT(brief(judge_watchdog(story.evidence())), ElementsAre("mismatch-size error medium 0-7"));
}

TEST(Watchdog, BehindInEnqueueingWithUnseenRanks) {
  Story story;
  story.by(5).says(status(37876, 37877, 37875)).by(7).says(status(37876, 37877, 37875));
  story.by(6).says(status(37876, 37876, 37875));
  const auto findings = judge_watchdog(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("lagging-rank warning low 6"));
  EXPECT_THAT(findings[0].explanation, HasSubstr("Nothing is here from ranks 0-4"));
}

TEST(Watchdog, NeverEnqueuedByItsOwnStatus) {
  Story story;
  story.world(4);
  for (int rank : {0, 1, 3}) story.by(rank).says(timeout(50, "ALLREDUCE", 8, 8)).by(rank).says(status(50, 51, 49));
  story.by(2).says(status(50, 49, 49));
  const auto findings = judge_watchdog(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("missing-ranks error high 2"));
  EXPECT_EQ(findings[0].victims, ranks({0, 1, 3}));
}

TEST(Watchdog, SilentWhileItsLogIsHere) {
  Story story;
  story.world(8);
  for (int rank = 0; rank < 8; ++rank) story.in("r" + std::to_string(rank)).by(rank).says(ProgressNotice{"step 1"});
  for (int rank = 0; rank < 8; ++rank) {
    if (rank != 5) story.in("r" + std::to_string(rank)).by(rank).says(timeout(50, "ALLREDUCE", 8, 8));
  }
  EXPECT_THAT(brief(judge_watchdog(story.evidence())), ElementsAre("missing-ranks error medium 5"));
}

TEST(Watchdog, SilentInTheCommonFile) {
  Story story;
  story.world(16);
  for (int rank = 0; rank < 16; ++rank) {
    if (rank != 5) story.by(rank).says(timeout(50, "ALLREDUCE", 8, 8));
  }
  EXPECT_THAT(brief(judge_watchdog(story.evidence())), ElementsAre("missing-ranks error low 5"));
}

TEST(Watchdog, LogsOfOneNodeOfTwoNameNobody) {
  Story story;
  story.world(16);
  for (int rank = 0; rank < 8; ++rank) story.by(rank).says(timeout(50, "ALLREDUCE", 8, 8));
  const auto findings = judge_watchdog(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("timeout error low none"));
  EXPECT_THAT(findings[0].explanation, HasSubstr("ranks 8-15"));
}

TEST(Watchdog, OneTimeoutAlone) {
  Story story;
  story.by(3).says(timeout(50, "ALLREDUCE", 8, 8));
  const auto findings = judge_watchdog(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("timeout error low none"));
  EXPECT_EQ(findings[0].victims, ranks({3}));
}

TEST(Watchdog, DeviceNeverStarted) {
  Story story;
  story.world(4);
  for (int rank = 0; rank < 4; ++rank) {
    WatchdogStatus fact = status(50, 52, 49);
    fact.last_started = rank == 1 ? 49 : 50;
    story.by(rank).says(timeout(50, "ALLREDUCE", 8, 8)).by(rank).says(fact);
  }
  EXPECT_THAT(brief(judge_watchdog(story.evidence())), ElementsAre("stuck-device error medium 1"));
}

TEST(Watchdog, LimitsThatDiffer) {
  Story story;
  for (int rank = 0; rank < 4; ++rank) {
    story.by(rank).says(timeout(50, "ALLREDUCE", 8, 8, rank == 2 ? 60 * kSecond : 600 * kSecond));
  }
  EXPECT_THAT(brief(judge_watchdog(story.evidence())),
              ElementsAre("stuck-in-collective error low none", "timeout-short warning medium 2"));
}

TEST(Watchdog, WhoWaitsInOneGroupIsNotMissingInAnother) {
  Story story;
  story.world(4);
  // Ranks 0-2 wait in the world; rank 3 waits in its pair.
  for (int rank = 0; rank < 3; ++rank) story.by(rank).group("0").says(timeout(50, "ALLREDUCE", 8, 8));
  story.by(3).group("7").says(timeout(9, "ALLREDUCE", 2, 2));
  for (const Finding& finding : judge_watchdog(story.evidence())) EXPECT_TRUE(finding.ranks.empty()) << finding.summary;
}

TEST(Watchdog, TheOthersTimeoutsFollowADeath) {
  Story story;
  ProcessEnd end;
  end.what = "KeyError: 'x'";
  story.by(2).at(10).says(end);
  for (int rank : {0, 1, 3}) story.by(rank).at(611).says(timeout(50, "ALLREDUCE", 8, 8));
  EXPECT_THAT(judge_watchdog(story.evidence()), IsEmpty());
}

TEST(Watchdog, DumpsSayMoreThanTheLog) {
  Story story;
  for (int rank = 0; rank < 2; ++rank) story.dump(rank, 5, 2);
  for (int rank = 0; rank < 2; ++rank)
    story.in("log").by(rank).says(timeout(5, "ALLREDUCE", 8 + std::uint64_t(rank), 8));
  EXPECT_THAT(judge_watchdog(story.evidence()), IsEmpty());
}

TEST(Watchdog, AttemptsAreJudgedApart) {
  Story story;
  story.world(2);
  for (int rank = 0; rank < 2; ++rank) story.attempt(0).by(rank).says(timeout(5, "ALLREDUCE", 8, 8));
  for (int rank = 0; rank < 2; ++rank) story.attempt(1).by(rank).says(timeout(5, "ALLREDUCE", 16, 16));
  EXPECT_THAT(brief(judge_watchdog(story.evidence())),
              ElementsAre("stuck-in-collective error medium none", "stuck-in-collective error medium none"));
}

TEST(Watchdog, HeartbeatAlone) {
  Story story;
  story.by(4).says(HeartbeatStuck{480 * kSecond});
  const auto findings = judge_watchdog(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("timeout error low none"));
  EXPECT_THAT(findings[0].summary, HasSubstr("rank 4 made no progress for 8 min"));
}

TEST(Watchdog, NothingWithoutTimeouts) {
  Story story;
  story.by(0).says(ProgressNotice{"step 1"});
  EXPECT_THAT(judge_watchdog(story.evidence()), IsEmpty());
}

TEST(Watchdog, FourThousandRanksStayReadable) {
  Story story;
  story.world(4096);
  for (int rank = 0; rank < 4096; ++rank) {
    if (rank != 17) story.by(rank).says(timeout(50, "ALLREDUCE", 8, 8));
  }
  const auto findings = judge_watchdog(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("missing-ranks error low 17"));
  EXPECT_LT(findings[0].summary.size(), 160u);
}

}  // namespace
}  // namespace ddx::analyzers
