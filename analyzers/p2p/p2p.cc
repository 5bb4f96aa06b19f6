#include "analyzers/p2p/p2p.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "analyzers/match/channels.h"

namespace ddx::analyzers {
namespace {

// The two calls of one meeting.
struct Pair {
  const MemberView& sender;
  const MemberView& receiver;
  std::uint32_t send, recv;  // rows
  bool sure;                 // that they meet

  const Signature& sent(const JobView& job) const { return job.trace->signature(sender.program->signature(send)); }
  const Signature& expected(const JobView& job) const {
    return job.trace->signature(receiver.program->signature(recv));
  }
};

Finding pair_finding(const JobView& job, const GroupView& group, const Pair& pair) {
  Finding f;
  f.subjects = {"group " + group.label, fmt::format("pair {}->{}", pair.sender.rank.value, pair.receiver.rank.value)};
  f.evidence = {call_evidence(job, group, pair.sender, pair.send), call_evidence(job, group, pair.receiver, pair.recv)};
  return f;
}

std::optional<Finding> size_finding(const JobView& job, const GroupView& group, const Pair& pair) {
  if (fit_together(pair.sent(job), pair.expected(job))) return std::nullopt;
  Finding f = pair_finding(job, group, pair);
  f.code = "p2p-size";
  f.confidence = pair.sure ? Confidence::high : Confidence::low;
  f.ranks = RankSet{pair.sender.rank, pair.receiver.rank};
  f.summary = fmt::format("what ranks {} and {} exchange does not fit: {} against {} (group {})",
                          pair.sender.rank.value, pair.receiver.rank.value, describe_call(job, pair.sender, pair.send),
                          describe_call(job, pair.receiver, pair.recv), group.label);
  f.explanation =
      pair.sure ? "Sends and receives of one pair meet in order of posting; these two meet and do not fit.\n"
                : "These are the first of either side that are not over. The rings have lost what came before, and "
                  "nothing that they hold shows that these two meet: a small message may be sent, and over, before its "
                  "receive runs, and then its receive stands against a later send here.\n";
  f.advice =
      "Exchange the shape before the data, or look for a send or receive that one side left out before this pair.";
  return f;
}

std::optional<Finding> tag_finding(const JobView& job, const GroupView& group, const Pair& pair) {
  const auto sent = pair.sent(job).tag, expected = pair.expected(job).tag;
  if (!sent || !expected || *sent == *expected) return std::nullopt;
  Finding f = pair_finding(job, group, pair);
  f.code = "p2p-tag-order";
  f.severity = Severity::warning;
  f.confidence = Confidence::medium;
  f.ranks = RankSet{pair.receiver.rank};
  f.summary = fmt::format("rank {} receives with tag {} what rank {} sends with tag {} (group {})",
                          pair.receiver.rank.value, *expected, pair.sender.rank.value, *sent, group.label);
  f.explanation =
      "By order of posting the tags cross. A backend without tags (NCCL) pairs by order: nothing hangs, and the data "
      "are exchanged silently. A backend with tags (gloo, MPI) pairs them as meant.\n";
  f.advice = "Post the receives in the order of the sends, or do not rely on tags.";
  return f;
}

std::vector<std::int64_t> tags_of(const JobView& job, const GroupView& group, const std::vector<Posted>& posted) {
  std::vector<std::int64_t> tags;
  for (const Posted& call : posted) {
    const auto tag = job.trace->signature(group.members[call.member].program->signature(call.row)).tag;
    if (tag) tags.push_back(*tag);
  }
  std::sort(tags.begin(), tags.end());
  return tags;
}

// Whether the sends of a channel have other tags than its receives, however they are ordered. Only where all of both
// are known.
bool tags_differ(const JobView& job, const GroupView& group, const Channel& channel) {
  if (!channel.sure || channel.sends.size() != channel.recvs.size()) return false;
  const auto sent = tags_of(job, group, channel.sends), expected = tags_of(job, group, channel.recvs);
  return sent.size() == channel.sends.size() && expected.size() == channel.recvs.size() && sent != expected;
}

// No order of the receives would do: where tags are kept apart, both sides wait for ever.
void make_unmatched(Finding& f, const Pair& pair) {
  f.code = "p2p-unmatched";
  f.severity = Severity::error;
  f.ranks = RankSet{pair.sender.rank, pair.receiver.rank};
  f.explanation =
      "Each tag on one side needs the same tag on the other, and these have none. A backend with tags (gloo, MPI) "
      "never "
      "matches them: both ranks wait for ever. A backend without tags (NCCL) pairs them by order, and the data may be "
      "those of another message.\n";
  f.advice = "Give the send and its receive the same tag.";
}

// The first bad pair of each kind in a channel; what follows may be its consequence.
void check_channel(const JobView& job, const GroupView& group, const Channel& channel, std::vector<Finding>& findings) {
  bool size_seen = false, tag_seen = false;
  for (std::size_t i = 0; i < channel.sends.size() && !(size_seen && tag_seen); ++i) {
    const std::ptrdiff_t partner = recv_of(channel, i);
    if (partner < 0 || partner >= static_cast<std::ptrdiff_t>(channel.recvs.size())) continue;
    const Posted& send = channel.sends[i];
    const Posted& recv = channel.recvs[static_cast<std::size_t>(partner)];
    const Pair pair{group.members[send.member], group.members[recv.member], send.row, recv.row, channel.sure};
    // By a guess only what is not over can be paired.
    if (!pair.sure && !(pair.sender.in_flight(pair.send) && pair.receiver.in_flight(pair.recv))) continue;
    if (!size_seen) {
      if (auto f = size_finding(job, group, pair)) {
        findings.push_back(std::move(*f));
        size_seen = true;
      }
    }
    if (!tag_seen) {
      if (auto f = tag_finding(job, group, pair)) {
        if (tags_differ(job, group, channel)) make_unmatched(*f, pair);
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
    f.summary = fmt::format("{} {} a root or peer outside the group: {} (group {} has {} members)", bad->ranks.label(8),
                            bad->ranks.size() == 1 ? "names" : "name", describe_call(job, *bad->member, bad->row),
                            group.label, group.members.size());
    f.explanation = fmt::format("The communicator has no such member: its members are {}.\n", group.ranks().label(8));
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
