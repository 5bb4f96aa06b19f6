#include "sim/collectives/step_simulation.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "base/check.h"
#include "base/error.h"
#include "sim/collectives/step_network.h"

namespace ddx::sim {

std::vector<Picos> simulate_steps(const Algorithm& algorithm, const Work& work, std::span<const Picos> arrivals,
                                  const Network& network, std::span<const std::uint32_t> ranks) {
  if (ranks.empty() || arrivals.size() != ranks.size())
    throw Error("steps: expected as many arrivals as ranks, and at least one");
  if (std::any_of(arrivals.begin(), arrivals.end(), [](Picos time) { return time < 0; }))
    throw Error("steps: expected arrivals at 0 or later");
  StepNetwork steps(network);
  const StepNetwork::CallId call = steps.begin(algorithm, work, {ranks.begin(), ranks.end()});
  for (std::uint32_t member = 0; member < arrivals.size(); ++member) steps.arrive(call, member, arrivals[member]);
  std::vector<Picos> ends(arrivals.size(), 0);
  std::size_t left = ends.size();
  std::vector<StepNetwork::End> told;
  while (steps.advance(told)) {
    left -= told.size();
    for (const StepNetwork::End& end : told) ends[end.member] = end.time;
  }
  DDX_CHECK(left == 0);
  return ends;
}

std::vector<Picos> simulate_steps(const Algorithm& algorithm, const Work& work, std::span<const Picos> arrivals,
                                  const Network& network) {
  std::vector<std::uint32_t> ranks(arrivals.size());
  std::iota(ranks.begin(), ranks.end(), 0U);
  return simulate_steps(algorithm, work, arrivals, network, ranks);
}

}  // namespace ddx::sim
