// Breakdown: where the time of each rank went. Every nanosecond between the first and the last time of a record has
// exactly one name, so that the parts sum to the span. Defined in docs/stragglers.md; sim::TimeShares is the same of a
// replay that keeps no trace.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "traces/model/evidence.h"

namespace ddx::analyzers {

struct TimeParts {
  Nanos compute = 0;       // work, and no communication under way
  Nanos exposed = 0;       // communication, and no work under way
  Nanos overlapped = 0;    // both
  Nanos bubble = 0;        // only sends and receives whose partner is not there
  Nanos idle = 0;          // nothing runs: in a record that holds work, or in a program that is known to its end
  Nanos unattributed = 0;  // work and idling cannot be told apart: between the calls of a record that holds nothing
                           // else; also an operation whose start is not known, from its issue on
  Nanos total() const { return compute + exposed + overlapped + bubble + idle + unattributed; }
  bool operator==(const TimeParts&) const = default;
};

struct StreamTime {
  std::optional<std::uint32_t> stream;  // its number on the rank; absent: operations of no known stream
  TimeParts parts;                      // of the rank's span; what other streams do is idle here
};

struct RankTime {
  std::optional<RankId> rank;
  std::uint32_t record = 0;         // index into Trace::ranks
  Nanos begin = 0, end = 0;         // first and last time of it
  TimeParts parts;                  // of all streams together; sums to end - begin
  std::vector<StreamTime> streams;  // by number, each sums to end - begin
};

struct TimeSpan {
  Nanos begin = 0, end = 0;
};

// Of every record that has at least one operation with a start and an end; rows of loops, and times that cannot be
// (negative, ends before starts), are left out. Of a lone trace sends and receives are communication throughout.
std::vector<RankTime> break_down(const Trace& trace);

// Bubbles as well, where the records of a send and of its receive are there. No clocks are compared: the two end
// together, so that what one takes longer than the other is its wait. `span`: of the whole run, for traces of one
// clock; a rank of sends and receives that is done before its end is in a bubble.
std::vector<RankTime> break_down(const Evidence& evidence, std::optional<TimeSpan> span = std::nullopt);

}  // namespace ddx::analyzers
