#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzers/launch/launch.h"
#include "tests/analyzers/judges/story.h"

namespace ddx::analyzers {
namespace {

using test::brief;
using test::ranks;
using test::Story;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

StoreBarrier barrier(std::int64_t rank, std::int64_t world, std::int64_t count, bool timed_out = false, int key = 1) {
  StoreBarrier fact;
  fact.rank = RankId(rank);
  fact.key = "store_based_barrier_key:" + std::to_string(key);
  fact.world_size = world;
  fact.worker_count = count;
  fact.timed_out = timed_out;
  return fact;
}

// ---- the store barrier ----------------------------------------------------------------------------------------------

TEST(StoreBarrier, OneOfTwoArrived) {
  Story story;
  for (int i = 0; i < 3; ++i) story.by(0).says(barrier(0, 2, 1));
  story.says(barrier(0, 2, 1, true));
  const auto findings = judge_store_barrier(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("rank-missing error high 1"));
  EXPECT_EQ(findings[0].victims, ranks({0}));
  EXPECT_THAT(findings[0].explanation, HasSubstr("Why is not in these lines"));
}

TEST(StoreBarrier, SixReportersOfEight) {
  Story story;
  for (int rank : {0, 1, 2, 4, 5, 7}) story.by(rank).says(barrier(rank, 8, 6, true));
  EXPECT_THAT(brief(judge_store_barrier(story.evidence())), ElementsAre("rank-missing error high 3,6"));
}

TEST(StoreBarrier, OneReporterOfSevenArrivalsCannotNameTheEighth) {
  Story story;
  story.by(2).says(barrier(2, 8, 7, true));
  const auto findings = judge_store_barrier(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("rank-missing error low none"));
  EXPECT_THAT(findings[0].summary, HasSubstr("1 of ranks 0,1,3-7 never arrived"));
}

TEST(StoreBarrier, JoinLinesNameWhoArrived) {
  Story story;
  for (int rank : {0, 1, 3}) story.says(StoreJoin{RankId(std::int64_t{rank}), "store_based_barrier_key:1"});
  story.says(barrier(0, 4, 3, true));
  EXPECT_THAT(brief(judge_store_barrier(story.evidence())), ElementsAre("rank-missing error high 2"));
}

TEST(StoreBarrier, WaitingIsHealthyWhenTheRankWentOn) {
  Story story;
  story.by(0).says(barrier(0, 2, 1)).by(0).says(barrier(0, 2, 1)).by(0).says(ProgressNotice{"step 1"});
  EXPECT_THAT(judge_store_barrier(story.evidence()), IsEmpty());
}

TEST(StoreBarrier, FullCountIsHealthy) {
  Story story;
  for (int rank = 0; rank < 4; ++rank) story.by(rank).says(barrier(rank, 4, 4));
  EXPECT_THAT(judge_store_barrier(story.evidence()), IsEmpty());
}

TEST(StoreBarrier, ASecondGroupThatOneRankDoesNotMake) {
  Story story;
  for (int rank : {0, 1, 3}) story.by(rank).says(barrier(rank, 4, 3, true, 2));
  EXPECT_THAT(brief(judge_store_barrier(story.evidence())), ElementsAre("group-create error medium 2"));
}

TEST(StoreBarrier, AnAbsentRankThatDiedIsToldElsewhere) {
  Story story;
  ProcessEnd end;
  end.what = "ImportError: no module";
  story.by(1).says(end);
  story.by(0).says(barrier(0, 2, 1, true));
  EXPECT_THAT(judge_store_barrier(story.evidence()), IsEmpty());
}

TEST(StoreBarrier, ARankBeyondTheWorldAndTwiceTheCount) {
  Story story;
  story.in("err.log").says(barrier(2, 2, 4, true));
  const auto findings = judge_store_barrier(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("launch-double error high none"));
  EXPECT_THAT(findings[0].subjects, Contains("line err.log:1"));
  EXPECT_THAT(findings[0].summary, HasSubstr("rank 2"));
}

TEST(StoreBarrier, RanksFromOneToFour) {
  Story story;
  for (int rank = 1; rank <= 4; ++rank) story.by(rank).says(barrier(rank, 4, 4, true));
  const auto findings = judge_store_barrier(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("rank-range error high 4"));
  EXPECT_EQ(findings[0].advice, "Subtract 1 from every rank.");
}

TEST(StoreBarrier, FourAttemptsInOneCounter) {
  Story story;
  story.says(StoreJoin{RankId(0), "store_based_barrier_key:1"});
  for (int i = 0; i < 3; ++i) story.says(barrier(0, 4, 16));
  const auto findings = judge_store_barrier(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("stale-store error medium none"));
  EXPECT_THAT(findings[0].summary, HasSubstr("4 attempts"));
  EXPECT_THAT(findings[0].explanation, HasSubstr("attempt 0, before these lines"));
}

TEST(StoreBarrier, OneRankCameBack) {
  Story story;
  story.by(0).says(ProgressNotice{"step 9"}).by(1).says(ProgressNotice{"step 9"});
  story.in("pod2.log").by(2).says(barrier(2, 3, 4)).by(2).says(barrier(2, 3, 4));
  const auto findings = judge_store_barrier(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("partial-restart error medium 2"));
  EXPECT_EQ(findings[0].victims, ranks({0, 1}));
}

TEST(StoreBarrier, TwoWorldSizes) {
  Story story;
  for (int rank = 0; rank < 4; ++rank) story.by(rank).says(barrier(rank, rank == 3 ? 8 : 4, 4, true));
  EXPECT_THAT(brief(judge_store_barrier(story.evidence())), ElementsAre("world-size-disagree error high 3"));
}

TEST(StoreBarrier, HostileNumbers) {
  Story story;
  story.by(-5).says(barrier(-5, 0, -3, true)).by(1).says(barrier(1, 0, INT64_MAX, true));
  story.says(barrier(7, INT64_MAX, 3, true, 3));
  for (const Finding& finding : judge_store_barrier(story.evidence())) EXPECT_LE(finding.ranks.size(), 2u);
}

// ---- several worlds -------------------------------------------------------------------------------------------------

TestsBanner banner(const std::string& host, std::int64_t pid, int ranks_in_it, int first_device = 0) {
  TestsBanner fact;
  for (int rank = 0; rank < ranks_in_it; ++rank) {
    fact.rows.push_back(
        {RankId(std::int64_t{rank}), pid, host, first_device + rank, "0x" + std::to_string(first_device + rank)});
  }
  return fact;
}

TEST(Worlds, TwoBannersOfEightOnTwoHosts) {
  Story story;
  story.says(banner("node-a", 798, 8)).says(banner("node-b", 811, 8));
  const auto findings = judge_worlds(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("launch-split error high none"));
  EXPECT_THAT(findings[0].subjects, ElementsAre("host node-a", "host node-b"));
  EXPECT_THAT(findings[0].summary, HasSubstr("2 communicators of 8 ranks"));
  EXPECT_THAT(findings[0].summary, HasSubstr("instead of one of 16"));
  EXPECT_THAT(findings[0].explanation, HasSubstr("bandwidth"));
}

TEST(Worlds, OneRunAfterAnotherIsHealthy) {
  Story story;
  story.says(banner("node-a", 798, 8)).says(banner("node-a", 950, 8));
  EXPECT_THAT(judge_worlds(story.evidence()), IsEmpty());
}

TEST(Worlds, OneBannerOverTwoHostsIsHealthy) {
  Story story;
  TestsBanner both = banner("node-a", 1, 2);
  both.rows.push_back({RankId(2), 2, "node-b", 0, "0x0"});
  story.says(both);
  EXPECT_THAT(judge_worlds(story.evidence()), IsEmpty());
}

TEST(Worlds, FourTasksOfOneRankOnOneDevice) {
  Story story;
  for (int task = 0; task < 4; ++task) story.by(task).says(banner("node-a", 100 + task, 1));
  EXPECT_THAT(brief(judge_worlds(story.evidence())), ElementsAre("launch-split error high none"));
}

CommInit init(std::int64_t rank, std::int64_t nranks, const std::string& id, bool complete = true,
              const std::string& bus = "") {
  CommInit fact;
  fact.function = "ncclCommInitRank";
  fact.comm = "0x1";
  fact.rank = rank;
  fact.nranks = nranks;
  fact.comm_id = id;
  fact.complete = complete;
  fact.bus_id = bus;
  return fact;
}

TEST(Worlds, TwoWholeCommunicatorsOnTwoHosts) {
  Story story;
  for (int rank = 0; rank < 2; ++rank) story.by(rank).on("node-a", 10 + rank).says(init(rank, 2, "0xa"));
  for (int rank = 0; rank < 2; ++rank) story.by(rank).on("node-b", 10 + rank).says(init(rank, 2, "0xb"));
  EXPECT_THAT(brief(judge_worlds(story.evidence())), ElementsAre("launch-split error medium none"));
}

TEST(Worlds, CommunicatorsWithoutRanksMayBePartsOfOneJob) {
  Story story;
  for (int rank = 0; rank < 2; ++rank) story.on("node-a", 10 + rank).says(init(rank, 2, "0xa"));
  for (int rank = 0; rank < 2; ++rank) story.on("node-b", 10 + rank).says(init(rank, 2, "0xb"));
  EXPECT_THAT(judge_worlds(story.evidence()), IsEmpty());
  // A world that is stated to be just as small leaves no room for a larger job.
  EXPECT_THAT(brief(judge_worlds(story.world(2).evidence())), ElementsAre("launch-split error medium none"));
}

TEST(Worlds, TensorParallelGroupsOfOneJobAreHealthy) {
  Story story;
  for (int rank = 0; rank < 4; ++rank) {
    story.by(rank).on(rank < 2 ? "node-a" : "node-b", 10 + rank).says(init(rank % 2, 2, rank < 2 ? "0xa" : "0xb"));
  }
  EXPECT_THAT(judge_worlds(story.evidence()), IsEmpty());
}

TEST(Worlds, GroupsBesideTheirWorldAreHealthy) {
  Story story;
  for (int rank = 0; rank < 4; ++rank) story.on(rank < 2 ? "a" : "b", 10 + rank).says(init(rank, 4, "0xw"));
  for (int rank = 0; rank < 4; ++rank)
    story.on(rank < 2 ? "a" : "b", 10 + rank).says(init(rank % 2, 2, rank < 2 ? "0xa" : "0xb"));
  EXPECT_THAT(judge_worlds(story.evidence()), IsEmpty());
}

// ---- who is who -----------------------------------------------------------------------------------------------------

TEST(Identity, TwoProcessesClaimRankOne) {
  Story story;
  story.on("a", 1).says(init(0, 3, "0x7")).on("a", 2).says(init(1, 3, "0x7")).on("b", 3).says(init(1, 3, "0x7"));
  const auto findings = judge_identity(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("rank-duplicate error high 1"));
  EXPECT_THAT(findings[0].summary, HasSubstr("a pid 2 and b pid 3"));
}

TEST(Identity, NcclSaysThatARankCheckedInTwice) {
  Story story;
  story.says(BootstrapDuplicate{RankId(2), 8});
  EXPECT_THAT(brief(judge_identity(story.evidence())), ElementsAre("rank-duplicate error high 2"));
}

TEST(Identity, NcclSaysThatSizesDiffer) {
  Story story;
  story.says(BootstrapSizeMismatch{16, 8});
  const auto findings = judge_identity(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("world-size-disagree error high none"));
  EXPECT_THAT(findings[0].summary, HasSubstr("16 against 8"));
}

TEST(Identity, OneCommunicatorTwoSizes) {
  Story story;
  for (int rank = 0; rank < 4; ++rank) story.on("a", 1 + rank).says(init(rank, rank == 2 ? 8 : 4, "0x7", false));
  EXPECT_THAT(brief(judge_identity(story.evidence())), ElementsAre("world-size-disagree error high 2"));
}

TEST(Identity, InvalidRank) {
  Story story;
  story.says(NcclWarning{"init.cc:1", "Invalid rank requested : 8/8"});
  EXPECT_THAT(brief(judge_identity(story.evidence())), ElementsAre("rank-range error high 8"));
}

TEST(Identity, SevenOfEightBegan) {
  Story story;
  for (int rank = 0; rank < 8; ++rank) {
    if (rank != 6) story.on("a", 1 + rank).says(init(rank, 8, "0x7", false));
  }
  const auto findings = judge_identity(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("init-hang error medium 6"));
  EXPECT_THAT(findings[0].summary, HasSubstr("7 of 8 came"));
}

TEST(Identity, OneNodesLogOfTwoNamesNobody) {
  Story story;
  for (int rank = 0; rank < 8; ++rank) story.on("a", 1 + rank).says(init(rank, 16, "0x7", false));
  EXPECT_THAT(brief(judge_identity(story.evidence())), ElementsAre("init-hang error low none"));
}

TEST(Identity, AllBeganNoneCompleted) {
  Story story;
  for (int rank = 0; rank < 4; ++rank) story.on("a", 1 + rank).says(init(rank, 4, "0x7", false));
  EXPECT_THAT(brief(judge_identity(story.evidence())), ElementsAre("init-hang error medium none"));
}

TEST(Identity, StartedAndCompletedIsHealthy) {
  Story story;
  for (int rank = 0; rank < 4; ++rank) {
    story.on("a", 1 + rank).says(init(rank, 4, "0x7", false)).on("a", 1 + rank).says(init(rank, 4, "0x7"));
  }
  EXPECT_THAT(judge_identity(story.evidence()), IsEmpty());
}

TEST(Identity, OneMemberStaysAtAnEarlierSplit) {
  Story story;
  for (int rank = 0; rank < 3; ++rank) story.on("a", 1 + rank).says(init(rank, 3, "0x7"));
  for (int rank = 0; rank < 3; ++rank) {
    for (int child = 1; child <= (rank == 1 ? 1 : 2); ++child) {
      CommInit split = init(rank, 3, "", child == 1);
      split.parent = "0x1";
      split.child_count = child;
      split.color = 0;
      story.on("a", 1 + rank).says(split);
    }
  }
  EXPECT_THAT(brief(judge_identity(story.evidence())), ElementsAre("split-mismatch error medium 1"));
}

TEST(Identity, TwoDumpsOfOneRankAtOneTime) {
  Story story;
  story.dump(0, 5, 2, 1000).dump(1, 5, 2, 1000).dump(1, 5, 2, 1001).dump(1, 5, 2, 1002);
  for (RankRecord& record : story.evidence().trace.ranks) {
    record.host = "h";
    record.pid = 7;
  }
  // One process dumped three times: no finding. Another pid at the same time: two processes.
  EXPECT_THAT(judge_identity(story.evidence()), IsEmpty());
  story.evidence().trace.ranks[3].pid = 8;
  EXPECT_THAT(brief(judge_identity(story.evidence())), ElementsAre("rank-duplicate error medium 1"));
}

TEST(Identity, LocalRanksInTheNamesOfDumps) {
  Story story;
  for (int node = 0; node < 2; ++node) {
    for (int local = 0; local < 4; ++local) {
      story.dump(local, 5, 8, 1000 + node);
      story.evidence().inputs.back().path = "node" + std::to_string(node) + "/rank_" + std::to_string(local);
    }
  }
  const auto findings = judge_identity(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("trace-no-rank error medium none"));
  EXPECT_THAT(findings[0].summary, HasSubstr("numbered 0-3 on each of 2 nodes"));
}

TEST(Identity, DumpsOfTwoRunsOneAfterTheOtherAreNoDuplicate) {
  Story story;
  story.dump(0, 5, 2, 1000).dump(1, 5, 2, 1000).dump(1, 5, 2, 9000);
  EXPECT_THAT(judge_identity(story.evidence()), IsEmpty());
}

TEST(Identity, DumpsThatDisagreeOnTheWorld) {
  Story story;
  story.dump(0, 5, 4).dump(1, 5, 4).dump(2, 5, 4).dump(3, 5, 5);
  EXPECT_THAT(brief(judge_identity(story.evidence())), ElementsAre("world-size-disagree error high 3"));
}

// ---- devices --------------------------------------------------------------------------------------------------------

TEST(Devices, EightRanksOnOneBusIdAreOneFinding) {
  Story story;
  for (int rank = 0; rank < 8; ++rank) {
    story.by(rank)
        .on("node-a", 100 + rank)
        .device(0)
        .says(DeviceDuplicate{RankId(std::int64_t{rank}), RankId(rank == 0 ? 1 : 0), "1000", 0});
  }
  const auto findings = judge_devices(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("device-duplicate error high 0-7"));
  EXPECT_THAT(findings[0].explanation, HasSubstr("chose CUDA device 0"));
}

TEST(Devices, InitLinesShowTwoRanksOnOneBusId) {
  Story story;
  for (int rank = 0; rank < 4; ++rank)
    story.on("a", 1 + rank)
        .says(init(rank, 4, "0x7", true, rank == 3 ? "c000" : "a" + std::to_string(rank % 2) + "00"));
  EXPECT_THAT(brief(judge_devices(story.evidence())), ElementsAre("device-duplicate error high 0,2"));
}

TEST(Devices, OneBusIdOnTwoHostsIsHealthy) {
  Story story;
  story.on("a", 1).says(init(0, 2, "0x7", true, "1000")).on("b", 1).says(init(1, 2, "0x7", true, "1000"));
  EXPECT_THAT(judge_devices(story.evidence()), IsEmpty());
}

TEST(Devices, BothGuessGpu0AndTheBarrierHangs) {
  Story story;
  story.by(0).says(BarrierDeviceGuess{0}).by(1).says(BarrierDeviceGuess{0});
  story.by(1).says(WatchdogTimeout{1, "ALLREDUCE", 1, 1, {}, {}});
  const auto findings = judge_devices(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("barrier-device error medium 1"));
  EXPECT_THAT(findings[0].advice, HasSubstr("set_device(LOCAL_RANK)"));
  EXPECT_THAT(findings[0].summary, Not(HasSubstr("missing")));
}

TEST(Devices, FourOnOneHostGuessTwoDevices) {
  Story story;
  for (int rank = 0; rank < 4; ++rank) story.by(rank).on("a", 1 + rank).says(BarrierDeviceGuess{rank % 2});
  EXPECT_THAT(brief(judge_devices(story.evidence())), ElementsAre("barrier-device warning medium 2,3"));
}

TEST(Devices, GuessesThatAreRightAreHealthy) {
  Story story;
  for (int rank = 0; rank < 4; ++rank) {
    story.by(rank).on(rank < 2 ? "a" : "b", 1 + rank).says(BarrierDeviceGuess{rank % 2});
  }
  story.by(0).says(WatchdogTimeout{1, "ALLREDUCE", 1, 1, {}, {}});
  EXPECT_THAT(judge_devices(story.evidence()), IsEmpty());
}

}  // namespace
}  // namespace ddx::analyzers
