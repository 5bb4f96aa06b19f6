// CallGroups: whose calls meet, for judging who comes late. Where the evidence names communicators they are those;
// where only streams of single ranks are known, a group is inferred, and only with care.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyzers/match/job_view.h"

namespace ddx::analyzers {

struct CallGroup {
  std::string label;
  bool inferred = false;
  std::vector<const MemberView*> members;  // with a record and calls; at least two
};

// A stream is taken for one that all ranks share only if each rank has exactly one stream whose calls agree with it at
// every opCount that both know (at least 16), and nobody goes on before everybody has come (hosts_wait).
std::vector<CallGroup> call_groups(const JobView& job);

// Times to take off each member's clock. A member cannot go on before another has come; where that shows a clock to be
// off, the offset is the middle of what is possible, else 0. Absent: hosts do not wait for these calls (in more than
// one of twenty, with any offsets, somebody goes on before everybody has come), or fewer than 16 calls can tell.
std::optional<std::vector<Nanos>> hosts_wait(const JobView& job, const CallGroup& group);

// What was read as a time, if it can be one: neither negative nor so late that sums of times would overflow.
inline std::optional<Nanos> plausible(std::optional<Nanos> time) {
  constexpr Nanos kLatest = INT64_MAX / 4;
  return time && *time >= 0 && *time <= kLatest ? time : std::nullopt;
}

}  // namespace ddx::analyzers
