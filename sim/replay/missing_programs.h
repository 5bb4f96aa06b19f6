// What a set of programs lacks to be the whole of a job, told by the formats that have a file for each rank.
#pragma once

#include <string>

#include "sim/replay/virtual_ranks.h"
#include "traces/model/evidence.h"

namespace ddx::sim {

// Ranks that the programs need and that have none: below the largest of all ranks, members of groups, or peers. One
// sentence, which says why each is needed; empty: all are there, or the evidence states its world and with it who is
// absent (ops text).
std::string missing_programs(const Evidence& evidence);

// Why a run to the end of all programs proves nothing: who is in a group was taken from who uses it
// (Communicator::assumed), and that is no reason to believe it. Empty: it does.
std::string unproven_groups(const Trace& trace);

// Where a group of all ranks was taken to be the ranks that there are.
Assumptions assumed_groups(const Trace& trace);

// Takes a group of all ranks as stated to be the ranks that there are.
void state_world(Trace& trace);

}  // namespace ddx::sim
