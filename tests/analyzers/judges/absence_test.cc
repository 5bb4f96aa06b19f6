#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzers/liveness/liveness.h"
#include "tests/analyzers/judges/story.h"

namespace ddx::analyzers {
namespace {

using test::brief;
using test::Story;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Absence, DumpsOfAllButTwo) {
  Story story;
  for (int rank : {0, 1, 2, 4, 5, 7}) story.dump(rank, 3, 8);
  const auto findings = judge_absence(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("evidence-missing info high none"));
  EXPECT_THAT(findings[0].summary, HasSubstr("no dump of ranks 3,6 (2 of 8 ranks)"));
}

TEST(Absence, DumpsOfUnknownRanksAreNotMissing) {
  Story story;
  for (int rank = 0; rank < 4; ++rank) story.dump(rank, 3, 4);
  for (RankRecord& record : story.evidence().trace.ranks) record.rank.reset();
  EXPECT_THAT(judge_absence(story.evidence()), IsEmpty());
  story.evidence().trace.ranks[1].rank = RankId(1);
  EXPECT_THAT(judge_absence(story.evidence()), IsEmpty()) << "three of no rank, three ranks without one";
  story.evidence().trace.ranks.pop_back();
  const auto findings = judge_absence(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("evidence-missing info high none"));
  EXPECT_THAT(findings[0].summary, HasSubstr("no dump of ranks 0,2,3")) << "one of them is really not there";
}

TEST(Absence, AFullSetWithOverrunRingsIsWhole) {
  Story story;
  for (int rank = 0; rank < 4; ++rank) story.dump(rank, 3, 4);
  for (RankRecord& record : story.evidence().trace.ranks) record.head_lost = true;
  EXPECT_THAT(judge_absence(story.evidence()), IsEmpty());
}

TEST(Absence, ACutDump) {
  Story story;
  for (int rank = 0; rank < 4; ++rank) story.dump(rank, 3, 4);
  story.evidence().trace.ranks[2].tail_lost = true;
  const auto findings = judge_absence(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("evidence-missing info high none"));
  EXPECT_THAT(findings[0].summary, HasSubstr("the dump of rank 2 is cut"));
}

TEST(Absence, CountsAgreeWithTheirWords) {
  Story story;
  for (int rank = 0; rank < 4; ++rank) story.dump(rank, 3, 4);
  std::vector<RankRecord>& ranks = story.evidence().trace.ranks;
  ranks[1].tail_lost = ranks[2].tail_lost = ranks[3].head_lost = true;
  story.in("lost");
  story.evidence().inputs.back().unreadable = true;
  const auto findings = judge_absence(story.evidence());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_THAT(findings[0].summary, HasSubstr("the dumps of ranks 1,2 are cut"));
  EXPECT_THAT(findings[0].summary, HasSubstr("1 unreadable file"));
  EXPECT_THAT(findings[0].summary, ::testing::Not(HasSubstr("files")));
  EXPECT_THAT(findings[0].explanation, HasSubstr("The ring of rank 3 has overwritten its oldest entries"));
}

TEST(Absence, ARankThatDiedNeedsNoDump) {
  Story story;
  for (int rank : {0, 1, 3}) story.dump(rank, 3, 4);
  ProcessEnd end;
  end.what = "KeyError: 'x'";
  story.in("rank2.log").by(2).says(end);
  EXPECT_THAT(judge_absence(story.evidence()), IsEmpty());
}

TEST(Absence, LogsAloneHaveNoDumpsToMiss) {
  Story story;
  story.world(8).by(0).says(ProgressNotice{"step 1"});
  EXPECT_THAT(judge_absence(story.evidence()), IsEmpty());
}

TEST(Absence, OneLogStopsTenMinutesBeforeTheOthers) {
  Story story;
  for (int rank = 0; rank < 4; ++rank) {
    story.by(rank).at(100).says(ProgressNotice{"step 1"});
    if (rank == 3) continue;
    story.by(rank).at(700).says(ProgressNotice{"step 2"});
    story.by(rank).at(2500).says(WatchdogTimeout{7, "ALLREDUCE", {}, {}, {}, {}});
  }
  EXPECT_THAT(brief(judge_absence(story.evidence())), ElementsAre("lagging-rank warning low 3"));
}

TEST(Absence, QuietRanksThatNeverReportProgressAreNotSilent) {
  Story story;
  for (int rank = 1; rank < 4; ++rank) story.by(rank).at(1).says(LibraryVersion{"2.21.5"});
  story.by(0).at(700).says(ProgressNotice{"step 2"});
  story.by(0).at(2500).says(WatchdogTimeout{7, "ALLREDUCE", {}, {}, {}, {}});
  EXPECT_THAT(judge_absence(story.evidence()), IsEmpty());
}

}  // namespace
}  // namespace ddx::analyzers
