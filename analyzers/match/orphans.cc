#include "analyzers/match/orphans.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "analyzers/match/channels.h"

namespace ddx::analyzers {
namespace {

bool whole(const MemberView& member) {
  return member.record && member.record->whole_program && !member.record->head_lost && !member.record->tail_lost;
}

// A rank that ended before its time lacks calls for that reason.
bool has_stopped(const JobView& job, const MemberView& member) {
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
    std::vector<std::optional<bool>> stopped(group.members.size());
    const auto is_stopped = [&](std::uint32_t member) {
      if (!stopped[member]) stopped[member] = has_stopped(job, group.members[member]);
      return *stopped[member];
    };
    for (const auto& [members, ends] : all_ends(job, index)) {
      if (ends.sends.size() == ends.recvs.size()) continue;
      const bool more_sends = ends.sends.size() > ends.recvs.size();
      const auto& longer = more_sends ? ends.sends : ends.recvs;
      const std::size_t met = std::min(ends.sends.size(), ends.recvs.size());
      const std::uint32_t shorter = longer.front().partner;
      if (!whole(group.members[longer.front().member]) || !whole(group.members[shorter]) || is_stopped(shorter))
        continue;
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

OrphanEnds::OrphanEnds(const JobView& job, const std::vector<Orphan>& orphans) : job_(job) {
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, bool, std::uint32_t>> seen;
  for (const Orphan& call : orphans) {
    const auto& members = job.groups[call.group].members;
    const MemberView& own = members[call.member];
    const std::uint32_t signature = own.program->signature(call.row).value;
    if (!seen.insert({call.group, call.member, call.partner, call.sends, signature}).second) continue;
    by_caller_[{call.group, call.member, call.sends}].push_back(call);
    by_partner_[{call.group, call.partner, call.sends}].push_back(call);
    by_ranks_[{own.rank, members[call.partner].rank, call.sends}].push_back(call);
  }
}

const std::vector<Orphan>& OrphanEnds::of(std::uint32_t group, std::uint32_t member, bool sends) const {
  const auto at = by_caller_.find({group, member, sends});
  return at == by_caller_.end() ? none_ : at->second;
}

const std::vector<Orphan>& OrphanEnds::between(RankId caller, RankId partner, bool sends) const {
  const auto at = by_ranks_.find({caller, partner, sends});
  return at == by_ranks_.end() ? none_ : at->second;
}

const Signature& OrphanEnds::signature(const Orphan& call) const {
  const MemberView& member = job_.groups[call.group].members[call.member];
  return job_.trace->signature(member.program->signature(call.row));
}

bool OrphanEnds::fit(const Orphan& call, const Orphan& other) const {
  return fit_together(signature(call.sends ? call : other), signature(call.sends ? other : call));
}

std::optional<Orphan> OrphanEnds::meant_partner(const Orphan& call) const {
  const auto& own = of(call.group, call.member, call.sends);
  const auto other_peer = [&](const Orphan& other) { return other.partner != call.partner; };
  if (std::any_of(own.begin(), own.end(), other_peer)) return std::nullopt;  // several wrong peers, or none
  const auto waiting = by_partner_.find({call.group, call.member, !call.sends});
  if (waiting == by_partner_.end()) return std::nullopt;
  std::optional<Orphan> meant;
  for (const Orphan& other : waiting->second) {
    if (!fit(call, other)) continue;
    if (meant && meant->member != other.member) return std::nullopt;
    if (!meant) meant = other;
  }
  return meant;
}

}  // namespace ddx::analyzers
