// Collectives message by message, on one core: messages a second of whole simulations, and of sharing links.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "sim/collectives/step_simulation.h"
#include "sim/network/flow_set.h"

namespace {

using namespace ddx::sim;  // NOLINT(google-build-using-namespace): a program of its own

constexpr LinkSpec kPort{50'000'000'000, 1'000'000};
constexpr std::uint64_t kMiB = 1024 * 1024;

std::int64_t messages_of(const Algorithm& algorithm, const Work& work, std::uint32_t ranks) {
  const auto schedule = algorithm.schedule(work, flat_members(ranks));
  std::int64_t messages = 0;
  Step step;
  for (std::uint32_t agent = 0; agent < schedule->agents(); ++agent) {
    for (std::uint32_t index = 0; index < schedule->steps(agent); ++index) {
      step.sends.clear();
      schedule->step(agent, index, step);
      messages += static_cast<std::int64_t>(step.sends.size());
    }
  }
  return messages;
}

void simulate(benchmark::State& state, const char* name, ddx::OpKind kind, std::uint64_t bytes, bool together) {
  const auto ranks = static_cast<std::uint32_t>(state.range(0));
  const Algorithm& algorithm = *find_algorithm(name);
  const Work work{kind, bytes};
  const Network network(ranks, kPort);
  std::vector<Picos> arrivals(ranks);
  if (!together) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) arrivals[rank] = rank * 7'919 % 50'000'000;
  }
  for (auto _ : state) benchmark::DoNotOptimize(simulate_steps(algorithm, work, arrivals, network));
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * messages_of(algorithm, work, ranks));
}

void ring(benchmark::State& state) { simulate(state, "ring", ddx::OpKind::all_reduce, kMiB, true); }
void ring_late(benchmark::State& state) { simulate(state, "ring", ddx::OpKind::all_reduce, kMiB, false); }
void halving_doubling(benchmark::State& state) {
  simulate(state, "halving-doubling", ddx::OpKind::all_reduce, 25 * kMiB, true);
}
void halving_doubling_late(benchmark::State& state) {
  simulate(state, "halving-doubling", ddx::OpKind::all_reduce, 25 * kMiB, false);
}
void tree(benchmark::State& state) { simulate(state, "tree", ddx::OpKind::all_reduce, 64 * kMiB, true); }
void pairwise(benchmark::State& state) { simulate(state, "pairwise", ddx::OpKind::all_to_all, 64 * kMiB, true); }
BENCHMARK(ring)->RangeMultiplier(4)->Range(64, 4096)->Unit(benchmark::kMillisecond);
BENCHMARK(ring_late)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(halving_doubling)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(halving_doubling_late)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(tree)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(pairwise)->Arg(1024)->Unit(benchmark::kMillisecond);

// Every algorithm for every kind that it has.
void closed_forms(benchmark::State& state) {
  const auto ranks = static_cast<std::uint32_t>(state.range(0));
  std::int64_t prices = 0;
  for (auto _ : state) {
    for (const Algorithm& algorithm : algorithms()) {
      for (const ddx::OpKind kind : algorithm.kinds) {
        if (!algorithm.runs(kind, flat_members(ranks))) continue;
        benchmark::DoNotOptimize(flat_price({kind, 25 * kMiB}, ranks, kPort, algorithm));
        ++prices;
      }
    }
  }
  state.SetItemsProcessed(prices);
}
BENCHMARK(closed_forms)->Arg(4096);

// Flows that come and go, each on a link of its own (0) or all on one (1).
void flow_set(benchmark::State& state, bool shared) {
  constexpr std::uint32_t kFlows = 64;
  for (auto _ : state) {
    FlowSet flows(std::vector<std::uint64_t>(kFlows, kPort.bytes_per_second));
    std::vector<FlowSet::FlowId> finished;
    for (std::uint32_t flow = 0; flow < kFlows; ++flow) {
      const std::array<LinkUse, 1> use{LinkUse{shared ? 0 : flow}};
      flows.add(flow, amount_of(kMiB + flow), use);
    }
    while (!flows.empty()) flows.take_finished(*flows.next_finish(), finished);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * kFlows);
}
void flows_apart(benchmark::State& state) { flow_set(state, false); }
void flows_on_one_link(benchmark::State& state) { flow_set(state, true); }
BENCHMARK(flows_apart)->Unit(benchmark::kMicrosecond);
BENCHMARK(flows_on_one_link)->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
