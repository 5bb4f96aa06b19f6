// Groups whose members no input lists, and what a run of their programs is worth.
#pragma once

#include <string>

#include "sim/replay/virtual_ranks.h"
#include "traces/model/trace.h"

namespace ddx::sim {

// Why a run to the end of all programs proves nothing: who is in a group was taken from who uses it
// (Communicator::assumed), and that is no reason to believe it. Empty: it does.
std::string unproven_groups(const Trace& trace);

// Where a group of all ranks was taken to be the ranks that there are.
Assumptions assumed_groups(const Trace& trace);

// Takes a group of all ranks as stated to be the ranks that there are.
void state_world(Trace& trace);

}  // namespace ddx::sim
