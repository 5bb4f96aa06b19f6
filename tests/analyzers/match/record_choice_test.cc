// Folders that hold more than one snapshot of one run: several attempts, several backends, dumps of unlike times.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "analyzers/analyzer.h"
#include "tests/support/ops_text.h"

namespace ddx {
namespace {

using ::testing::HasSubstr;

// "code ranks", errors only, in order.
std::string blamed(const std::vector<Finding>& findings) {
  std::string all;
  for (const Finding& f : findings) {
    if (f.severity == Severity::error) all += (all.empty() ? "" : "; ") + f.code + " " + f.ranks.text();
  }
  return all.empty() ? "nobody" : all;
}

std::string all_of(const std::vector<Finding>& findings) {
  std::string all;
  for (const Finding& f : findings) all += f.code + ": " + f.summary + "\n" + f.explanation;
  return all;
}

const Finding* find(const std::vector<Finding>& findings, std::string_view code) {
  const auto at = std::find_if(findings.begin(), findings.end(), [&](const Finding& f) { return f.code == code; });
  return at == findings.end() ? nullptr : &*at;
}

Evidence dumps(const std::string& ops, const std::string& path = "dump") {
  Evidence evidence = testing::evidence_of(ops);
  evidence.inputs[0].path = path;
  return evidence;
}

Evidence together(Evidence first, Evidence second) {
  first.merge(std::move(second));
  return first;
}

// `calls` complete calls of all_reduce from second `begin` on, one each second; with `open`, one more that has started.
std::string row_of_calls(const std::string& ranks, int calls, long long begin, bool open) {
  std::string text = ranks + " record snapshot part stream_ordered timing=on\n";
  for (int i = 1; i <= calls + (open ? 1 : 0); ++i) {
    const std::string issue = std::to_string((begin + i) * 1'000'000'000);
    text += ranks + " all_reduce f32 8 pg0 seq=" + std::to_string(i) + " issue=" + issue;
    text += i <= calls ? " start=" + issue + " end=" + issue + " [completed]\n" : " start=" + issue + " [started]\n";
  }
  return text;
}

TEST(RecordChoice, each_backend_is_judged_by_itself) {
  // NCCL's dumps show that rank 2 stays away; gloo's, newer and longer, are in order.
  const std::string nccl =
      "world 3\n0-2 record snapshot part stream_ordered backend=nccl\n0-2 all_reduce f32 8 pg0 seq=1 [completed]\n"
      "0,1 all_reduce f32 8 pg0 seq=2 [started]\n";
  std::string gloo = "world 3\n0-2 record snapshot part backend=gloo\n";
  for (int i = 1; i <= 5; ++i) gloo += "0-2 barrier pg0 seq=" + std::to_string(i) + " [completed]\n";
  EXPECT_EQ(blamed(analyzers::analyze(together(dumps(nccl), dumps(gloo)))), "missing-ranks 2");
  EXPECT_EQ(blamed(analyzers::analyze(together(dumps(gloo), dumps(nccl)))), "missing-ranks 2");
}

TEST(RecordChoice, of_several_attempts_the_last_one_counts) {
  // Rank 3 left a dump in the first attempt only; in the second it is gone and the others wait.
  const auto first = [](const char* folder) {
    return dumps("world 4\n" + row_of_calls("0-3", 9, 0, false), std::string("job/") + folder + "/dump");
  };
  const auto second = [](const char* folder) {
    return dumps("world 4\nabsent 3\n" + row_of_calls("0-2", 4, 100, true), std::string("job/") + folder + "/dump");
  };
  const auto findings = analyzers::analyze(together(first("attempt_0"), second("attempt_1")));
  EXPECT_EQ(blamed(findings), "dead-rank 3") << all_of(findings);
  ASSERT_NE(find(findings, "evidence-missing"), nullptr);
  EXPECT_THAT(find(findings, "evidence-missing")->explanation, HasSubstr("earlier attempt"));
}

TEST(RecordChoice, an_earlier_run_shows_by_its_times) {
  for (const int calls_then : {2, 4, 9}) {  // fewer, as many and more than the others made now
    const auto old = "world 4\nabsent 0-2\n" + row_of_calls("3", calls_then, 0, false);
    const auto findings =
        analyzers::analyze(together(dumps(old), dumps("world 4\nabsent 3\n" + row_of_calls("0-2", 4, 3600, true))));
    EXPECT_EQ(blamed(findings), "dead-rank 3") << calls_then << "\n" << all_of(findings);
  }
}

TEST(RecordChoice, clocks_that_differ_by_seconds_are_one_run) {
  const auto findings = analyzers::analyze(together(dumps("world 4\nabsent 0-2\n" + row_of_calls("3", 4, 0, true)),
                                                    dumps("world 4\nabsent 3\n" + row_of_calls("0-2", 4, 30, true))));
  EXPECT_EQ(find(findings, "dead-rank"), nullptr) << all_of(findings);
  EXPECT_EQ(find(findings, "evidence-missing"), nullptr) << all_of(findings);
}

TEST(RecordChoice, a_dump_older_than_calls_completed_with_it_blames_nobody) {
  // Ranks 0, 1 completed calls 3 and 4, so rank 2 made them, whatever its dump holds.
  const std::string text = "world 3\n" + row_of_calls("2", 2, 0, false) + row_of_calls("0,1", 4, 0, true);
  const auto findings = analyzers::analyze(dumps(text));
  EXPECT_EQ(blamed(findings), "nobody") << all_of(findings);
  ASSERT_NE(find(findings, "inconclusive"), nullptr) << all_of(findings);
  EXPECT_THAT(find(findings, "inconclusive")->summary, HasSubstr("whether rank 2 made that call is not known"));
  EXPECT_THAT(all_of(findings), HasSubstr("rank 2 is older"));
}

TEST(RecordChoice, beside_an_older_dump_the_missing_rank_is_named) {
  const std::string text =
      "world 4\n" + row_of_calls("2", 2, 0, false) + row_of_calls("0,1", 4, 0, true) + row_of_calls("3", 4, 0, false);
  const auto findings = analyzers::analyze(dumps(text));
  EXPECT_EQ(blamed(findings), "missing-ranks 3") << all_of(findings);
}

TEST(RecordChoice, a_ring_that_lost_a_group_says_nothing_of_it) {
  // Rank 0's ring holds its many calls of tp alone; rank 2 never made the third call of dp.
  std::string text =
      "world 3\npg dp = 0-2\npg tp = 0,1\n0-2 record snapshot part stream_ordered\n0 record snapshot part "
      "stream_ordered head_lost\n0 in dp\n0 in tp\n";
  for (int i = 7; i <= 9; ++i) text += "0,1 all_gather f32 8 tp seq=" + std::to_string(i) + " [completed]\n";
  text +=
      "1,2 all_reduce f32 8 dp seq=1 [completed]\n1,2 all_reduce f32 8 dp seq=2 [completed]\n"
      "1 all_reduce f32 8 dp seq=3 [started]\n";
  const auto findings = analyzers::analyze(dumps(text));
  EXPECT_EQ(blamed(findings), "missing-ranks 2") << all_of(findings);
}

TEST(RecordChoice, open_calls_without_a_number_are_inconclusive) {
  const auto findings = analyzers::analyze(
      dumps("world 2\n0,1 record snapshot part stream_ordered head_lost\n0,1 all_reduce f32 8 pg0 [completed]\n"
            "0 all_reduce f32 8 pg0 [started]\n"));
  EXPECT_EQ(blamed(findings), "nobody");
  ASSERT_NE(find(findings, "inconclusive"), nullptr) << all_of(findings);
  EXPECT_EQ(find(findings, "inconclusive")->victims.text(), "0");
}

TEST(RecordChoice, one_call_ahead_is_sure_only_where_time_passed) {
  // Three of four are in call 5: a moment of a running job, unless somebody went on for a minute meanwhile.
  const std::string at_once = "world 4\n" + row_of_calls("0-2", 4, 0, true) + row_of_calls("3", 4, 0, false);
  const auto moment = analyzers::analyze(dumps(at_once));
  ASSERT_NE(find(moment, "missing-ranks"), nullptr) << all_of(moment);
  EXPECT_EQ(find(moment, "missing-ranks")->confidence, Confidence::medium);
  EXPECT_THAT(find(moment, "missing-ranks")->explanation, HasSubstr("last to arrive"));

  const std::string later =
      at_once + "3 all_gather f32 8 own seq=1 issue=90000000000 start=90000000000 end=90000000000 [completed]\n";
  const auto stood = analyzers::analyze(dumps("world 4\npg own = 3\n" + later.substr(8)));
  ASSERT_NE(find(stood, "missing-ranks"), nullptr) << all_of(stood);
  EXPECT_EQ(find(stood, "missing-ranks")->confidence, Confidence::high);
}

TEST(RecordChoice, who_lists_other_members_is_at_fault_not_those_listed) {
  // One rank alone has another list under the same name, once a longer one, once a shorter one.
  const std::string record = "0-3 record snapshot part stream_ordered\n";
  const auto longer = analyzers::analyze(dumps("world 4\n" + record +
                                               "0 pg g = 0-3\n1-3 pg g = 1-3\n0 all_reduce f32 8 g seq=1 [started]\n"
                                               "1-3 all_reduce f32 8 g seq=1 [completed]\n"));
  EXPECT_EQ(blamed(longer), "group-disagree 0") << all_of(longer);
  const auto shorter = analyzers::analyze(dumps("world 4\n" + record +
                                                "0-2 pg g = 0-3\n3 pg g = 2,3\n3 all_reduce f32 8 g seq=1 [started]\n"
                                                "0-2 all_reduce f32 8 g seq=1 [started]\n"));
  EXPECT_EQ(blamed(shorter), "group-disagree 3") << all_of(shorter);
  // Rank 3 thinks that all are in it; 0 and 1 never heard of the group, so they are not missing there.
  const auto unheard =
      analyzers::analyze(dumps("world 5\n0-4 record snapshot part stream_ordered\n2,4 pg g = 2-4\n3 pg g = 0-4\n"
                               "3 all_reduce f32 8 g seq=1 [started]\n2,4 all_reduce f32 8 g seq=1 [started]\n"));
  EXPECT_EQ(blamed(unheard), "group-disagree 3") << all_of(unheard);
}

TEST(RecordChoice, an_old_difference_that_completed_hides_no_hang) {
  const auto findings = analyzers::analyze(
      dumps("world 4\n0-3 record snapshot part stream_ordered\n0-2 broadcast f32 8 root=0 pg0 seq=1 [completed]\n"
            "3 broadcast f16 8 root=0 pg0 seq=1 [completed]\n0-3 all_reduce f32 8 pg0 seq=2 [completed]\n"
            "0,1,3 all_reduce f32 8 pg0 seq=3 [started]\n"));
  const Finding* missing = find(findings, "missing-ranks");
  ASSERT_NE(missing, nullptr) << all_of(findings);
  EXPECT_EQ(missing->ranks.text(), "2");
  EXPECT_EQ(missing->victims.text(), "0,1,3");
  const Finding* old = find(findings, "mismatch-dtype");
  ASSERT_NE(old, nullptr) << all_of(findings);
  EXPECT_EQ(old->victims.text(), "none");
  EXPECT_EQ(old->severity, Severity::warning) << "what holds the job up comes first";
}

}  // namespace
}  // namespace ddx
