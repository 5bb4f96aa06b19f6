#include "analyzers/breakdown/breakdown.h"

#include <gtest/gtest.h>

#include <random>

namespace ddx::analyzers {
namespace {

struct Row {
  OpKind kind = OpKind::all_reduce;
  std::optional<Nanos> issue, start, end;
  std::optional<std::uint32_t> stream;
};

Trace trace_of(const std::vector<Row>& rows) {
  Trace trace;
  Program program;
  for (const Row& row : rows) {
    Signature signature;
    signature.kind = row.kind;
    signature.stream = row.stream;
    Op op;
    op.signature = trace.intern(signature);
    op.issue = row.issue;
    op.start = row.start;
    op.end = row.end;
    program.append(op);
  }
  trace.programs.push_back(std::move(program));
  RankRecord record;
  record.rank = RankId(4);
  trace.ranks.push_back(std::move(record));
  return trace;
}

TimeParts parts(Nanos compute, Nanos exposed, Nanos overlapped, Nanos idle, Nanos unattributed) {
  return {compute, exposed, overlapped, 0, idle, unattributed};
}

TEST(Breakdown, work_and_communication_on_two_streams) {
  // work   |10 ------- 40|          |60 -- 70|
  // call           |30 ------ 50|
  const auto times = break_down(trace_of(
      {{OpKind::compute, {}, 10, 40, 0}, {OpKind::all_reduce, 25, 30, 50, 1}, {OpKind::compute, {}, 60, 70, 0}}));
  ASSERT_EQ(times.size(), 1U);
  EXPECT_EQ(times[0].rank, RankId(4));
  EXPECT_EQ(times[0].begin, 10);
  EXPECT_EQ(times[0].end, 70);
  EXPECT_EQ(times[0].parts, parts(30, 10, 10, 10, 0));
  ASSERT_EQ(times[0].streams.size(), 2U);
  EXPECT_EQ(times[0].streams[0].parts, parts(40, 0, 0, 20, 0));
  EXPECT_EQ(times[0].streams[1].parts, parts(0, 20, 0, 40, 0));
}

TEST(Breakdown, between_calls_alone_nothing_is_known) {
  const auto times = break_down(trace_of({{OpKind::all_reduce, {}, 0, 10, {}}, {OpKind::barrier, {}, 25, 30, {}}}));
  ASSERT_EQ(times.size(), 1U);
  EXPECT_EQ(times[0].parts, parts(0, 15, 0, 0, 15));
}

TEST(Breakdown, a_delay_is_idle_only_where_work_is_known) {
  EXPECT_EQ(break_down(trace_of({{OpKind::compute, {}, 0, 10, 7}, {OpKind::delay, {}, 10, 30, 7}}))[0].parts,
            parts(10, 0, 0, 20, 0));
  EXPECT_EQ(break_down(trace_of({{OpKind::barrier, {}, 0, 10, 7}, {OpKind::delay, {}, 10, 30, 7}}))[0].parts,
            parts(0, 10, 0, 0, 20));
  // A program that is known to its end does nothing where it does nothing; what it waits for is another matter.
  Trace whole =
      trace_of({{OpKind::barrier, {}, 0, 10, 7}, {OpKind::delay, {}, 10, 30, 7}, {OpKind::barrier, {}, 35, 40, 7}});
  whole.ranks[0].whole_program = true;
  EXPECT_EQ(break_down(whole)[0].parts, parts(0, 15, 0, 5, 20));
}

TEST(Breakdown, a_call_whose_start_is_not_known_is_unattributed) {
  const auto times = break_down(trace_of({{OpKind::compute, {}, 0, 10, {}}, {OpKind::all_reduce, 5, {}, 30, {}}}));
  ASSERT_EQ(times.size(), 1U);
  EXPECT_EQ(times[0].parts, parts(10, 0, 0, 0, 20));
}

TEST(Breakdown, calls_that_overlap_count_once) {
  const auto times = break_down(
      trace_of({{OpKind::send, {}, 0, 10, {}}, {OpKind::recv, {}, 5, 20, {}}, {OpKind::all_reduce, {}, 6, 7, {}}}));
  EXPECT_EQ(times[0].parts, parts(0, 20, 0, 0, 0));
}

TEST(Breakdown, records_without_times_are_left_out) {
  EXPECT_TRUE(break_down(trace_of({{OpKind::all_reduce, 5, {}, {}, {}}})).empty());
  EXPECT_TRUE(break_down(trace_of({{OpKind::all_reduce, 5, {}, 9, {}}})).empty()) << "no start at all";
  EXPECT_TRUE(break_down(trace_of({{OpKind::all_reduce, {}, 9, 5, {}}})).empty()) << "backwards";
  EXPECT_TRUE(break_down(trace_of({{OpKind::all_reduce, {}, INT64_MIN + 1, 5, {}}})).empty());
  EXPECT_TRUE(break_down(Trace()).empty());
}

// The same by looking at every nanosecond.
TimeParts by_looking(const std::vector<Row>& rows, const RankTime& time,
                     std::optional<std::optional<std::uint32_t>> stream) {
  TimeParts parts;
  bool with_work = false;
  for (const Row& row : rows) {
    with_work =
        with_work || (row.kind == OpKind::compute && row.start && row.end && *row.start <= *row.end && *row.start >= 0);
  }
  for (Nanos at = time.begin; at < time.end; ++at) {
    bool work = false, call = false, unknown = false;
    for (const Row& row : rows) {
      const auto begin = row.start && *row.start >= 0 ? row.start : row.issue;
      if (row.kind == OpKind::wait || !begin || *begin < 0 || !row.end || at < *begin || at >= *row.end) continue;
      if (stream && row.stream != *stream) continue;
      (begin == row.start ? row.kind == OpKind::compute ? work : call : unknown) = true;
    }
    ++(work && call            ? parts.overlapped
       : work                  ? parts.compute
       : call                  ? parts.exposed
       : unknown || !with_work ? parts.unattributed
                               : parts.idle);
  }
  return parts;
}

TEST(Breakdown, the_parts_sum_to_the_span) {
  std::mt19937_64 random(3);
  constexpr OpKind kKinds[] = {OpKind::compute, OpKind::all_reduce, OpKind::send, OpKind::unknown, OpKind::wait};
  for (int i = 0; i < 500; ++i) {
    std::vector<Row> rows(1 + random() % 40);
    for (Row& row : rows) {
      row.kind = kKinds[random() % 5];
      const auto begin = static_cast<Nanos>(random() % 1000);
      if (random() % 8 > 0) row.start = begin;
      // A start is never before its issue.
      if (random() % 4 > 0) row.issue = begin - static_cast<Nanos>(random() % 20);
      if (random() % 8 > 0) row.end = begin + static_cast<Nanos>(random() % 200) - 5;
      if (random() % 3 > 0) row.stream = static_cast<std::uint32_t>(random() % 3);
    }
    for (const RankTime& time : break_down(trace_of(rows))) {
      EXPECT_EQ(time.parts.total(), time.end - time.begin);
      EXPECT_EQ(time.parts, by_looking(rows, time, std::nullopt));
      for (const StreamTime& stream : time.streams) {
        EXPECT_EQ(stream.parts.total(), time.end - time.begin);
        EXPECT_EQ(stream.parts, by_looking(rows, time, stream.stream));
      }
    }
  }
}

}  // namespace
}  // namespace ddx::analyzers
