// One small program a code: what the ranks call, and who is at fault. Judged twice: with the whole programs known, and
// from what recorders would hold once all came to rest.
#include <gtest/gtest.h>

#include <algorithm>

#include "analyzers/analyzer.h"
#include "analyzers/judge.h"
#include "tests/support/cut.h"
#include "tests/support/ops_text.h"
#include "tests/support/told.h"

namespace ddx {
namespace {

using testing::told;

struct Case {
  const char* name;
  const char* ops;
  const char* code;                 // of the finding that names the culprits; "": no finding at all
  const char* culprits;             // RankSet::text; "none": nobody
  const char* dump_code = nullptr;  // what dumps alone can show, where that is less
  const char* dump_culprits = nullptr;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

void expect(const std::vector<Finding>& findings, std::string_view code, std::string_view culprits) {
  if (code.empty()) {
    EXPECT_TRUE(findings.empty()) << told(findings);
    return;
  }
  const auto found = std::find_if(findings.begin(), findings.end(), [&](const Finding& f) { return f.code == code; });
  ASSERT_NE(found, findings.end()) << "wanted " << code << ", told: " << told(findings);
  EXPECT_EQ(found->ranks.text(), culprits) << told(findings);
  for (const Finding& f : findings) {
    if (f.severity != Severity::error) continue;
    EXPECT_TRUE(f.ranks.without(found->ranks).empty()) << "also blamed: " << told(findings);
  }
  EXPECT_FALSE(found->summary.empty());
  EXPECT_FALSE(found->explanation.empty());
  EXPECT_FALSE(found->evidence.empty());
  EXPECT_FALSE(found->advice.empty());
}

class Calls : public ::testing::TestWithParam<Case> {};

TEST_P(Calls, whole_programs) {
  Evidence evidence;
  evidence.trace = testing::snapshot_of(GetParam().ops);
  expect(analyzers::analyze(evidence), GetParam().code, GetParam().culprits);
}

TEST_P(Calls, dumps) {
  const Case& c = GetParam();
  Evidence evidence;
  testing::CutOptions all;
  all.dead_leave_dumps = true;
  evidence.trace = testing::cut(sim::replay(testing::trace_of(c.ops)), all);
  expect(analyzers::analyze(evidence), c.dump_code ? c.dump_code : c.code,
         c.dump_culprits ? c.dump_culprits : c.culprits);
}

const Case kCases[] = {
    {"agreement", "world 4\n0-3 all_reduce f32 8 pg0\n0-3 barrier pg0\n", "", "none"},
    {"size", "world 4\n0-3 all_reduce f32 8 pg0\n0,1,3 all_reduce f32 8 pg0\n2 all_reduce f32 9 pg0\n0-3 barrier pg0\n",
     "mismatch-size", "2"},
    {"size_without_majority", "world 2\n0 all_gather f32 41 pg0\n1 all_gather f32 40 pg0\n", "mismatch-size", "0,1"},
    {"three_sizes", "world 3\n0 all_reduce f32 1 pg0\n1 all_reduce f32 2 pg0\n2 all_reduce f32 3 pg0\n",
     "mismatch-size", "0-2"},
    {"dtype", "world 3\n0,2 all_reduce f32 8 pg0\n1 all_reduce f64 8 pg0\n0-2 barrier pg0\n", "mismatch-dtype", "1"},
    {"root", "world 4\n0-2 broadcast f32 8 root=0 pg0\n3 broadcast f32 8 root=3 pg0\n0-3 barrier pg0\n",
     "mismatch-root", "3"},
    {"redop", "world 4\n1-3 all_reduce f32 8 redop=sum pg0\n0 all_reduce f32 8 redop=max pg0\n0-3 barrier pg0\n",
     "mismatch-redop", "0"},
    {"type",
     "world 4\n0-3 all_reduce f32 7 pg0\n0-2 all_reduce f32 8 pg0\n3 reduce_scatter f32 8 pg0\n0-3 all_reduce f32 9 "
     "pg0\n",
     "mismatch-type", "3"},
    {"skipped",
     "world 4\n0-3 all_reduce f32 7 pg0\n0,1,3 all_gather f32 8 pg0\n0-3 all_reduce f32 9 pg0\n0-3 barrier pg0\n",
     "rank-skipped", "2", "mismatch-type", "2"},
    {"one_more_rank_zero", "world 4\n0 all_gather bf16 256 pg0\n0-3 barrier pg0\n0-3 all_reduce f32 4 pg0\n",
     "rank0-only", "0"},
    {"swapped",
     "world 4\n0-2 all_reduce f32 1 pg0\n0-2 all_gather f32 2 pg0\n3 all_gather f32 2 pg0\n3 all_reduce f32 1 pg0\n"
     "0-3 barrier pg0\n",
     "order-inverted", "3", "mismatch-type", "3"},
    {"left_early",
     "world 4\nrepeat 5\n0-3 all_gather bf16 9000 pg0\nend\n0,2,3 all_gather bf16 9000 pg0\n"
     "1 all_gather bf16 70000 pg0\n",
     "uneven-steps", "1"},
    {"stuck_host", "world 3\n0-2 all_reduce f32 64 pg0\n0,2 all_gather f32 64 pg0\n1 stuck compute\n", "missing-ranks",
     "1"},
    {"raised", "world 4\n0-3 all_gather u8 64 pg0\n0,1,3 barrier pg0\n2 raise \"KeyError\"\n", "dead-rank", "2",
     "missing-ranks", "2"},
    {"alone", "world 4\n0-3 barrier pg0\n0 all_reduce f32 8 pg0\n", "rank0-only", "0"},
    {"two_groups",
     "world 2\npg a = 0,1\npg b = 0,1\n0 all_reduce f32 8 a\n0 all_gather f32 8 b\n1 all_gather f32 8 b\n"
     "1 all_reduce f32 8 a\n",
     "order-cross-group", "0,1"},
    {"two_groups_one_odd",
     "world 4\npg a = 0-3\npg b = 0-3\n0-3 all_reduce f32 1 a\n0-3 all_reduce f32 1 b\n"
     "0-2 all_reduce f32 8 a\n0-2 all_gather f32 8 b\n3 all_gather f32 8 b\n3 all_reduce f32 8 a\n",
     "order-cross-group", "3"},
    {"ring_of_groups",
     "world 3\npg a = 0,1\npg b = 1,2\npg c = 0,2\n0 barrier a\n0 barrier c\n1 barrier b\n1 barrier a\n"
     "2 barrier c\n2 barrier b\n",
     "order-cross-group", "0-2"},
    {"not_created",
     "world 4\npg n = 0-3\n0,1,3 broadcast u8 128 root=0 n\n2 all_reduce f32 4 pg0\n0,1,3 all_reduce f32 4 pg0\n",
     "group-create", "2"},
    {"creation_order", "world 4\n0-1 new_group 0,2\n0-1 new_group 1,3\n2-3 new_group 1,3\n2-3 new_group 0,2\n",
     "group-create", "0-3"},
    {"sends_meet",
     "world 4\n0 send i64 3 to 1\n0 recv i64 3 from 1\n1 send i64 3 to 0\n1 recv i64 3 from 0\n1 send i64 3 to 2\n"
     "1 recv i64 3 from 2\n2 send i64 3 to 1\n2 recv i64 3 from 1\n2 send i64 3 to 3\n2 recv i64 3 from 3\n"
     "3 send i64 3 to 2\n3 recv i64 3 from 2\n",
     "p2p-cycle", "0,1"},
    // What a recorder held cannot show "never", and who waits is a victim.
    {"receive_never_posted", "world 3\n0 send f32 4 to 1\n", "p2p-unmatched", "0,1", "missing-ranks", "1"},
    {"pair_sizes", "world 2\n0 send f32 4 to 1\n1 recv f32 5 from 0\n", "p2p-size", "0,1"},
    {"peer_outside", "world 4\npg a = 0,1\n0-1 broadcast f32 4 root=3 a\n", "peer-range", "0,1"},
    {"output_too_large", "world 4\n0-3 all_gather f32 10 out=30 pg0\n", "mismatch-size", "0-3"},
    {"splits",
     "world 2\n0 all_to_all f32 5 in_splits=2,3 out_splits=2,1 pg0\n1 all_to_all f32 3 in_splits=1,2 out_splits=2,2 "
     "pg0\n",
     "a2a-split", "0,1"},
};

std::string name_of_case(const ::testing::TestParamInfo<Case>& tested) { return tested.param.name; }

INSTANTIATE_TEST_SUITE_P(Codes, Calls, ::testing::ValuesIn(kCases), name_of_case);

// Three quarters of 8,192 ranks use two groups in one order, the rest in the other: everybody is on the circle. Work
// that grew with the cube of the ranks would not end here.
TEST(ManyRanks, a_circle_of_thousands_is_judged) {
  Evidence evidence;
  evidence.trace = testing::snapshot_of(
      "world 8192\npg a = 0-8191\npg b = 0-8191\n0-6143 all_reduce f32 8 a\n0-6143 all_gather f32 8 b\n"
      "6144-8191 all_gather f32 8 b\n6144-8191 all_reduce f32 8 a\n");
  const auto findings = analyzers::analyze(evidence);
  expect(findings, "order-cross-group", "0-8191");
  ASSERT_FALSE(findings.empty());
  EXPECT_LT(findings[0].explanation.size(), 4000u) << "readable at this size too";
}

// Ranks that are silent for unlike reasons are no one finding: who never comes is not who crashed.
TEST(SilentRanks, are_told_apart_by_what_ended_them) {
  Evidence evidence;
  evidence.trace = testing::snapshot_of(
      "world 6\n0-5 all_reduce f32 8 pg0\n0,1 barrier pg0\n2 stuck \"in the loader\"\n3 stuck \"on a lock\"\n"
      "4,5 crash \"segmentation fault\"\n");
  const std::vector<Finding> findings = analyzers::analyze(evidence);
  const auto of = [&](std::string_view code) {
    const auto at = std::find_if(findings.begin(), findings.end(), [&](const Finding& f) { return f.code == code; });
    return at == findings.end() ? Finding() : *at;
  };
  EXPECT_EQ(of("dead-rank").ranks.text(), "4,5") << told(findings);
  const Finding missing = of("missing-ranks");
  EXPECT_EQ(missing.ranks.text(), "2,3") << told(findings);
  EXPECT_NE(missing.explanation.find("rank 2 ends with: stuck in the loader"), std::string::npos) << told(findings);
  EXPECT_NE(missing.explanation.find("rank 3 ends with: stuck on a lock"), std::string::npos) << told(findings);
  EXPECT_NE(missing.advice.find("what ranks 2,3 do"), std::string::npos) << missing.advice;
}

// Whoever looks at the first line of evidence is to see the call that was left out, not the innocent one behind it.
TEST(SkippedCall, is_shown_first) {
  const Evidence evidence = testing::evidence_of(
      "world 3\n0-2 record snapshot part stream_ordered\n0,2 all_reduce f32 8 pg0 seq=1 [started] @train.py:39:step\n"
      "0,2 broadcast f32 4 root=0 pg0 seq=2 [scheduled] @train.py:48:step\n"
      "0,2 all_reduce f32 9 pg0 seq=3 [scheduled] @train.py:50:step\n"
      "1 broadcast f32 4 root=0 pg0 seq=1 [started] @train.py:48:step\n"
      "1 all_reduce f32 9 pg0 seq=2 [scheduled] @train.py:50:step\n");
  const std::vector<Finding> findings = analyzers::analyze(evidence);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].code, "rank-skipped") << told(findings);
  EXPECT_EQ(findings[0].ranks.text(), "1");
  ASSERT_FALSE(findings[0].evidence.empty());
  EXPECT_NE(findings[0].evidence[0].text.find("train.py:39"), std::string::npos) << findings[0].evidence[0].text;
  EXPECT_NE(findings[0].advice.find("train.py:39 in step"), std::string::npos) << findings[0].advice;
}

// Dumps of a mismatch whose calls are all over; `stream_ordered`: the recorder saw the device complete them. Without
// that (gloo) a time-out looks the same, and only the log tells.
struct OverCase {
  const char* record;  // words of the record line
  RankSet timed_out;   // ranks whose log says so
  const char* victims;
  const char* says;
  const char* state_of_2 = "completed";  // of the call that differs, by the record of rank 2
};

TEST(CallsThatAreOver, hold_nobody_up_unless_a_log_says_so) {
  const OverCase cases[] = {
      {"stream_ordered", {}, "none", "it did not hang"},
      {"backend=gloo", {}, "none", "If it did not hang"},
      {"backend=gloo", {RankId(0), RankId(1), RankId(2)}, "0,2", "ranks 0-2 timed out waiting"},
      // Rank 2 dumped a moment before its own time-out: the others gave up all the same.
      {"backend=gloo", {RankId(0), RankId(1), RankId(2)}, "0,2", "over on some ranks", "scheduled"},
      {"stream_ordered", {RankId(0), RankId(1), RankId(2)}, "2", "Seq 2 is the first difference", "scheduled"},
  };
  for (const OverCase& c : cases) {
    SCOPED_TRACE(c.says);
    Evidence evidence = testing::evidence_of(
        std::string("world 3\n0-2 record snapshot part ") + c.record +
        "\n0-2 all_reduce f32 8 pg0 seq=1 [completed]\n0 gather f32 8 root=0 pg0 seq=2 [completed]\n"
        "1 gather f32 7 root=0 pg0 seq=2 [completed]\n2 gather f32 8 root=0 pg0 seq=2 [" +
        c.state_of_2 + "]\n" +
        (std::string_view(c.state_of_2) == "completed"
             ? "0,1 barrier pg0 seq=3 [scheduled]\n2 barrier pg0 seq=3 [completed]\n"
             : ""));
    for (const RankId rank : c.timed_out) {
      LogEvent event;
      event.rank = rank;
      ProcessEnd end;
      end.what = "RuntimeError: Timed out waiting 3000ms for recv operation to complete";
      end.secondary = true;
      event.fact = end;
      evidence.events.push_back(event);
    }
    const std::vector<Finding> findings = analyzers::analyze(evidence);
    const auto found =
        std::find_if(findings.begin(), findings.end(), [](const Finding& f) { return f.code == "mismatch-size"; });
    ASSERT_NE(found, findings.end()) << told(findings);
    EXPECT_EQ(found->ranks.text(), "1");
    EXPECT_EQ(found->victims.text(), c.victims);
    EXPECT_NE(found->explanation.find(c.says), std::string::npos) << told(findings);
  }
}

// Limits as recorders hold them, and who is told to have an unlike one ("": nobody).
struct LimitCase {
  const char* name;
  const char* limits;
  const char* last;  // the last calls
  const char* ranks;
};

TEST(Limits, of_one_call_must_be_the_same_on_all_ranks) {
  const LimitCase cases[] = {
      {"one rank gives up early", "0-2 in pg0 timeout=600s since=1\n3 in pg0 timeout=30s since=1\n", "", "3"},
      {"two equal sides", "0-1 in pg0 timeout=600s since=1\n2-3 in pg0 timeout=30s since=1\n", "", "0-3"},
      {"all alike", "0-3 in pg0 timeout=600s since=1\n", "", ""},
      {"rings that start at different calls", "0-1 in pg0 timeout=60s since=1\n2-3 in pg0 timeout=60s since=2\n", "",
       ""},
      {"one recorder holds none", "0-2 in pg0 timeout=600s since=1\n", "", ""},
      {"shortened after the first step, where rank 3 is not yet",
       "0-2 in pg0 timeout=60s since=3\n3 in pg0 timeout=600s since=1\n",
       "0-2 all_gather f32 8 pg0 seq=3 [scheduled]\n", ""},
      {"shortened after the first step, but not on rank 3",
       "0-2 in pg0 timeout=60s since=3\n3 in pg0 timeout=600s since=1\n",
       "0-3 all_gather f32 8 pg0 seq=3 [scheduled]\n", "3"},
      {"the world's and a group's", "0-3 in pg0 timeout=60s since=1\n0-3 in tp timeout=30s since=1\n", "", ""},
      {"rank 2 in both groups",
       "0,1,3 in pg0 timeout=60s since=1\n2 in pg0 timeout=9s since=1\n0,1,3 in tp timeout=60s since=1\n"
       "2 in tp timeout=9s since=1\n",
       "", "2"},
  };
  for (const LimitCase& c : cases) {
    SCOPED_TRACE(c.name);
    const Evidence evidence =
        testing::evidence_of(std::string("world 4\npg tp = 0-3\n0-3 record snapshot part\n") + c.limits +
                             "0-3 all_reduce f32 8 pg0 seq=1 [completed]\n0-3 all_reduce f32 8 tp seq=1 [completed]\n"
                             "0-3 all_reduce f32 8 pg0 seq=2 [completed]\n" +
                             c.last);
    std::string ranks;
    for (const Finding& f : analyzers::analyze(evidence)) {
      if (f.code != "timeout-short") continue;
      EXPECT_EQ(f.severity, Severity::warning);
      EXPECT_FALSE(f.evidence.empty());
      ranks += f.ranks.text();
    }
    EXPECT_EQ(ranks, c.ranks);
  }
}

Finding finding(const char* code, Severity severity, RankSet ranks, RankSet victims = {}) {
  Finding f;
  f.code = code;
  f.severity = severity;
  f.ranks = std::move(ranks);
  f.victims = std::move(victims);
  return f;
}

std::string codes(const std::vector<Finding>& findings) {
  std::string all;
  for (const Finding& f : findings) all += (all.empty() ? "" : " ") + f.code;
  return all;
}

TEST(Settle, the_more_specific_code_of_one_rank_stays) {
  EXPECT_EQ(codes(analyzers::settle({finding("missing-ranks", Severity::error, {RankId(2)}, {RankId(0)}),
                                     finding("dead-rank", Severity::error, {RankId(2)})})),
            "dead-rank");
  EXPECT_EQ(codes(analyzers::settle({finding("mismatch-size", Severity::error, {RankId(1)}),
                                     finding("uneven-steps", Severity::error, {RankId(1)})})),
            "uneven-steps");
}

TEST(Settle, victims_of_what_is_dropped_go_to_its_cause) {
  const auto left = analyzers::settle({finding("missing-ranks", Severity::error, {RankId(2)}, {RankId(0), RankId(1)}),
                                       finding("dead-rank", Severity::error, {RankId(2)})});
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].victims.text(), "0,1");
}

TEST(Settle, who_waited_in_the_hang_ended_because_of_it) {
  EXPECT_EQ(codes(analyzers::settle({finding("rank-skipped", Severity::error, {RankId(2)}, {RankId(0), RankId(3)}),
                                     finding("dead-rank", Severity::error, {RankId(3)})})),
            "rank-skipped");
  // A rank that did not wait may have died by itself: both are told.
  EXPECT_EQ(codes(analyzers::settle({finding("rank-skipped", Severity::error, {RankId(2)}, {RankId(0)}),
                                     finding("dead-rank", Severity::error, {RankId(3)})})),
            "rank-skipped dead-rank");
}

TEST(Settle, what_names_nobody_is_a_consequence) {
  EXPECT_EQ(codes(analyzers::settle({finding("stuck-in-collective", Severity::error, {}),
                                     finding("rank-skipped", Severity::error, {RankId(2)})})),
            "rank-skipped desync-cascade");
  EXPECT_EQ(codes(analyzers::settle({finding("stuck-in-collective", Severity::error, {})})), "stuck-in-collective");
}

}  // namespace
}  // namespace ddx
