// ddx_time_steps ALGORITHM RANKS BYTES: one all_reduce on a flat network of 50 GB/s and 1 us, message by message.
// Prints the simulated picoseconds. What run_steps_bench.py times.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

#include "sim/collectives/step_simulation.h"

namespace {

// Of this program alone: what wait4() tells its parent begins with the parent's own.
long peak_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::strtol(line.c_str() + 6, nullptr, 10);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  using namespace ddx::sim;  // NOLINT(google-build-using-namespace): a program of its own
  const Algorithm* algorithm = argc == 4 ? find_algorithm(argv[1]) : nullptr;
  if (algorithm == nullptr) {
    std::fprintf(stderr, "usage: ddx_time_steps ALGORITHM RANKS BYTES\n");
    return 2;
  }
  const auto ranks = static_cast<std::uint32_t>(std::strtoul(argv[2], nullptr, 10));
  const Work work{ddx::OpKind::all_reduce, std::strtoull(argv[3], nullptr, 10)};
  const Network network(ranks, {50'000'000'000, 1'000'000});
  const auto ends = simulate_steps(*algorithm, work, std::vector<Picos>(ranks), network);
  std::printf("%lld %ld\n", static_cast<long long>(*std::max_element(ends.begin(), ends.end())), peak_kib());
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "ddx_time_steps: %s\n", error.what());
  return 2;
}
