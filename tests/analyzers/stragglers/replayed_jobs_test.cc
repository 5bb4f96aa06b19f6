// Programs that were replayed with times: pipelines, data parallel jobs and FSDP whose calls run beside computations.
// All ranks compute as much, so that nobody is slow; one that takes longer is named, and nobody else.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "analyzers/straggler/straggler.h"
#include "sim/replay/flat_costs.h"
#include "sim/replay/reference_replay.h"
#include "tests/support/ops_text.h"

namespace ddx::analyzers {
namespace {

struct Job {
  std::string ops;
  std::uint32_t ranks = 0;
};

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  std::uint32_t number(std::uint32_t least, std::uint32_t most) {
    return least + static_cast<std::uint32_t>(random_() % (most - least + 1));
  }

 private:
  std::mt19937_64 random_;
};

// At least 32 calls a stage (docs/stragglers.md). 1F1B over `stages`, each of which sends without waiting for it; with
// several chunks a stage, interleaved.
Job pipeline(Draw& draw) {
  const std::uint32_t stages = draw.number(3, 6), chunks = draw.number(1, 3), batches = stages * draw.number(6, 8);
  const std::uint32_t forward = draw.number(200, 2000), all = batches * chunks, last = stages - 1;
  Job job{fmt::format("world {}\n", stages), stages};
  const auto chunk_of = [&](std::uint32_t k, bool forwards) {
    const std::uint32_t chunk = k % (stages * chunks) / stages;
    return forwards ? chunk : chunks - 1 - chunk;
  };
  for (std::uint32_t r = 0; r < stages; ++r) {
    const auto add = [&](std::uint32_t k, bool forwards) {
      const std::uint32_t chunk = chunk_of(k, forwards);
      const bool first = r == 0 && chunk == 0, end = r == last && chunk == chunks - 1;
      const std::uint32_t next = (r + 1) % stages, before = (r + last) % stages;
      if (!(forwards ? first : end)) {
        job.ops += fmt::format("{} recv bf16 1000 from {} stream={}\n", r, forwards ? before : next, forwards ? 5 : 7);
      }
      job.ops += fmt::format("{} compute {}us\n", r, forwards ? forward : 2 * forward);
      if (!(forwards ? end : first)) {
        job.ops +=
            fmt::format("{} send bf16 1000 to {} async stream={}\n", r, forwards ? next : before, forwards ? 6 : 8);
      }
    };
    const std::uint32_t warm_up = chunks == 1 ? last - r : (last - r) * 2 + (chunks - 1) * stages;
    const std::uint32_t warm = std::min(warm_up, all);
    for (std::uint32_t k = 0; k < warm; ++k) add(k, true);
    for (std::uint32_t k = 0; k < all - warm; ++k) {
      add(warm + k, true);
      add(k, false);
    }
    for (std::uint32_t k = all - warm; k < all; ++k) add(k, false);
  }
  return job;
}

// The backward of each layer runs beside the all_reduce of the one before.
Job data_parallel(Draw& draw) {
  const std::uint32_t ranks = draw.number(3, 8), layers = draw.number(2, 6), work = draw.number(500, 3000);
  Job job{fmt::format("world {}\n", ranks), ranks};
  for (std::uint32_t step = 0; step < 20; ++step) {
    for (std::uint32_t layer = 0; layer < layers; ++layer) {
      job.ops += fmt::format("all compute {}us\nall all_reduce f32 {} async=g{} stream=1\n", work,
                             draw.number(100'000, 2'000'000), layer);
    }
    for (std::uint32_t layer = 0; layer < layers; ++layer) job.ops += fmt::format("all wait g{}\n", layer);
    job.ops += fmt::format("all compute {}us\n", work / 4);
  }
  return job;
}

// Parameters are gathered ahead of the layer that needs them, gradients scattered beside the one behind.
Job sharded(Draw& draw) {
  const std::uint32_t ranks = draw.number(3, 8), layers = draw.number(2, 6), work = draw.number(500, 3000);
  const std::uint32_t size = draw.number(100'000, 1'000'000);
  Job job{fmt::format("world {}\n", ranks), ranks};
  for (std::uint32_t step = 0; step < 12; ++step) {
    for (std::uint32_t i = 0; i < layers; ++i)
      job.ops += fmt::format("all all_gather bf16 {} async=g{} stream=1\n", size, i);
    for (std::uint32_t i = 0; i < layers; ++i) job.ops += fmt::format("all wait g{}\nall compute {}us\n", i, work);
    for (std::uint32_t i = 0; i < layers; ++i) {
      job.ops += fmt::format(
          "all all_gather bf16 {0} async=h{1} stream=1\nall wait h{1}\nall compute {2}us\n"
          "all reduce_scatter f32 {3} async=x{1} stream=2\n",
          size, i, 2 * work, size * ranks);
    }
    for (std::uint32_t i = 0; i < layers; ++i) job.ops += fmt::format("all wait x{}\n", i);
  }
  return job;
}

// Sends to the next and receives from the one before, beside a computation.
Job ring(Draw& draw) {
  const std::uint32_t ranks = draw.number(3, 8), work = draw.number(500, 2000);
  Job job{fmt::format("world {}\n", ranks), ranks};
  for (std::uint32_t step = 0; step < 24; ++step) {
    for (std::uint32_t r = 0; r < ranks; ++r) {
      job.ops += fmt::format(
          "{0} send bf16 4000000 to {1} async=s stream=1\n{0} recv bf16 4000000 from {2} async=r stream=2\n"
          "{0} compute {3}us\n{0} wait s\n{0} wait r\n",
          r, (r + 1) % ranks, (r + ranks - 1) % ranks, work);
    }
  }
  return job;
}

using Maker = Job (*)(Draw&);
struct Kind {
  const char* name;
  Maker make;
};
constexpr Kind kKinds[] = {
    {"pipeline", pipeline}, {"data parallel", data_parallel}, {"sharded", sharded}, {"ring", ring}};

std::vector<Finding> judged(const Job& job, std::uint32_t slow, double slowdown) {
  Trace trace = testing::trace_of(job.ops);
  sim::FlatOptions flat;
  flat.port = {50'000'000'000, 1'000'000};
  flat.algorithm = sim::find_algorithm("ring");
  const auto costs = sim::flat_costs(flat);
  sim::ReplayOptions options;
  options.timing.costs = costs.get();
  options.timing.compute_factors.assign(job.ranks, sim::kWholeLength);
  options.timing.compute_factors[slow] = static_cast<std::uint64_t>(static_cast<double>(sim::kWholeLength) * slowdown);
  sim::ReplayResult result = sim::replay(trace, options);
  EXPECT_EQ(result.outcome, sim::ReplayResult::Outcome::completes) << result.reason;
  Evidence evidence;
  evidence.inputs.emplace_back().path = "job.ops";
  evidence.trace = std::move(result.snapshot);
  return judge_stragglers(evidence);
}

TEST(ReplayedJobs, where_all_compute_as_much_nobody_is_slow) {
  for (const Kind& kind : kKinds) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      Draw draw(seed);
      const Job job = kind.make(draw);
      for (const Finding& f : judged(job, 0, 1)) ADD_FAILURE() << kind.name << " " << seed << ": " << f.summary;
    }
  }
}

TEST(ReplayedJobs, a_slower_rank_is_named_alone) {
  for (const Kind& kind : kKinds) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      Draw draw(seed);
      const Job job = kind.make(draw);
      const std::uint32_t slow = draw.number(0, job.ranks - 1);
      const auto findings = judged(job, slow, 1.3 + 0.1 * draw.number(0, 7));
      ASSERT_EQ(findings.size(), 1U) << kind.name << " " << seed << ": rank " << slow << "\n" << job.ops;
      EXPECT_EQ(findings[0].ranks, RankSet({RankId(slow)})) << kind.name << " " << seed << findings[0].summary;
      EXPECT_EQ(findings[0].explanation.find("0 ns of its own"), std::string::npos) << findings[0].explanation;
      EXPECT_EQ(findings[0].explanation.find("lose 0 ns"), std::string::npos) << findings[0].explanation;
    }
  }
}

}  // namespace
}  // namespace ddx::analyzers
