// Replay, on one core and in memory: operations of ranks a second, without and with times, of ranks that are alike and
// of ranks that are each run; and what operations take of memory (run these alone: they look at the whole process).
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
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

// Steps of 50 all_reduces beside computation, and a wait for all: 102 operations a rank and step.
std::string training(std::int64_t ranks, std::int64_t steps = 20) {
  return "world " + std::to_string(ranks) + "\nrepeat " + std::to_string(steps) +
         "\nall compute 1ms\nrepeat 50\nall compute 1ms\nall all_reduce f32 6553600 async\nend\nall "
         "host_sync\nend\n";
}

void run(benchmark::State& state, const Trace& trace, bool fold, bool costs) {
  const auto flat = sim::flat_costs({{50'000'000'000, 1'000'000}, sim::find_algorithm("ring"), sim::Library::nccl});
  sim::ReplayOptions options;
  options.fold = fold;
  options.snapshot_ops = 0;
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
// What the process has in memory now.
std::uint64_t resident_bytes() {
  std::uint64_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

// The most it ever had.
std::uint64_t peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

void tell_bytes(benchmark::State& state, std::uint64_t before, std::uint64_t ops) {
  state.counters["ops"] = static_cast<double>(ops);
  state.counters["bytes_per_op"] = static_cast<double>(peak_bytes() - before) / static_cast<double>(ops);
  state.SetItemsProcessed(static_cast<std::int64_t>(ops));
}

// A recorded trace: 1,000 ranks, each with a program of its own, every column but the call site filled.
void memory_of_trace(benchmark::State& state) {
  constexpr std::uint32_t kRanks = 1000;
  const auto rows = static_cast<std::uint32_t>(state.range(0) / kRanks);
  for (auto _ : state) {
    const std::uint64_t before = resident_bytes();
    std::vector<Program> programs(kRanks);
    for (Program& program : programs) {
      program.reserve(rows);
      for (std::uint32_t row = 0; row < rows; ++row) {
        Op op;
        op.signature = SignatureId(row % 40);
        op.comm_slot = static_cast<std::uint16_t>(row % 3);
        op.seq = row / 3;
        op.group = row / 2;
        op.issue = row * Nanos{1000};
        op.start = *op.issue + 10;
        op.end = *op.start + 500;
        op.state = OpState::completed;
        program.append(op);
      }
    }
    benchmark::DoNotOptimize(programs.data());
    tell_bytes(state, before, std::uint64_t{rows} * kRanks);
  }
}

// A replay with times of 1,024 ranks, each run.
void memory_of_replay(benchmark::State& state) {
  constexpr std::int64_t kRanks = 1024;
  const std::int64_t steps = state.range(0) / kRanks / 102;
  const Trace trace = trace_of(training(kRanks, steps));
  const auto flat = sim::flat_costs({{50'000'000'000, 1'000'000}, sim::find_algorithm("ring"), sim::Library::nccl});
  sim::ReplayOptions options;
  options.max_ops = 120'000'000;
  options.fold = false;
  options.snapshot_ops = 0;
  options.timing.costs = flat.get();
  for (auto _ : state) {
    const std::uint64_t before = resident_bytes();
    const sim::ReplayResult result = sim::replay(trace, options);
    if (result.outcome != sim::ReplayResult::Outcome::completes) throw std::runtime_error(result.reason);
    tell_bytes(state, before, result.rank_ops);
  }
}

BENCHMARK(every_rank)->Arg(64)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(every_rank_timed)->Arg(64)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(alike)->Arg(1024)->Arg(100'000)->Unit(benchmark::kMillisecond);
BENCHMARK(alike_timed)->Arg(1024)->Arg(100'000)->Unit(benchmark::kMillisecond);
BENCHMARK(memory_of_trace)->Arg(100'000'000)->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(memory_of_replay)->Arg(100'000'000)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
