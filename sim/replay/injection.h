// Faults put into programs on purpose: what would the job look like if rank 3 left out its 812th call?
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/units.h"
#include "traces/model/trace.h"

namespace ddx::sim {

enum class InjectedFault : std::uint8_t { skip, duplicate, swap, resize, retype, reroot, kill, delay };

// Which operation of a rank: the n-th of its list with loops run out, from 0; or a call by its communicator's name and
// sequence number, from 1 (collectives and point to point count apart: the collective is meant).
struct OpPlace {
  std::uint64_t index = 0;
  std::string group;  // empty: `index` counts the whole list
};

struct Injection {
  InjectedFault fault = InjectedFault::skip;
  RankId rank;
  OpPlace place;
  std::optional<std::uint64_t> value;  // resize: elements (absent: twice as many and one); reroot: position (the next)
  std::optional<Nanos> delay;          // delay: for so long (absent: one second)
};

std::string_view name_of(InjectedFault fault);
std::optional<InjectedFault> injected_fault_from(std::string_view name);

// Gives the rank a program of its own with the fault in it, and says what was done, in a sentence without an end: "rank
// 3 leaves out its operation 812, all_reduce 800 of pg0". Throws Error where the trace has no such rank or operation,
// or where the fault does not fit the operation.
std::string inject(Trace& trace, const Injection& injection);

}  // namespace ddx::sim
