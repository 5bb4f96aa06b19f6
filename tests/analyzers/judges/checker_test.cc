#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzers/checker/checker.h"
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

// ---- the wrapper ----------------------------------------------------------------------------------------------------

CollectiveFingerprint print(std::int64_t rank, std::uint64_t seq, const std::string& op = "BROADCAST",
                            const std::string& shape = "[1]", const std::string& type = "Long") {
  return {RankId(rank), seq, op, shape, type, "device=cpu"};
}
WrapperMismatch mismatch(CollectiveFingerprint reporter, std::optional<CollectiveFingerprint> other) {
  return {std::move(reporter), std::move(other), ""};
}

TEST(Wrapper, SequenceNumbersTwoBillionApart) {
  Story story;
  story.says(mismatch(print(16, 1977865401), print(1, 54090078)));
  const auto findings = judge_wrapper(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("checker-suspect warning high none"));
  EXPECT_THAT(findings[0].summary, HasSubstr("by 1,923,775,323"));
  EXPECT_THAT(findings[0].advice, HasSubstr("PyTorch 2.1"));
}

TEST(Wrapper, ACutLineWithAnAbsurdNumberOnACpuTensor) {
  Story story;
  story.says(mismatch(print(16, 1977865401), std::nullopt));
  EXPECT_THAT(brief(judge_wrapper(story.evidence())), ElementsAre("checker-suspect warning low none"));
}

TEST(Wrapper, ACutLineWithAnOrdinaryNumberSaysNothing) {
  Story story;
  story.says(mismatch(print(16, 812), std::nullopt));
  EXPECT_THAT(brief(judge_wrapper(story.evidence())), ElementsAre("inconclusive info low none"));
}

TEST(Wrapper, ReportsOfFourRanksVote) {
  Story story;
  for (int rank = 0; rank < 3; ++rank) {
    story.by(rank).says(mismatch(print(rank, 7, "ALLREDUCE", "[8]"), print(3, 7, "ALLREDUCE", "[9]")));
  }
  story.by(3).says(mismatch(print(3, 7, "ALLREDUCE", "[9]"), print(0, 7, "ALLREDUCE", "[8]")));
  const auto findings = judge_wrapper(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("mismatch-size error high 3"));
  EXPECT_EQ(findings[0].victims, ranks({0, 1, 2}));
}

TEST(Wrapper, TwoRanksWithDifferentOperationsAreBothNamed) {
  Story story;
  story.says(mismatch(print(0, 7, "ALLREDUCE"), print(1, 7, "BROADCAST")));
  EXPECT_THAT(brief(judge_wrapper(story.evidence())), ElementsAre("mismatch-type error medium 0,1"));
}

TEST(Wrapper, DifferentDatatypes) {
  Story story;
  story.says(mismatch(print(0, 7, "ALLREDUCE", "[8]", "Float"), print(1, 7, "ALLREDUCE", "[8]", "Half")));
  EXPECT_THAT(brief(judge_wrapper(story.evidence())), ElementsAre("mismatch-dtype error medium 0,1"));
}

TEST(Wrapper, SequenceNumbersAFewApartAreARealDesync) {
  Story story;
  for (int rank : {0, 1, 3}) story.says(mismatch(print(rank, 814), print(2, 812)));
  const auto findings = judge_wrapper(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("rank-skipped error high 2"));
  EXPECT_THAT(findings[0].summary, HasSubstr("out of step by 2 operations"));
}

// ---- idle notices ---------------------------------------------------------------------------------------------------

TEST(Idle, NoticesAndThenWorkIsNoFault) {
  Story story;
  story.at(36600)
      .says(IdleNotice{"shm_broadcast", 600 * kSecond})
      .at(37200)
      .says(IdleNotice{"shm_broadcast", 600 * kSecond});
  story.at(37267).says(ProgressNotice{"request 118 finished"});
  const auto findings = judge_idle(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("no-fault info high none"));
  EXPECT_THAT(findings[0].evidence.back().line, 3u);
}

TEST(Idle, NoWorkAfterItIsOpen) {
  Story story;
  story.at(1).says(ProgressNotice{"request 1"}).at(601).says(IdleNotice{"shm_broadcast", 600 * kSecond});
  EXPECT_THAT(brief(judge_idle(story.evidence())), ElementsAre("inconclusive info low none"));
}

TEST(Idle, BesideRealTroubleItIsNotJudged) {
  Story story;
  story.says(IdleNotice{"shm_broadcast", 600 * kSecond}).says(WatchdogTimeout{}).says(ProgressNotice{"step"});
  EXPECT_THAT(judge_idle(story.evidence()), IsEmpty());
}

// ---- NaN ------------------------------------------------------------------------------------------------------------

TEST(Nan, TheFirstInTime) {
  Story story;
  story.in("a").by(0).at(10.2).says(NanNotice{"loss is nan"}).in("b").by(5).at(10.1).says(NanNotice{"loss is nan"});
  EXPECT_THAT(brief(judge_nan(story.evidence())), ElementsAre("nan-values error medium 5"));
}

TEST(Nan, WithoutOrderNobodyIsNamed) {
  Story story;
  story.in("a").by(0).says(NanNotice{"loss is nan"}).in("b").by(5).says(NanNotice{"loss is nan"});
  const auto findings = judge_nan(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("nan-values error low none"));
  EXPECT_EQ(findings[0].victims, ranks({0, 5}));
}

TEST(Nan, AnExceptionOfACheckOnOneRankOfTwo) {
  Story story;
  ProcessEnd end;
  end.what = "RuntimeError: Loss is nan at step 300";
  story.by(0).says(ProgressNotice{"step 299"}).by(3).says(end);
  EXPECT_THAT(brief(judge_nan(story.evidence())), ElementsAre("nan-values error medium 3"));
}

TEST(Nan, OneRanksLogAloneNamesNobody) {
  Story story;
  story.by(0).says(NanNotice{"loss is nan"});
  EXPECT_THAT(brief(judge_nan(story.evidence())), ElementsAre("nan-values error low none"));
}

// ---- RAS ------------------------------------------------------------------------------------------------------------

RasCommunicator comm(std::vector<RasCommunicator::CountGroup> groups, std::uint64_t size = 32) {
  RasCommunicator fact;
  fact.id = "deadbeef";
  fact.status = "RUNNING";
  fact.errors = "MISMATCH";
  fact.size = size;
  fact.groups = std::move(groups);
  return fact;
}
RasCommunicator::CountGroup group(std::uint64_t launched, std::uint64_t count, std::vector<RankId> listed = {}) {
  return {"AllGather", launched, count, std::move(listed)};
}
std::vector<RankId> listed(std::initializer_list<std::int64_t> numbers) {
  std::vector<RankId> all;
  for (std::int64_t number : numbers) all.emplace_back(number);
  return all;
}

TEST(Ras, TheListedFewAreAheadByOne) {
  Story story;
  story.says(comm({group(640, 30), group(641, 2, listed({12, 13}))}));
  const auto findings = judge_ras(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("inconclusive info medium none"));
  EXPECT_THAT(findings[0].explanation, HasSubstr("Ranks 12,13 are ahead, not at fault"));
  EXPECT_THAT(findings[0].explanation, HasSubstr("the 30 with the lower count have not launched number 641"));
  EXPECT_THAT(findings[0].advice, HasSubstr("second report"));
}

TEST(Ras, TheListedFewAreBehindByOne) {
  Story story;
  story.says(comm({group(640, 1, listed({7})), group(641, 31)}));
  EXPECT_THAT(brief(judge_ras(story.evidence())), ElementsAre("inconclusive info medium none"));
}

TEST(Ras, TheListedFewAreBehindByNine) {
  Story story;
  story.says(comm({group(632, 1, listed({7})), group(641, 31)}));
  EXPECT_THAT(brief(judge_ras(story.evidence())), ElementsAre("lagging-rank warning low 7"));
}

TEST(Ras, TwoReportsBetweenWhichNothingMoved) {
  Story story;
  for (int i = 0; i < 2; ++i) story.at(100 + 60 * i).says(comm({group(640, 1, listed({7})), group(641, 31)}));
  const auto findings = judge_ras(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("missing-ranks error medium 7"));
  EXPECT_EQ(findings[0].victims.size(), 31u);
}

TEST(Ras, TwoReportsThatMovedAreHealthy) {
  Story story;
  story.says(comm({group(640, 30), group(641, 2, listed({12, 13}))}));
  story.says(comm({group(655, 1, listed({4})), group(656, 31)}));
  EXPECT_THAT(judge_ras(story.evidence()), IsEmpty());
}

TEST(Ras, OneStandsWhileTheOthersLeaveItBehind) {
  Story story;
  story.says(comm({group(640, 2, listed({7, 8})), group(641, 30)}));
  story.says(comm({group(640, 1, listed({7})), group(655, 31)}));
  EXPECT_THAT(brief(judge_ras(story.evidence())), ElementsAre("lagging-rank warning low 7"));
}

TEST(Ras, ADeadMember) {
  Story story;
  RasCommunicator fact = comm({}, 4);
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    RasCommunicator::Member member;
    member.rank = RankId(rank);
    member.host = "node-a";
    member.considered_dead = rank == 2;
    fact.members.push_back(member);
  }
  story.says(fact);
  const auto findings = judge_ras(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("dead-rank error high 2"));
  EXPECT_THAT(findings[0].subjects, Contains("host node-a"));
}

TEST(Ras, PositionsOfAPartAreNotRanks) {
  Story story;
  for (const char* id : {"aa", "bb"}) {
    RasCommunicator fact = comm({}, 2);
    fact.id = id;
    for (std::int64_t rank = 0; rank < 2; ++rank) {
      RasCommunicator::Member member;
      member.rank = RankId(rank);
      member.unresponsive = rank == 1 && id[0] == 'b';
      fact.members.push_back(member);
    }
    story.says(fact);
  }
  const auto findings = judge_ras(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("dead-rank error medium none"));
  EXPECT_THAT(findings[0].subjects, ElementsAre("communicator bb", "position 1"));
}

TEST(Ras, AMemberThatHasNotComeToTheStart) {
  Story story;
  RasCommunicator fact = comm({}, 4);
  fact.status = "INIT";
  fact.errors = "INCOMPLETE";
  RasCommunicator::Member member;
  member.rank = RankId(3);
  member.missing = true;
  member.unresponsive = true;
  fact.members.push_back(member);
  story.says(fact);
  EXPECT_THAT(brief(judge_ras(story.evidence())), ElementsAre("init-hang error medium 3"));
}

TEST(Ras, ATextReportListsOnlyTheFewerAsMembers) {
  Story story;
  RasCommunicator fact = comm({group(640, 30), group(641, 2, listed({12, 13}))});
  for (std::int64_t rank : {12, 13}) {
    RasCommunicator::Member member;
    member.rank = RankId(rank);
    member.counts.emplace_back("AllGather", 641);
    fact.members.push_back(member);
  }
  story.says(fact);
  EXPECT_THAT(brief(judge_ras(story.evidence())), ElementsAre("inconclusive info medium none"));
}

TEST(Ras, LevelCountsAreHealthy) {
  Story story;
  RasCommunicator fact = comm({group(640, 32)});
  fact.errors = "OK";
  story.says(fact);
  EXPECT_THAT(judge_ras(story.evidence()), IsEmpty());
}

}  // namespace
}  // namespace ddx::analyzers
