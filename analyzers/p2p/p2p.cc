#include "analyzers/p2p/p2p.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace ddx::analyzers {
namespace {

struct Posted {
  const MemberView* member;
  std::uint32_t row;
};
struct Channel {
  std::vector<Posted> sends, recvs;
};
using Channels = std::map<std::pair<std::uint32_t, std::uint32_t>, Channel>;  // by (source, destination) position

// What can be counted from one end on both sides: everything where no beginning is lost, else only what is pending (all
// before it has met its partner).
bool countable(const MemberView& member, std::uint32_t row, bool from_start) {
  if (from_start) return true;
  const OpState state = member.program->state(row);
  return state == OpState::scheduled || state == OpState::started;
}

Channels channels_of(const JobView& job, const GroupView& group) {
  const bool from_start = std::none_of(group.members.begin(), group.members.end(), [](const MemberView& member) {
    return member.record && (member.record->head_lost || member.record->tail_lost);
  });
  Channels channels;
  for (const MemberView& member : group.members) {
    for (std::size_t i = 0; i < member.p2p_issued; ++i) {
      const std::uint32_t row = member.p2p[i];
      if (!countable(member, row, from_start)) continue;
      const Signature& s = job.trace->signature(member.program->signature(row));
      const auto peer = job.trace->peer(*member.record, s);
      if (!peer || *peer < 0) continue;
      const auto other = static_cast<std::uint32_t>(*peer);
      if (s.kind == OpKind::send) {
        channels[{member.position, other}].sends.push_back({&member, row});
      } else {
        channels[{other, member.position}].recvs.push_back({&member, row});
      }
    }
  }
  return channels;
}

const Signature& signature_of(const JobView& job, const Posted& posted) {
  return job.trace->signature(posted.member->program->signature(posted.row));
}

std::optional<std::uint64_t> count_of(const Signature& s) { return s.count_in ? s.count_in : s.count_out; }

Finding pair_finding(const JobView& job, const GroupView& group, const Posted& send, const Posted& recv) {
  Finding f;
  f.subjects = {"group " + group.label, fmt::format("pair {}->{}", send.member->rank.value, recv.member->rank.value)};
  f.evidence = {call_evidence(job, group, *send.member, send.row), call_evidence(job, group, *recv.member, recv.row)};
  return f;
}

std::optional<Finding> size_finding(const JobView& job, const GroupView& group, const Posted& send,
                                    const Posted& recv) {
  const Signature& s = signature_of(job, send);
  const Signature& r = signature_of(job, recv);
  const auto sent = count_of(s), expected = count_of(r);
  const bool counts = sent && expected && *sent != *expected;
  const bool types = s.type_in != DataType::unknown && r.type_in != DataType::unknown && s.type_in != r.type_in;
  if (!counts && !types) return std::nullopt;
  Finding f = pair_finding(job, group, send, recv);
  f.code = "p2p-size";
  f.confidence = Confidence::high;
  f.ranks = RankSet{send.member->rank, recv.member->rank};
  f.summary = fmt::format("rank {} sends {} to rank {}, which receives {} (group {})", send.member->rank.value,
                          describe_call(job, *send.member, send.row), recv.member->rank.value,
                          describe_call(job, *recv.member, recv.row), group.label);
  f.explanation = "Sends and receives of one pair meet in order of posting; these two meet and do not fit.\n";
  f.advice =
      "Exchange the shape before the data, or look for a send or receive that one side left out before this pair.";
  return f;
}

std::optional<Finding> tag_finding(const JobView& job, const GroupView& group, const Posted& send, const Posted& recv) {
  const auto sent = signature_of(job, send).tag, expected = signature_of(job, recv).tag;
  if (!sent || !expected || *sent == *expected) return std::nullopt;
  Finding f = pair_finding(job, group, send, recv);
  f.code = "p2p-tag-order";
  f.severity = Severity::warning;
  f.confidence = Confidence::medium;
  f.ranks = RankSet{recv.member->rank};
  f.summary = fmt::format("rank {} receives with tag {} what rank {} sends with tag {} (group {})",
                          recv.member->rank.value, *expected, send.member->rank.value, *sent, group.label);
  f.explanation =
      "By order of posting the tags cross. A backend without tags (NCCL) pairs by order: nothing hangs, and the data "
      "are exchanged silently. A backend with tags (gloo, MPI) pairs them as meant.\n";
  f.advice = "Post the receives in the order of the sends, or do not rely on tags.";
  return f;
}

// The first bad pair of each kind in a channel; what follows may be its consequence.
void check_channel(const JobView& job, const GroupView& group, const Channel& channel, std::vector<Finding>& findings) {
  const std::size_t pairs = std::min(channel.sends.size(), channel.recvs.size());
  bool size_seen = false, tag_seen = false;
  for (std::size_t i = 0; i < pairs && !(size_seen && tag_seen); ++i) {
    if (!size_seen) {
      if (auto f = size_finding(job, group, channel.sends[i], channel.recvs[i])) {
        findings.push_back(std::move(*f));
        size_seen = true;
      }
    }
    if (!tag_seen) {
      if (auto f = tag_finding(job, group, channel.sends[i], channel.recvs[i])) {
        findings.push_back(std::move(*f));
        tag_seen = true;
      }
    }
  }
}

struct BadPeer {
  const MemberView* member;
  std::uint32_t row;
  RankSet ranks;
};

}  // namespace

std::vector<Finding> find_bad_pairs(const JobView& job) {
  std::vector<Finding> findings;
  for (const GroupView& group : job.groups) {
    for (const auto& [ends, channel] : channels_of(job, group)) check_channel(job, group, channel, findings);
  }
  return findings;
}

std::vector<Finding> find_bad_peers(const JobView& job) {
  std::vector<Finding> findings;
  for (const GroupView& group : job.groups) {
    if (!group.members_known) continue;
    std::optional<BadPeer> bad;
    for (const MemberView& member : group.members) {
      const auto check = [&](std::uint32_t row) {
        const Signature& s = job.trace->signature(member.program->signature(row));
        const auto peer = job.trace->peer(*member.record, s);
        if (!peer || (*peer >= 0 && static_cast<std::size_t>(*peer) < group.members.size())) return;
        if (!bad) bad = BadPeer{&member, row, {}};
        bad->ranks.insert(member.rank);
      };
      for (const Call& call : member.calls) {
        if (job.trace->signature(member.program->signature(call.row)).peer_slot) check(call.row);
      }
      for (std::uint32_t row : member.p2p) check(row);
    }
    if (!bad) continue;
    Finding f;
    f.code = "peer-range";
    f.confidence = Confidence::high;
    f.ranks = bad->ranks;
    f.subjects = {"group " + group.label};
    f.summary =
        fmt::format("{} names a root or peer outside the group: {} (group {} has {} members)", bad->ranks.label(8),
                    describe_call(job, *bad->member, bad->row), group.label, group.members.size());
    f.explanation = "The number is a position in the communicator; the communicator has no such member.\n";
    f.evidence = {call_evidence(job, group, *bad->member, bad->row)};
    f.advice =
        "Check whether a global rank is passed where a group rank is meant (or the reverse), and neighbours at the "
        "ends "
        "of a pipeline.";
    findings.push_back(std::move(f));
  }
  return findings;
}

}  // namespace ddx::analyzers
