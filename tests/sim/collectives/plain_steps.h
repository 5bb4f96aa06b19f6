// The steps of a schedule on a network, as plainly as can be: every message is a flow, every rate is found anew at
// every event, times are floating point. What the fast simulation is held against.
#pragma once

#include <span>
#include <vector>

#include "sim/collectives/algorithm.h"

namespace ddx::testing {

std::vector<double> plain_steps(const sim::Schedule& schedule, std::optional<sim::SwitchPlace> switches,
                                std::span<const sim::Picos> arrivals, const sim::Network& network);

}  // namespace ddx::testing
