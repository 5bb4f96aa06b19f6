#include "analyzers/quality/quality.h"

#include <gtest/gtest.h>

namespace ddx::analyzers {
namespace {

struct Row {
  OpKind kind = OpKind::all_reduce;
  std::optional<Nanos> issue, start, end;
};

// One dump with these calls.
Evidence dump(std::optional<RankId> rank, const std::vector<Row>& rows) {
  Evidence evidence;
  evidence.inputs.push_back({"dump_a", "flight-recorder-json", {}, rank, "", false});
  Program program;
  for (const Row& row : rows) {
    Signature signature;
    signature.kind = row.kind;
    signature.name = evidence.trace.strings.intern("nccl:new_thing");
    Op op;
    op.signature = evidence.trace.intern(signature);
    op.issue = row.issue;
    op.start = row.start;
    op.end = row.end;
    program.append(op);
  }
  evidence.trace.programs.push_back(program);
  RankRecord record;
  record.rank = rank;
  record.snapshot = true;
  record.input = InputId(0);
  evidence.trace.ranks.push_back(record);
  return evidence;
}

std::vector<std::string> codes(const std::vector<Finding>& findings) {
  std::vector<std::string> all;
  for (const Finding& f : findings) all.push_back(f.code);
  return all;
}

using Codes = std::vector<std::string>;

TEST(TraceQuality, a_good_dump_has_no_finding) {
  EXPECT_EQ(codes(judge_trace_quality(dump(RankId(3), {{OpKind::all_reduce, 10, 20, 30}}))), Codes{});
  EXPECT_EQ(codes(judge_trace_quality(Evidence())), Codes{});
}

TEST(TraceQuality, a_dump_without_entries) {
  EXPECT_EQ(codes(judge_trace_quality(dump(RankId(3), {}))), Codes{"empty-trace"});
}

TEST(TraceQuality, numbers_agree_with_their_words) {
  Evidence one = dump(RankId(3), {});
  EXPECT_EQ(judge_trace_quality(one)[0].summary, "1 dump holds no call at all: there is nothing to compare");
  one.trace.ranks.push_back(one.trace.ranks[0]);
  EXPECT_EQ(judge_trace_quality(one)[0].summary, "2 dumps hold no call at all: there is nothing to compare");
  const auto unknown = judge_trace_quality(dump(RankId(0), {{OpKind::unknown, {}, {}, {}}}));
  EXPECT_EQ(unknown[0].summary, "1 of 1 call is of a kind that ddx does not know: nccl:new_thing");
}

TEST(TraceQuality, a_dump_of_nobody) {
  const auto findings = judge_trace_quality(dump(std::nullopt, {{OpKind::all_reduce, {}, {}, {}}}));
  ASSERT_EQ(codes(findings), Codes{"trace-no-rank"});
  EXPECT_EQ(findings[0].evidence[0].path, "dump_a");
}

TEST(TraceQuality, an_unknown_operation_is_counted_and_named) {
  const auto findings =
      judge_trace_quality(dump(RankId(0), {{OpKind::unknown, {}, {}, {}}, {OpKind::all_reduce, {}, {}, {}}}));
  ASSERT_EQ(codes(findings), Codes{"trace-unknown-op"});
  EXPECT_EQ(findings[0].severity, Severity::warning);
  EXPECT_NE(findings[0].summary.find("1 of 2"), std::string::npos) << findings[0].summary;
  EXPECT_NE(findings[0].summary.find("nccl:new_thing"), std::string::npos) << findings[0].summary;
}

TEST(TraceQuality, what_is_no_call_is_not_counted_among_calls) {
  const auto findings = judge_trace_quality(dump(RankId(0), {{OpKind::unknown, {}, {}, {}},
                                                             {OpKind::compute, {}, {}, {}},
                                                             {OpKind::delay, {}, {}, {}},
                                                             {OpKind::wait, {}, {}, {}},
                                                             {OpKind::send, {}, {}, {}}}));
  EXPECT_NE(findings.at(0).summary.find("1 of 2 calls"), std::string::npos) << findings[0].summary;
}

TEST(TraceQuality, a_batch_of_sends_and_receives_is_known) {
  EXPECT_TRUE(judge_trace_quality(dump(RankId(0), {{OpKind::coalesced, {}, {}, {}}})).empty());
}

TEST(TraceQuality, an_end_before_the_start) {
  EXPECT_EQ(codes(judge_trace_quality(dump(RankId(0), {{OpKind::all_reduce, 10, 40, 30}}))), Codes{"trace-time-skew"});
  EXPECT_EQ(codes(judge_trace_quality(dump(RankId(0), {{OpKind::all_reduce, 10, {}, 5}}))), Codes{"trace-time-skew"});
}

}  // namespace
}  // namespace ddx::analyzers
