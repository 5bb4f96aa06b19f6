// Breakdown: where the time of each rank went. Every nanosecond between the first and the last time of a record has
// exactly one name, so that the parts sum to the span.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "traces/model/trace.h"

namespace ddx::analyzers {

struct TimeParts {
  Nanos compute = 0;       // work, and no communication under way
  Nanos exposed = 0;       // communication, and no work under way
  Nanos overlapped = 0;    // both
  Nanos idle = 0;          // neither, where the record holds both kinds: nothing runs
  Nanos unattributed = 0;  // neither, where it holds communication alone: work and idling cannot be told apart; also an
                           // operation whose start is not known, from its issue on
  Nanos total() const { return compute + exposed + overlapped + idle + unattributed; }
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

// Of every record that has at least one operation with a start and an end; rows of loops, and times that cannot be
// (negative, ends before starts), are left out.
std::vector<RankTime> break_down(const Trace& trace);

}  // namespace ddx::analyzers
