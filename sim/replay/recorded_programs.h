// Programs from the records of a real run, so that it can be replayed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/rank_set.h"
#include "sim/replay/virtual_ranks.h"
#include "traces/model/trace.h"

namespace ddx::sim {

// What a record does not tell of a call, so that it cannot be replayed as what it was.
enum class NotTold : std::uint8_t { kind, group, peer };

struct UnknownCalls {
  NotTold what = NotTold::kind;
  std::string name;  // as recorded, or its kind
  RankSet ranks;
  std::uint64_t calls = 0;
};

// What became of the records.
struct Recorded {
  Assumptions assumed;
  std::uint64_t records = 0;          // of which programs were made
  std::uint64_t calls = 0;            // in them, the unknown ones too
  std::vector<UnknownCalls> unknown;  // by what is not told, and by name
  std::uint64_t unknown_calls = 0;
  std::vector<std::string> untimed;  // ranks whose computations cannot be placed, and why; one sentence each
};

// Why the programs have no times, as a sentence; empty where they have.
std::string why_untimed(const Recorded& recorded);

// Why a run of the programs that does not come to its end proves nothing of ranks whose calls were passed over: as a
// clause, and who they are. Empty: all calls were told.
struct Untold {
  std::string why;
  RankSet ranks;
};
Untold untold_calls(const Recorded& recorded);

// Makes whole programs of all records that are none, and says what it took for granted. Records of whole programs stay
// as they are; those that were run (a predicted trace) are taken for their programs again, as they stand, with the
// lengths that their computations had.
//
// What was cut stays marked so (RankRecord::tail_lost).
//
// Recorders' rings that lost their beginnings are cut to where every member of each group still has its calls.
//
// Where a record has the times of what it holds (profiles), its program does the same at the same times as long as
// everything takes as long as recorded: operations are issued in order of their start, each on its stream; what an
// operation began later than its own stream allows is put down to the operation of another stream that ended last
// before it, as a wait for that one, and what is left is a delay on its stream: nobody knows what it was. An operation
// without a time is put between its neighbours (recorded_times.h).
//
// Calls of unknown kind, group or peer become delays of their length on their stream. Nothing that is known to be a
// call ever becomes a computation.
//
// Throws Error where a record has nothing to go by.
Recorded take_recorded(Trace& trace);

}  // namespace ddx::sim
