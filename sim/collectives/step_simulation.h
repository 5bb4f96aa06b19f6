// One call, step by step, that has a network for itself (step_network.h).
#pragma once

#include <span>
#include <vector>

#include "sim/collectives/algorithm.h"

namespace ddx::sim {

// When each member is done. arrivals[i]: when member i comes to the call, 0 or later; ranks[i]: where on the network it
// sits, each rank once; both of the same length, 1 or more. An Error where the algorithm does not run for these, or
// where a message has more than kMostBytes bytes.
std::vector<Picos> simulate_steps(const Algorithm& algorithm, const Work& work, std::span<const Picos> arrivals,
                                  const Network& network, std::span<const std::uint32_t> ranks);
// Member i sits on rank i.
std::vector<Picos> simulate_steps(const Algorithm& algorithm, const Work& work, std::span<const Picos> arrivals,
                                  const Network& network);

}  // namespace ddx::sim
