// Replay, on one core and in memory: operations of ranks a second, without and with times, of ranks that are alike and
// of ranks that are each run.
#include <stdexcept>
#include <string>

#include <benchmark/benchmark.h>

#include "sim/replay/flat_costs.h"
#include "sim/replay/reference_replay.h"
#include "traces/formats/importer.h"

namespace {

using namespace ddx;

Trace trace_of(const std::string& ops) {
  for (const auto& importer : formats::importers()) {
    if (importer.name != "ops") continue;
    Evidence evidence;
    evidence.inputs.emplace_back().path = "bench.ops";
    importer.read({"bench.ops", ops}, {}, evidence);
    return std::move(evidence.trace);
  }
  throw std::runtime_error("no importer of ops");
}

// 20 steps of 50 all_reduces beside computation, and a wait for all: 2,040 operations a rank.
std::string training(std::int64_t ranks) {
  return "world " + std::to_string(ranks) +
         "\nrepeat 20\nall compute 1ms\nrepeat 50\nall compute 1ms\nall all_reduce f32 6553600 async\nend\nall "
         "host_sync\nend\n";
}

void run(benchmark::State& state, const Trace& trace, bool fold, bool costs) {
  const auto flat = sim::flat_costs({{50'000'000'000, 1'000'000}, sim::find_algorithm("ring"), sim::Library::nccl});
  sim::ReplayOptions options;
  options.fold = fold;
  options.keep_ops = 0;
  if (costs) options.timing.costs = flat.get();
  std::uint64_t ops = 0;
  for (auto _ : state) {
    const sim::ReplayResult result = sim::replay(trace, options);
    if (result.outcome != sim::ReplayResult::Outcome::completes) throw std::runtime_error(result.reason);
    ops += result.rank_ops;
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(ops));
}

void every_rank(benchmark::State& state) { run(state, trace_of(training(state.range(0))), false, false); }
void every_rank_timed(benchmark::State& state) { run(state, trace_of(training(state.range(0))), false, true); }
void alike(benchmark::State& state) { run(state, trace_of(training(state.range(0))), true, false); }
void alike_timed(benchmark::State& state) { run(state, trace_of(training(state.range(0))), true, true); }
BENCHMARK(every_rank)->Arg(64)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(every_rank_timed)->Arg(64)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(alike)->Arg(1024)->Arg(100'000)->Unit(benchmark::kMillisecond);
BENCHMARK(alike_timed)->Arg(1024)->Arg(100'000)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
