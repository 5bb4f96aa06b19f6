// Random jobs with one slowed rank: it is named; without one nobody is.
#include <gtest/gtest.h>

#include <random>

#include "analyzers/straggler/straggler.h"
#include "tests/analyzers/stragglers/timed_job.h"

namespace ddx::analyzers {
namespace {

using testing::run_timed;
using testing::TimedJob;

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  std::uint32_t number(std::uint32_t least, std::uint32_t most) {
    return least + static_cast<std::uint32_t>(random_() % (most - least + 1));
  }
  double real(double least, double most) {
    return least + (most - least) * static_cast<double>(number(0, 1'000'000)) / 1e6;
  }

 private:
  std::mt19937_64 random_;
};

// With ranks that do the same as others: two shards or two replicas at least.
TimedJob random_job(Draw& draw, std::uint64_t seed) {
  TimedJob job;
  do {
    job.data = draw.number(1, 4);
    job.tensor = draw.number(1, 4);
    job.pipeline = draw.number(1, 3);
  } while (job.data * job.tensor < 2);
  job.steps = draw.number(16, 40);
  job.micro_batches = draw.number(1, 3);
  job.layers = draw.number(1, 4);
  job.compute = draw.number(200, 5000) * kMicrosecond;
  job.transfer = draw.number(10, 1000) * kMicrosecond;
  job.noise = draw.real(0, 0.06);
  job.tail_chance = draw.number(0, 1) * draw.real(0, 0.004);
  job.clocks_apart = draw.number(0, 1) * 50 * kMillisecond;
  job.issue_only = draw.number(0, 4) == 0;
  if (job.issue_only) {
    // Hosts tell only of calls that follow each other in one group, and by one clock.
    job.data = job.pipeline = 1;
    job.tensor = draw.number(2, 8);
    job.layers = 4;
    job.ranks_per_host = job.ranks();
  }
  job.seed = seed;
  return job;
}

std::string text_of(const TimedJob& job) {
  std::string slow;
  for (const std::uint32_t rank : job.slow) slow += " " + std::to_string(rank);
  return "seed " + std::to_string(job.seed) + ": dp " + std::to_string(job.data) + " tp " + std::to_string(job.tensor) +
         " pp " + std::to_string(job.pipeline) + " steps " + std::to_string(job.steps) + " m " +
         std::to_string(job.micro_batches) + " layers " + std::to_string(job.layers) + " noise " +
         std::to_string(job.noise) + " tails " + std::to_string(job.tail_chance) +
         (job.issue_only ? " issue only" : "") + " slow" + slow + " by " + std::to_string(job.slowdown);
}

std::string told(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& f : findings) {
    text += f.code + " [" + f.ranks.text() + "] " + std::string(name_of(f.confidence)) + "; ";
  }
  return text;
}

TEST(RandomJobs, the_slowed_rank_is_named_and_nobody_else) {
  Draw draw(7);
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    TimedJob job = random_job(draw, seed);
    const std::uint32_t slow = draw.number(0, job.ranks() - 1);
    job.slow = {slow};
    job.slowdown = draw.real(1.2, 2);
    const std::vector<Finding> findings = judge_stragglers(run_timed(job));
    EXPECT_EQ(findings.size(), 1U) << text_of(job) << " -> " << told(findings);
    if (findings.empty()) continue;
    EXPECT_EQ(findings[0].code, "slow-rank") << text_of(job);
    EXPECT_EQ(findings[0].ranks, RankSet{RankId(slow)}) << text_of(job) << " -> " << told(findings);
    EXPECT_FALSE(findings[0].victims.contains(RankId(slow))) << text_of(job);
    EXPECT_FALSE(findings[0].victims.empty()) << text_of(job);
  }
}

TEST(RandomJobs, without_a_slow_rank_nobody_is_named) {
  Draw draw(8);
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    TimedJob job = random_job(draw, seed);
    job.noise = draw.real(0, 0.3);
    job.ranks_per_host = draw.number(0, 1) * job.ranks();
    const std::vector<Finding> findings = judge_stragglers(run_timed(job));
    EXPECT_TRUE(findings.empty()) << text_of(job) << " -> " << told(findings);
  }
}

// Pipelines of one replica: no rank does what the first does, nor what the last does.
TEST(RandomJobs, the_slow_stage_of_a_lone_pipeline_is_named) {
  Draw draw(11);
  for (std::uint64_t seed = 1; seed <= 250; ++seed) {
    TimedJob job = random_job(draw, seed);
    job.data = job.tensor = 1;
    job.pipeline = draw.number(4, 8);
    job.tail_chance = 0;  // as a whole, one stray piece of a short job weighs as much as a slow rank
    job.issue_only = false;
    EXPECT_TRUE(judge_stragglers(run_timed(job)).empty()) << text_of(job);
    const std::uint32_t slow = draw.number(0, job.pipeline - 1);
    job.slow = {slow};
    job.slowdown = draw.real(1.5, 2);
    const std::vector<Finding> findings = judge_stragglers(run_timed(job));
    ASSERT_EQ(findings.size(), 1U) << text_of(job);
    EXPECT_EQ(findings[0].ranks, RankSet{RankId(slow)}) << text_of(job) << " -> " << told(findings);
  }
}

TEST(RandomJobs, a_few_steps_without_a_slow_rank_name_nobody) {
  Draw draw(10);
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    TimedJob job = random_job(draw, seed);
    job.steps = draw.number(1, 8);
    job.noise = draw.real(0, 0.1);
    const std::vector<Finding> findings = judge_stragglers(run_timed(job));
    EXPECT_TRUE(findings.empty()) << text_of(job) << " -> " << told(findings);
  }
}

// Clocks that differ, much noise, slowdowns near the thresholds: it may stay unnamed, and nobody else is named.
TEST(RandomJobs, nobody_else_is_named_in_hard_cases) {
  Draw draw(9);
  std::size_t named = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    TimedJob job = random_job(draw, seed);
    const std::uint32_t slow = draw.number(0, job.ranks() - 1);
    job.slow = {slow};
    job.slowdown = draw.real(1.02, 2);
    job.noise = draw.real(0, 0.3);
    job.clocks_apart = 10 * kMillisecond;
    job.ranks_per_host = draw.number(0, 1);
    for (const Finding& f : judge_stragglers(run_timed(job))) {
      EXPECT_EQ(f.ranks, RankSet{RankId(slow)}) << text_of(job);
      ++named;
    }
  }
  EXPECT_GT(named, 250U);
}

}  // namespace
}  // namespace ddx::analyzers
