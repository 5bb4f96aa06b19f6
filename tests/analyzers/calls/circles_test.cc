// Jobs of several groups a rank in which one rank does something new: the circle of waits names several, their own
// earlier steps name one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "analyzers/analyzer.h"
#include "tests/support/cut.h"
#include "tests/support/ops_text.h"
#include "tests/support/told.h"

namespace ddx {
namespace {

using testing::told;

// Two by two: rows t0, t1 (tensor parallel), columns d0, d1 (data parallel), and the world.
constexpr const char* kGrid = "world 4\npg t0 = 0,1\npg t1 = 2,3\npg d0 = 0,2\npg d1 = 1,3\n";

std::string call_of(int rank, int which) {
  if (which == 0) return fmt::format("{} all_reduce f32 64 t{}\n", rank, rank / 2);
  if (which == 1) return fmt::format("{} all_reduce f32 256 d{}\n", rank, rank % 2);
  return fmt::format("{} all_reduce f32 128 pg0\n", rank);
}

std::string step(int odd = -1, int skipped = -1) {
  std::string text;
  for (int rank = 0; rank < 4; ++rank) {
    for (int which = 0; which < 3; ++which) {
      if (rank != odd || which != skipped) text += call_of(rank, which);
    }
  }
  return text;
}

std::vector<Finding> of_dumps(const std::string& ops) {
  Evidence evidence;
  evidence.trace = testing::cut(sim::replay(testing::trace_of(ops)), {});
  return analyzers::analyze(evidence);
}

const Finding* first_error(const std::vector<Finding>& findings) {
  return findings.empty() || findings[0].severity != Severity::error ? nullptr : &findings[0];
}

TEST(GridOfGroups, who_skips_a_call_is_named_alone) {
  for (int rank = 0; rank < 4; ++rank) {
    for (int skipped = 0; skipped < 2; ++skipped) {
      SCOPED_TRACE(fmt::format("rank {} skips call {}", rank, skipped));
      const auto findings = of_dumps(kGrid + step() + step() + step() + step(rank, skipped) + step());
      const Finding* first = first_error(findings);
      ASSERT_NE(first, nullptr) << told(findings);
      EXPECT_EQ(first->ranks.text(), std::to_string(rank)) << told(findings);
      EXPECT_EQ(first->confidence, Confidence::medium);
      // Behind a skipped first call the rank got two calls further: a swap would have made the skipped one by then.
      if (skipped == 0) {
        EXPECT_EQ(first->code, "rank-skipped") << told(findings);
      }
    }
  }
}

TEST(GridOfGroups, who_makes_a_foreign_call_between_steps_is_named) {
  for (const std::string odd : {"0,2", "1,3"}) {
    const std::string other = odd == "0,2" ? "1,3" : "0,2";
    const auto findings = of_dumps(kGrid + step() + step() + step() + odd + " barrier pg0\n" + step());
    const Finding* first = first_error(findings);
    ASSERT_NE(first, nullptr) << told(findings);
    EXPECT_EQ(first->code, "uneven-steps") << told(findings);
    EXPECT_EQ(first->ranks.text(), odd) << told(findings);
    EXPECT_EQ(first->victims.text(), other) << told(findings);
  }
}

// The faulty rank is the one that keeps its pattern: it makes a step more than the others, who went on together.
TEST(GridOfGroups, who_follows_most_is_not_at_fault) {
  for (int rank = 0; rank < 4; ++rank) {
    std::string more;
    for (int which = 0; which < 3; ++which) more += call_of(rank, which);
    const auto findings = of_dumps(kGrid + step() + step() + step() + more + "0-3 all_gather f32 9 pg0\n");
    const Finding* first = first_error(findings);
    ASSERT_NE(first, nullptr) << told(findings);
    EXPECT_TRUE(first->ranks.contains(RankId(rank))) << told(findings);
    EXPECT_LE(first->confidence, Confidence::medium) << told(findings);
  }
}

// A step of more than any pattern that is looked for: what always followed the hundredth call is no news.
TEST(GridOfGroups, a_long_step_is_no_break_of_pattern) {
  std::string one;
  for (int rank = 0; rank < 4; ++rank) {
    for (int i = 0; i < 300; ++i) one += call_of(rank, 0);
    one += call_of(rank, 1) + call_of(rank, 2);
  }
  const auto findings = of_dumps(kGrid + one + one + one + call_of(3, 0) + one);
  const Finding* first = first_error(findings);
  ASSERT_NE(first, nullptr) << told(findings);
  EXPECT_TRUE(first->ranks.contains(RankId(3))) << told(findings);
}

// Ranks 0 and 2 log something once, and it is over; what rank 1 does later is no fault of theirs.
TEST(GridOfGroups, a_call_that_is_over_breaks_nothing) {
  const std::string log = "0,2 all_gather f32 7 d0\n";
  std::string more;
  for (int which = 0; which < 3; ++which) more += call_of(1, which);
  const auto findings = of_dumps(kGrid + step() + step() + step() + log + step() + more + "0-3 barrier pg0\n");
  const Finding* first = first_error(findings);
  ASSERT_NE(first, nullptr) << told(findings);
  EXPECT_TRUE(first->ranks.contains(RankId(1))) << told(findings);
}

// Of whole programs all is known: a swap is no other number of steps.
TEST(WholePrograms, are_not_judged_by_patterns) {
  Evidence evidence;
  evidence.trace = testing::snapshot_of(
      "world 2\npg a = 0,1\npg b = 0,1\nrepeat 5\n0-1 all_reduce f32 8 a\nend\n"
      "0 all_reduce f32 8 a\n0 all_gather f32 4 b\n1 all_gather f32 4 b\n1 all_reduce f32 8 a\n");
  const auto findings = analyzers::analyze(evidence);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].code, "order-cross-group") << told(findings);
}

// Nobody repeats anything: both stories are told, and nobody is singled out.
TEST(GridOfGroups, without_earlier_steps_all_of_the_circle_are_named) {
  const auto findings = of_dumps(std::string(kGrid) + step(2, 0) + step());
  const Finding* first = first_error(findings);
  ASSERT_NE(first, nullptr) << told(findings);
  EXPECT_EQ(first->code, "order-cross-group") << told(findings);
  EXPECT_TRUE(first->ranks.contains(RankId(2))) << told(findings);
  EXPECT_GT(first->ranks.size(), 1u);
  EXPECT_LE(first->confidence, Confidence::medium);
  EXPECT_NE(first->explanation.find("left a call out"), std::string::npos) << told(findings);
}

// Whoever never made a call in a group without a member list cannot be seen there: nothing is said of "all members".
TEST(MembersNotRecorded, all_is_not_said_of_a_group) {
  const char* const dumps =
      "world 4\npg g = ? size=2\n0-3 record snapshot part backend=gloo\n0-3 barrier pg0 seq=1 [completed]\n"
      "1 all_reduce f32 8 g seq=1 [scheduled]\n";
  const auto findings = analyzers::analyze(testing::evidence_of(dumps));
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].code, "inconclusive") << told(findings);
  EXPECT_TRUE(findings[0].ranks.empty());
  EXPECT_EQ(findings[0].victims.text(), "1");
  EXPECT_NE(findings[0].explanation.find("ranks 0,2,3"), std::string::npos) << told(findings);
}

// A program may say itself that it stops, with nobody waiting for it. Leaving early is no fault.
TEST(Stops, are_told_though_nobody_waits) {
  const std::pair<const char*, const char*> cases[] = {{"stuck \"in the data loader\"", "stuck-host"},
                                                       {"raise \"KeyError\"", "dead-rank"},
                                                       {"crash", "dead-rank"},
                                                       {"exit", ""}};
  for (const auto& [stop, code] : cases) {
    SCOPED_TRACE(stop);
    Evidence evidence;
    evidence.trace = testing::snapshot_of(fmt::format("world 4\n0-3 all_reduce f32 8\n3 {}\n", stop));
    const auto findings = analyzers::analyze(evidence);
    ASSERT_EQ(findings.size(), *code ? 1u : 0u) << told(findings);
    if (findings.empty()) continue;
    EXPECT_EQ(findings[0].code, code);
    EXPECT_EQ(findings[0].ranks.text(), "3");
    EXPECT_TRUE(findings[0].victims.empty());
  }
}

// All members are in it, and that they agree must not be said beside the pair that does not fit.
TEST(Splits, that_do_not_fit_are_the_only_story) {
  Evidence evidence;
  evidence.trace = testing::snapshot_of(
      "world 3\n0 all_to_all f32 6 splits=1,2,3\n1 all_to_all f32 6 splits=2,2,2\n"
      "2 all_to_all f32 6 in_splits=3,2,1 out_splits=2,2,2\n0-2 barrier\n");
  const auto findings = analyzers::analyze(evidence);
  ASSERT_EQ(findings.size(), 1u) << told(findings);
  EXPECT_EQ(findings[0].code, "a2a-split") << told(findings);
}

// Two members of two, or a call that all of them once completed: then all are known, recorded or not.
TEST(MembersNotRecorded, may_be_known_all_the_same) {
  const char* const dumps[] = {
      "world 4\npg g = ? size=2\n0-3 record snapshot part stream_ordered\n0-3 barrier pg0 seq=1 [completed]\n"
      "0-1 all_reduce f32 8 g seq=1 [started]\n",
      "world 4\npg g = ?\n0-3 record snapshot part stream_ordered\n0-3 barrier pg0 seq=1 [completed]\n"
      "0-1 all_reduce f32 8 g seq=1 [completed]\n0-1 all_reduce f32 8 g seq=2 [started]\n"};
  for (const char* const text : dumps) {
    const auto findings = analyzers::analyze(testing::evidence_of(text));
    ASSERT_FALSE(findings.empty());
    EXPECT_EQ(findings[0].code, "stuck-in-collective") << told(findings);
  }
}

// Of calls with a root that nobody recorded it cannot be said that all agree; of others it can.
TEST(RootNotRecorded, is_said) {
  const std::pair<const char*, bool> calls[] = {{"broadcast f32 8", true},
                                                {"reduce f32 8", true},
                                                {"broadcast f32 8 root=1", false},
                                                {"all_reduce f32 8", false}};
  for (const auto& [call, unknown] : calls) {
    SCOPED_TRACE(call);
    const auto findings = analyzers::analyze(testing::evidence_of(
        fmt::format("world 4\n0-3 record snapshot part backend=gloo\n0-3 {} pg0 seq=1 [scheduled]\n", call)));
    ASSERT_FALSE(findings.empty());
    EXPECT_EQ(findings[0].code, "stuck-in-collective") << told(findings);
    EXPECT_EQ(findings[0].summary.find("agree on it") == std::string::npos, unknown) << told(findings);
    EXPECT_EQ(findings[0].explanation.find("root") != std::string::npos, unknown) << told(findings);
    EXPECT_EQ(findings[0].advice.find("nccl"), std::string::npos) << findings[0].advice;
  }
}

}  // namespace
}  // namespace ddx
