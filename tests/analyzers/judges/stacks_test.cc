// What stacks of hosts show: sends and receives that wait for each other, and where an idle rank is.
#include "analyzers/liveness/stacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzers/analyzer.h"
#include "tests/analyzers/judges/story.h"
#include "traces/formats/loader.h"

namespace ddx::analyzers {
namespace {

using test::brief;
using test::ranks;
using test::Story;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

HostStack in(const std::string& call, const std::string& site = "/home/u/ring.py:16 in step") {
  HostStack stack;
  stack.main_thread = true;
  stack.distributed_call = call;
  stack.call_site = site;
  stack.frames = {site};
  return stack;
}
HostStack elsewhere(const std::string& site) { return in("", site); }
HostStack in_another_thread(const std::string& call) {
  HostStack stack = in(call);
  stack.main_thread = false;
  return stack;
}
HostStack timed_out_in(const std::string& call) {
  HostStack stack = in(call);
  stack.timed_out = true;
  return stack;
}
Story stacks(std::uint32_t world, const std::vector<HostStack>& by_rank) {
  Story story;
  story.world(world);
  for (std::size_t r = 0; r < by_rank.size(); ++r) {
    story.in("rank" + std::to_string(r) + ".log").by(static_cast<std::int64_t>(r)).says(by_rank[r]);
  }
  return story;
}
std::vector<std::string> judged(Story story) { return brief(judge_stacks(story.evidence())); }

TEST(Stacks, WhereEveryRankReceivesNobodyCanSend) {
  Story story = stacks(4, {in("recv"), in("recv"), in("recv"), in("recv", "/home/u/ring.py:20 in last")});
  const auto findings = judge_stacks(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("p2p-cycle error medium 0-3"));
  EXPECT_THAT(findings[0].summary, HasSubstr("ranks 0-3 are all in recv"));
  EXPECT_THAT(findings[0].explanation, HasSubstr("ranks 0-2: recv, called at ring.py:16 in step\n"
                                                 "rank 3: recv, called at ring.py:20 in last\n"));
  EXPECT_THAT(findings[0].evidence, SizeIs(4));
}

TEST(Stacks, OneWhoSendsOrIsElsewhereOrUnseenLeavesItOpen) {
  const std::vector<std::string> open{"inconclusive info medium none"};
  EXPECT_EQ(judged(stacks(3, {in("recv"), in("recv"), in("send")})), open);
  EXPECT_EQ(judged(stacks(3, {in("recv"), in("recv"), elsewhere("/home/u/data.py:5 in load")})), open);
  EXPECT_EQ(judged(stacks(3, {in("recv"), in("recv")})), open);
  // Posting a receive is no wait for it.
  EXPECT_EQ(judged(stacks(3, {in("recv"), in("recv"), in("irecv")})), open);
  // The world's size is not stated: there may be others.
  Story story = stacks(2, {in("recv"), in("recv")});
  story.evidence().trace.world_size.reset();
  EXPECT_EQ(judged(story), open);
}

TEST(Stacks, AThreadThatSendsBreaksTheCircle) {
  Story story = stacks(2, {in("recv"), in("recv")});
  story.by(1).says(in_another_thread("send"));
  EXPECT_EQ(judged(story), std::vector<std::string>{"inconclusive info medium none"});
}

TEST(Stacks, WhatIsOpenIsSaid) {
  Story story = stacks(4, {in("recv"), in("send"), in("recv"), elsewhere("/home/u/data.py:5 in load")});
  const auto findings = judge_stacks(story.evidence());
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_THAT(findings[0].summary, HasSubstr("ranks 0,2 are in recv and rank 1 is in send"));
  EXPECT_THAT(findings[0].summary, HasSubstr("circle"));
  EXPECT_THAT(findings[0].explanation, HasSubstr("rank 3: data.py:5 in load\n"));
  EXPECT_THAT(findings[0].explanation, HasSubstr("wait for rank 3, who has not come"));
  EXPECT_THAT(findings[0].advice, HasSubstr("peer"));
}

TEST(Stacks, CollectivesAndSingleRanksAreNoMatter) {
  EXPECT_THAT(judged(stacks(2, {in("all_reduce"), in("all_reduce")})), IsEmpty());
  EXPECT_THAT(judged(stacks(3, {in("recv"), in("all_reduce"), in("barrier")})), IsEmpty());
  EXPECT_THAT(judged(stacks(1, {in("recv")})), IsEmpty());
}

TEST(Stacks, TimeOutsTellTheSameLessSurely) {
  Story story = stacks(2, {timed_out_in("recv"), timed_out_in("recv")});
  // The stack that a process shows while it ends is not where it waited.
  story.by(1).says(elsewhere("/home/u/job.py:53 in on_exception"));
  EXPECT_EQ(judged(story), std::vector<std::string>{"p2p-cycle error low 0,1"});
}

TEST(Stacks, TheLastStackCounts) {
  Story moved = stacks(2, {in("recv"), in("recv")});
  moved.by(0).says(in("all_reduce"));
  EXPECT_THAT(judged(moved), IsEmpty());
  Story restarted = stacks(2, {in("recv"), in("recv")});
  for (LogEvent& event : restarted.evidence().events) event.attempt = 0;
  restarted.by(0).attempt(1).says(in("all_reduce"));
  EXPECT_THAT(judged(restarted), IsEmpty());
}

TEST(Stacks, WhereSendsAreRecordedTheRecorderSpeaks) {
  Story story = stacks(2, {in("recv"), in("recv")});
  Signature send;
  send.kind = OpKind::send;
  story.evidence().trace.intern(send);
  EXPECT_THAT(judged(story), IsEmpty());
}

TEST(Stacks, ADeathOrABrokenLinkExplainsTheWait) {
  Story died = stacks(2, {in("recv"), in("recv")});
  ProcessEnd killed;
  killed.kind = ProcessEnd::Kind::signal;
  killed.signal = 9;
  killed.what = "SIGKILL";
  died.by(1).says(killed);
  const auto findings = analyze(died.evidence());
  ASSERT_THAT(findings, Not(IsEmpty()));
  EXPECT_EQ(findings[0].code, "dead-rank");
  EXPECT_THAT(brief(findings), Not(::testing::Contains(HasSubstr("p2p-cycle"))));
  Story broken = stacks(2, {in("recv"), in("recv")});
  broken.by(0).says(NetCompletionError{"192.0.2.7", 12, 129});
  EXPECT_EQ(judged(broken), std::vector<std::string>{"inconclusive info medium none"});
}

TEST(Stacks, ManyRanksStayReadable) {
  std::vector<HostStack> many;
  for (int r = 0; r < 512; ++r) many.push_back(in("recv", "/home/u/r.py:" + std::to_string(r) + " in f"));
  Story story = stacks(512, many);
  const auto findings = judge_stacks(story.evidence());
  ASSERT_THAT(brief(findings), ElementsAre("p2p-cycle error medium 0-511"));
  EXPECT_LT(findings[0].explanation.size(), 1'000U);
  EXPECT_THAT(findings[0].explanation, HasSubstr("and 504 more places"));
  EXPECT_LE(findings[0].evidence.size(), 8U);
}

std::vector<Finding> findings_of(const std::string& fault) {
  return analyze(formats::load({DDX_SOURCE_DIR "/tests/e2e/data/" + fault}, formats::LoadOptions{}));
}

TEST(Stacks, OfARealCircle) {
  const auto findings = findings_of("p2p_cycle");
  ASSERT_THAT(brief(findings), ElementsAre("p2p-cycle error medium 0-3"));
  EXPECT_THAT(findings[0].explanation, HasSubstr("p2p_cycle.py:16 in <module>"));
}

TEST(Stacks, AnIdleRankIsToldWithItsPlace) {
  const auto findings = findings_of("sleeps");
  ASSERT_THAT(findings, Not(IsEmpty()));
  EXPECT_EQ(findings[0].ranks, ranks({2}));
  EXPECT_THAT(findings[0].explanation, HasSubstr("The main thread of rank 2 is in sleeps.py:13 in <module>."));
  EXPECT_THAT(findings[0].advice, HasSubstr("sleeps.py:13"));
  bool cited = false;
  for (const EvidenceLine& line : findings[0].evidence) {
    cited = cited || (line.path.ends_with("/2/stderr.log") && line.line == 8U);
  }
  EXPECT_TRUE(cited);
}

}  // namespace
}  // namespace ddx::analyzers
