// OwnTime: how long ranks that do the same take between two calls that they meet in, without what they wait for others.
// Only this compares: a rank that is late because it waited somewhere else has no more time of its own than others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyzers/straggler/call_groups.h"

namespace ddx::analyzers {

struct OwnTime {
  const MemberView* member = nullptr;
  std::uint32_t row = 0;  // of the call that ends the stretch
  Nanos own = 0;
};

// The stretch before one call, of members that made the same calls (kinds and sizes) since the call before.
struct Stretch {
  std::uint32_t seq = 0;
  std::vector<OwnTime> times;  // at least two
};

struct Comparison {
  const CallGroup* group = nullptr;
  bool by_host = false;  // from times of issue alone
  bool by_work = false;  // own time is that of computations
  std::vector<Stretch> stretches;
};

// Where whole programs with the times of their computations are known, own time is what of these stands between the two
// calls in the program, of members that have as many there: a call that runs beside a computation takes nothing of it.
// Else, where calls have a start and an end, own time is what lies outside of all calls of the rank, and no clocks
// compare. Where only times of issue are known it is the time since everybody had come to the call before; that needs
// hosts that wait for their calls (hosts_wait) and a stretch without other calls. Unless all are of one host, what a
// rank is always later by is taken for its clock's error and left out. Empty: neither.
Comparison compare_own_time(const JobView& job, const CallGroup& group);

}  // namespace ddx::analyzers
