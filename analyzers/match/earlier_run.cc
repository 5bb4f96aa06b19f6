#include "analyzers/match/earlier_run.h"

#include <algorithm>
#include <set>

namespace ddx::analyzers {
namespace {

// Clocks of a cluster are kept within seconds.
constexpr Nanos kClocksApart = 300 * kSecond;
// In one run the members' last calls are few different ones; more are not looked at.
constexpr std::size_t kMostSeqs = 64;

// When the member's call at `seq` was complete, where that proves that all others had made it too.
std::optional<Nanos> completed_at(const JobView& job, const MemberView& member, std::uint32_t seq) {
  const Call* call = member.record ? member.call_at(seq) : nullptr;
  if (!call || !member.record->snapshot || only_tells_over(*member.record)) return std::nullopt;
  if (!synchronizes(job.trace->signature(member.program->signature(call->row)).kind)) return std::nullopt;
  const std::uint32_t row = call->row + call->rows - 1;
  return member.program->state(row) == OpState::completed ? member.program->end(row) : std::nullopt;
}

// The last calls of the members: of two runs at least one of these is a call that both made.
std::set<std::uint32_t> seqs_to_compare(const GroupView& group) {
  std::set<std::uint32_t> seqs;
  for (const MemberView& member : group.members) {
    for (std::size_t i = member.issued; i-- > 0 && i + 2 >= member.issued;) {
      if (seqs.size() < kMostSeqs) seqs.insert(member.calls[i].seq);
    }
  }
  return seqs;
}

std::optional<Nanos> latest_issue(const GroupView& group, std::uint32_t seq) {
  std::optional<Nanos> latest;
  for (const MemberView& member : group.members) {
    const Call* call = member.record ? member.call_at(seq) : nullptr;
    const auto issue = call ? member.program->issue(call->row) : std::nullopt;
    if (issue) latest = std::max(latest.value_or(*issue), *issue);
  }
  return latest;
}

}  // namespace

RankSet ranks_of_earlier_run(const JobView& job) {
  std::vector<RankId> earlier;
  for (const GroupView& group : job.groups) {
    for (const std::uint32_t seq : seqs_to_compare(group)) {
      const auto latest = latest_issue(group, seq);
      if (!latest) continue;
      for (const MemberView& member : group.members) {
        const auto end = completed_at(job, member, seq);
        if (end && *latest - kClocksApart > *end) earlier.push_back(member.rank);
      }
    }
  }
  return RankSet(std::move(earlier));
}

}  // namespace ddx::analyzers
