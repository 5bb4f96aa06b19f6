// Programs from the records of a real run, so that it can be replayed.
#pragma once

#include "sim/replay/virtual_ranks.h"
#include "traces/model/trace.h"

namespace ddx::sim {

// Makes whole programs of all records that are none, and says what it took for granted. Records of whole programs stay
// as they are.
//
// Recorders' rings that lost their beginnings are cut to where every member of each group still has its calls.
//
// Where a record has the times of what it holds (profiles), its program does the same at the same times as long as
// everything takes as long as recorded: operations are issued in order of their start, each on its stream; what an
// operation began later than its own stream allows is put down to the operation of another stream that ended last
// before it, as a wait for that one, and what is left of the delay to the host, as computation. What cannot be replayed
// as what it is (kernels of unknown kind, calls of groups whose members are not known) becomes computation of its
// length.
//
// Throws Error where a record has nothing to go by.
Assumptions take_recorded(Trace& trace);

}  // namespace ddx::sim
