// Which algorithm and protocol the collectives of programs take on a network.
#pragma once

#include <vector>

#include "cli/report/report.h"
#include "sim/replay/timing.h"
#include "traces/model/trace.h"

namespace ddx::cli {

// One line a kind, size of communicator, algorithm and protocol; kinds in the order of OpKind, then by size. Empty
// where `costs` does not say (message by message there is no one price).
std::vector<Simulation::Choice> collective_choices(const Trace& trace, const sim::CostModel& costs);

}  // namespace ddx::cli
