// Single jobs whose answer is plain: nodes, stages, clocks, slow phases, tables of durations.
#include "analyzers/straggler/straggler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzers/analyzer.h"
#include "tests/analyzers/stragglers/timed_job.h"

namespace ddx::analyzers {
namespace {

using ::testing::HasSubstr;
using testing::run_timed;
using testing::TimedJob;

RankSet ranks(std::initializer_list<std::int64_t> numbers) {
  RankSet set;
  for (const std::int64_t number : numbers) set.insert(RankId(number));
  return set;
}

TEST(Straggler, a_replica_that_takes_half_as_long_again) {
  TimedJob job;
  job.data = 8;
  job.slow = {5};
  job.noise = 0;
  const auto findings = judge_stragglers(run_timed(job));
  ASSERT_EQ(findings.size(), 1U);
  const Finding& f = findings[0];
  EXPECT_EQ(f.code, "slow-rank");
  EXPECT_EQ(f.severity, Severity::warning);
  EXPECT_EQ(f.confidence, Confidence::high);
  EXPECT_EQ(f.ranks, ranks({5}));
  EXPECT_EQ(f.victims, ranks({0, 1, 2, 3, 4, 6, 7}));
  // A step is 3 layers, twice, at 2 and 4 ms, and 0.4 ms behind the reduction: 36.4 ms; half as long again: 54.6 ms.
  EXPECT_THAT(f.summary, HasSubstr("Rank 5 is slow: it takes 1.50x as long as the others"));
  EXPECT_THAT(f.summary, HasSubstr("18.2 ms"));
  EXPECT_THAT(f.explanation, HasSubstr("54.6 ms of its own where the others take 36.4 ms"));
  EXPECT_FALSE(f.evidence.empty());
}

TEST(Straggler, who_waits_for_it_in_another_group_is_no_culprit) {
  // Rank 2 slows its tensor group (2, 3); in the data groups (0,2), (1,3) rank 3 is as late as rank 2.
  TimedJob job;
  job.tensor = 2;
  job.slow = {2};
  const auto findings = judge_stragglers(run_timed(job));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].ranks, ranks({2}));
  EXPECT_TRUE(findings[0].victims.contains(RankId(3)));
}

TEST(Straggler, a_slow_stage_of_one_replica) {
  // Stages 0..3 of two replicas: ranks 0-3 and 4-7. Stage 1 of the second makes all behind it late.
  TimedJob job;
  job.pipeline = 4;
  job.micro_batches = 4;
  job.slow = {5};
  const auto findings = judge_stragglers(run_timed(job));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].ranks, ranks({5}));
}

// Ranks that do unlike things compare as a whole: stage 2 and 3 are late because stage 1 is.
TEST(Straggler, a_slow_stage_without_a_twin) {
  TimedJob job;
  job.data = 1;
  job.pipeline = 4;
  job.micro_batches = 8;
  EXPECT_TRUE(judge_stragglers(run_timed(job)).empty());
  for (const std::uint32_t slow : {0U, 1U, 2U, 3U}) {
    job.slow = {slow};
    const auto findings = judge_stragglers(run_timed(job));
    ASSERT_EQ(findings.size(), 1U) << slow;
    EXPECT_EQ(findings[0].ranks, ranks({slow}));
    // The first and the last stage are like no other: their part of the model may be larger.
    EXPECT_EQ(findings[0].confidence, slow == 0 || slow == 3 ? Confidence::low : Confidence::medium) << slow;
  }
}

TEST(Straggler, all_ranks_of_a_host_are_a_node) {
  TimedJob job;
  job.data = 16;
  job.ranks_per_host = 4;
  job.slow = {8, 9, 10, 11};
  const auto findings = judge_stragglers(run_timed(job));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].code, "slow-node");
  EXPECT_EQ(findings[0].ranks, ranks({8, 9, 10, 11}));
  EXPECT_EQ(findings[0].subjects, std::vector<std::string>{"host node-2"});
  EXPECT_EQ(findings[0].victims, ranks({0, 1, 2, 3, 4, 5, 6, 7, 12, 13, 14, 15}));
}

TEST(Straggler, one_of_two_nodes) {
  TimedJob job;
  job.data = 2;
  job.tensor = 4;
  job.ranks_per_host = 4;
  job.slow = {4, 5, 6, 7};
  const auto findings = judge_stragglers(run_timed(job));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].code, "slow-node");
  EXPECT_EQ(findings[0].ranks, ranks({4, 5, 6, 7}));
}

TEST(Straggler, part_of_a_host_is_no_node) {
  TimedJob job;
  job.data = 16;
  job.ranks_per_host = 4;
  job.slow = {8, 9};
  const auto findings = judge_stragglers(run_timed(job));
  ASSERT_EQ(findings.size(), 2U);
  for (const Finding& f : findings) EXPECT_EQ(f.code, "slow-rank");
}

TEST(Straggler, half_of_the_ranks_is_how_the_job_is_made) {
  TimedJob job;
  job.data = 8;
  job.slow = {0, 2, 4, 6};
  EXPECT_TRUE(judge_stragglers(run_timed(job)).empty());
}

TEST(Straggler, slow_in_some_steps_only) {
  TimedJob job;
  job.data = 8;
  job.steps = 60;
  job.noise = 0.01;
  job.slow = {3};
  job.slowdown = 4;
  job.slow_from = 20;
  job.slow_until = 35;
  const auto findings = judge_stragglers(run_timed(job));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].ranks, ranks({3}));
  EXPECT_THAT(findings[0].summary, HasSubstr("comes last in 15 of the 15 calls"));
}

TEST(Straggler, clocks_that_differ_do_not_matter_where_calls_have_both_times) {
  TimedJob job;
  job.data = 6;
  job.ranks_per_host = 1;
  job.clocks_apart = 3600 * kSecond;
  EXPECT_TRUE(judge_stragglers(run_timed(job)).empty());
  job.slow = {4};
  const auto findings = judge_stragglers(run_timed(job));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].ranks, ranks({4}));
}

// A clock that is ahead and a rank that is always late look alike by times of issue.
TEST(Straggler, a_clock_is_not_taken_for_a_slow_rank) {
  TimedJob job;
  job.data = 1;
  job.tensor = 6;
  job.ranks_per_host = 1;
  job.issue_only = true;
  job.clocks_apart = 2 * kMillisecond;
  EXPECT_TRUE(judge_stragglers(run_timed(job)).empty());
}

TEST(Straggler, times_of_issue_tell_on_one_host) {
  TimedJob job;
  job.data = 1;
  job.tensor = 6;
  job.ranks_per_host = 6;
  job.issue_only = true;
  EXPECT_TRUE(judge_stragglers(run_timed(job)).empty());
  job.slow = {1};
  const auto findings = judge_stragglers(run_timed(job));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].ranks, ranks({1}));
  EXPECT_THAT(findings[0].explanation, HasSubstr("Only times of issue"));
}

// Hosts that run ahead of their devices: who issues later makes nobody wait.
TEST(Straggler, hosts_that_run_ahead_tell_nothing) {
  TimedJob job;
  job.data = 1;
  job.tensor = 4;
  job.ranks_per_host = 4;
  job.issue_only = true;
  Evidence evidence = run_timed(job);
  for (Program& program : evidence.trace.programs) {
    const auto lag = static_cast<Nanos>(&program - evidence.trace.programs.data()) * 5 * kMillisecond;
    Program ahead;
    for (std::size_t row = 0; row < program.size(); ++row) {
      Op op = program.at(OpId(row));
      op.issue = kSecond + lag + static_cast<Nanos>(row) * 100 * kMicrosecond;
      ahead.append(op);
    }
    program = std::move(ahead);
  }
  EXPECT_TRUE(judge_stragglers(evidence).empty());
}

TEST(Straggler, a_few_steps_are_a_hint) {
  TimedJob job;
  job.data = 8;
  job.steps = 4;
  job.slow = {2};
  const auto findings = judge_stragglers(run_timed(job));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].ranks, ranks({2}));
  EXPECT_EQ(findings[0].confidence, Confidence::low);
}

TEST(Straggler, times_that_are_missing_or_backwards_are_left_out) {
  TimedJob job;
  job.data = 4;
  Evidence evidence = run_timed(job);
  for (Program& program : evidence.trace.programs) {
    Program broken;
    for (std::size_t row = 0; row < program.size(); ++row) {
      Op op = program.at(OpId(row));
      if (row % 3 == 0) std::swap(op.start, op.end);
      if (row % 5 == 0) op.start.reset();
      broken.append(op);
    }
    program = std::move(broken);
  }
  EXPECT_TRUE(judge_stragglers(evidence).empty());
}

TEST(Straggler, times_that_no_clock_gives_do_no_harm) {
  constexpr Nanos kOdd[] = {INT64_MIN + 1, -1, 0, INT64_MAX, INT64_MAX / 4, INT64_MAX / 4 + 1};
  for (const bool issue_only : {false, true}) {
    for (std::size_t every = 1; every <= 4; ++every) {
      TimedJob job;
      job.data = issue_only ? 1 : 4;
      job.tensor = 2;
      job.ranks_per_host = 8;
      job.issue_only = issue_only;
      Evidence evidence = run_timed(job);
      for (Program& program : evidence.trace.programs) {
        Program odd;
        for (std::size_t row = 0; row < program.size(); ++row) {
          Op op = program.at(OpId(row));
          if (row % every == 0) (row % 2 == 0 ? op.start : op.end) = kOdd[row % 6];
          if (row % every == 0) op.issue = kOdd[row / 2 % 6];
          odd.append(op);
        }
        program = std::move(odd);
      }
      judge_stragglers(evidence);  // sums and differences do not overflow
    }
  }
}

// ---- durations alone -------------------------------------------------------------------------------------------

// One op a rank, of this length, without anything that matches it to those of others.
Evidence lengths(OpKind kind, const std::vector<double>& milliseconds) {
  Evidence evidence;
  for (std::size_t rank = 0; rank < milliseconds.size(); ++rank) {
    Signature signature;
    signature.kind = kind;
    signature.name = evidence.trace.strings.intern("optimizer");
    Op op;
    op.signature = evidence.trace.intern(signature);
    op.start = kSecond;
    op.end = kSecond + static_cast<Nanos>(milliseconds[rank] * 1e6);
    Program program;
    program.append(op);
    evidence.trace.programs.push_back(std::move(program));
    RankRecord record;
    record.rank = RankId(static_cast<std::int64_t>(rank));
    record.program = ProgramId(rank);
    evidence.trace.ranks.push_back(std::move(record));
  }
  return evidence;
}

// microsoft/DeepSpeed#3579: who waits least in a collective came last.
TEST(Durations, the_shortest_collective_is_the_slow_ranks) {
  const auto findings = judge_stragglers(lengths(OpKind::all_reduce, {9.8, 9.7, 1.2, 9.9, 9.6, 9.8, 9.7, 9.9}));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].code, "slow-rank");
  EXPECT_EQ(findings[0].severity, Severity::warning);
  EXPECT_EQ(findings[0].ranks, ranks({2}));
  EXPECT_EQ(findings[0].confidence, Confidence::low) << "one call";
  EXPECT_THAT(findings[0].explanation, HasSubstr("it came last, and they waited about 8.6 ms for it"));
}

// flagos-ai/FlagScale#938: a spread of a tenth is none.
TEST(Durations, the_longest_of_an_even_spread_is_nobodys_fault) {
  const std::vector<double> spread{9.98, 10.12, 9.46, 9.40, 9.17, 9.58, 9.51, 9.44};
  EXPECT_TRUE(judge_stragglers(lengths(OpKind::compute, spread)).empty());
  EXPECT_TRUE(judge_stragglers(lengths(OpKind::all_reduce, spread)).empty());
}

TEST(Durations, the_longest_work_is_the_slow_ranks) {
  const auto findings = judge_stragglers(lengths(OpKind::compute, {10, 10.1, 9.9, 15, 10, 10.05}));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].ranks, ranks({3}));
}

TEST(Durations, two_that_are_short_are_nobody) {
  EXPECT_TRUE(judge_stragglers(lengths(OpKind::all_reduce, {9.8, 1.1, 1.2, 9.9, 9.6, 9.8})).empty());
}

TEST(Durations, three_ranks_are_too_few) {
  EXPECT_TRUE(judge_stragglers(lengths(OpKind::all_reduce, {9.8, 1.1, 9.9})).empty());
}

TEST(Straggler, nothing_is_said_of_evidence_without_times) { EXPECT_TRUE(judge_stragglers(Evidence()).empty()); }

}  // namespace
}  // namespace ddx::analyzers
