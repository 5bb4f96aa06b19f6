#include "analyzers/match/orphans.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "analyzers/match/channels.h"

namespace ddx::analyzers {
namespace {

const Signature& signature(const JobView& job, const Orphan& call) {
  const MemberView& member = job.groups[call.group].members[call.member];
  return job.trace->signature(member.program->signature(call.row));
}

bool whole(const MemberView& member) {
  return member.record && member.record->whole_program && !member.record->head_lost && !member.record->tail_lost;
}

// A rank that ended before its time lacks calls for that reason.
bool stopped(const JobView& job, const MemberView& member) {
  for (std::size_t row = member.program->size(); row-- > 0;) {
    if (job.trace->signature(member.program->signature(row)).kind == OpKind::stop) return true;
  }
  return false;
}

struct Ends {
  std::vector<Orphan> sends, recvs;
};

// Both ends of all channels of a group, by the members that send and receive: posted and planned calls alike.
std::map<std::pair<std::uint32_t, std::uint32_t>, Ends> all_ends(const JobView& job, std::uint32_t index) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, Ends> all;
  const GroupView& group = job.groups[index];
  for (std::uint32_t at = 0; at < group.members.size(); ++at) {
    const MemberView& member = group.members[at];
    for (const std::uint32_t row : member.p2p) {
      const Signature& s = job.trace->signature(member.program->signature(row));
      const auto peer = job.trace->peer(*member.record, s);
      const MemberView* other = peer && *peer >= 0 ? group.member_at(static_cast<std::uint32_t>(*peer)) : nullptr;
      if (!other) continue;  // peer-range
      const auto partner = static_cast<std::uint32_t>(other - group.members.data());
      const bool sends = s.kind == OpKind::send;
      Ends& ends = all[sends ? std::pair(at, partner) : std::pair(partner, at)];
      (sends ? ends.sends : ends.recvs).push_back({index, at, row, partner, sends});
    }
  }
  return all;
}

auto order_of(const Orphan& call) { return std::tuple(call.group, call.member, call.row); }

}  // namespace

std::vector<Orphan> find_orphans(const JobView& job) {
  std::vector<Orphan> orphans;
  for (std::uint32_t index = 0; index < job.groups.size(); ++index) {
    const GroupView& group = job.groups[index];
    for (const auto& [members, ends] : all_ends(job, index)) {
      if (ends.sends.size() == ends.recvs.size()) continue;
      const bool more_sends = ends.sends.size() > ends.recvs.size();
      const auto& longer = more_sends ? ends.sends : ends.recvs;
      const std::size_t met = std::min(ends.sends.size(), ends.recvs.size());
      const MemberView& shorter = group.members[longer.front().partner];
      if (!whole(group.members[longer.front().member]) || !whole(shorter) || stopped(job, shorter)) continue;
      orphans.insert(orphans.end(), longer.begin() + static_cast<std::ptrdiff_t>(met), longer.end());
    }
  }
  std::sort(orphans.begin(), orphans.end(), [](const Orphan& a, const Orphan& b) { return order_of(a) < order_of(b); });
  return orphans;
}

bool is_orphan(const std::vector<Orphan>& orphans, std::uint32_t group, std::uint32_t member, std::uint32_t row) {
  return std::binary_search(orphans.begin(), orphans.end(), Orphan{group, member, row, 0, false},
                            [](const Orphan& a, const Orphan& b) { return order_of(a) < order_of(b); });
}

std::optional<Orphan> meant_partner(const JobView& job, const std::vector<Orphan>& orphans, const Orphan& call) {
  std::optional<Orphan> meant;
  for (const Orphan& other : orphans) {
    const bool same_end = other.group == call.group && other.member == call.member && other.sends == call.sends;
    if (same_end && other.partner != call.partner) return std::nullopt;  // several wrong peers, or none
    if (other.group != call.group || other.sends == call.sends || other.partner != call.member) continue;
    const Orphan& send = call.sends ? call : other;
    const Orphan& recv = call.sends ? other : call;
    if (!fit_together(signature(job, send), signature(job, recv))) continue;
    if (meant && meant->member != other.member) return std::nullopt;
    if (!meant) meant = other;
  }
  return meant;
}

}  // namespace ddx::analyzers
