// The parts of `ddx analyze` on dumps of a hung job, in memory and on one core: reading, merging, matching, judging.
#include <algorithm>
#include <stdexcept>
#include <string>

#include <benchmark/benchmark.h>

#include "analyzers/analyzer.h"
#include "analyzers/match/job_view.h"
#include "tests/bench/hung_job.h"
#include "traces/formats/importer.h"
#include "traces/model/evidence.h"

namespace {

using ddx::Evidence;
using ddx::bench::HungJob;

constexpr std::uint32_t kOps = 2000;

const ddx::formats::Importer& importer(std::string_view name) {
  for (const auto& each : ddx::formats::importers()) {
    if (each.name == name) return each;
  }
  throw std::runtime_error("no importer " + std::string(name));
}

HungJob job_of(std::uint32_t ranks) {
  return HungJob({.ranks = ranks, .ops = kOps, .skip = ddx::bench::Skip{.rank = ranks / 2 + 5, .op = kOps - 15}});
}

Evidence read_dump(const ddx::formats::Importer& importer, std::uint32_t rank, std::string_view bytes) {
  Evidence evidence;
  evidence.inputs.emplace_back().path = "rank_" + std::to_string(rank);
  importer.read({evidence.inputs.front().path, bytes}, {}, evidence);
  return evidence;
}

Evidence read_job(std::uint32_t ranks) {
  const HungJob job = job_of(ranks);
  const auto& pickles = importer("flight-recorder-pickle");
  Evidence all;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) all.merge(read_dump(pickles, rank, pickle_dump(job, rank)));
  return all;
}

void count_entries(benchmark::State& state, std::int64_t a_round) {
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * a_round);
}

void read_one(benchmark::State& state, std::string_view name, std::string (*dump)(const HungJob&, std::uint32_t)) {
  const auto& reader = importer(name);
  const std::string bytes = dump(job_of(1024), 0);
  for (auto _ : state) benchmark::DoNotOptimize(read_dump(reader, 0, bytes));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * static_cast<std::int64_t>(bytes.size()));
  count_entries(state, kOps);
}
void read_pickle(benchmark::State& state) { read_one(state, "flight-recorder-pickle", ddx::bench::pickle_dump); }
void read_json(benchmark::State& state) { read_one(state, "flight-recorder-json", ddx::bench::json_dump); }
BENCHMARK(read_pickle)->Unit(benchmark::kMillisecond);
BENCHMARK(read_json)->Unit(benchmark::kMillisecond);

void match(benchmark::State& state) {
  const Evidence evidence = read_job(static_cast<std::uint32_t>(state.range(0)));
  for (auto _ : state)
    benchmark::DoNotOptimize(ddx::analyzers::build_job_view(evidence, ddx::analyzers::RecordChoice{}));
  count_entries(state, state.range(0) * kOps);
}
BENCHMARK(match)->Arg(64)->Arg(256)->Unit(benchmark::kMillisecond);

void analyze(benchmark::State& state) {
  const Evidence evidence = read_job(static_cast<std::uint32_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(ddx::analyzers::analyze(evidence));
  count_entries(state, state.range(0) * kOps);
}
BENCHMARK(analyze)->Arg(64)->Arg(256)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
