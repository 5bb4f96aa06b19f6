#include "analyzers/match/channels.h"

#include <algorithm>
#include <optional>

namespace ddx::analyzers {
namespace {

constexpr std::ptrdiff_t kFarthest = 64;  // how many sends may run ahead of their receives

std::optional<std::uint64_t> count_of(const Signature& s) { return s.count_in ? s.count_in : s.count_out; }

// Finds how the two lists of a channel meet where a ring has lost their beginnings.
class Aligner {
 public:
  Aligner(const JobView& job, const GroupView& group, Channel& channel) : job_(job), group_(group), channel_(channel) {}

  void run() {
    const auto first_send = first_in_flight(channel_.sends);
    const auto pending_meet = first_in_flight(channel_.recvs) - first_send;
    channel_.shift = pending_meet;
    // What is over speaks first; what is not may be the very fault.
    if (const auto pairs = agreeing(pending_meet, first_send)) {
      channel_.sure = *pairs > 0;
      if (channel_.sure) return;
    }
    channel_.sure = false;
    for (std::ptrdiff_t ahead = 1; ahead <= kFarthest; ++ahead) {
      for (const std::ptrdiff_t shift : {pending_meet + ahead, pending_meet - ahead}) {
        if (agreeing(shift, size(channel_.sends)).value_or(0) < 2) continue;
        channel_.shift = shift;
        channel_.sure = true;
        return;
      }
    }
  }

 private:
  static std::ptrdiff_t size(const std::vector<Posted>& list) { return static_cast<std::ptrdiff_t>(list.size()); }

  std::ptrdiff_t first_in_flight(const std::vector<Posted>& list) const {
    return std::find_if(list.begin(), list.end(),
                        [&](const Posted& call) { return group_.members[call.member].in_flight(call.row); }) -
           list.begin();
  }

  const Signature& signature(const Posted& call) const {
    return job_.trace->signature(group_.members[call.member].program->signature(call.row));
  }

  // How many pairs of sends before `end` meet at this shift, if all of them fit.
  std::optional<std::size_t> agreeing(std::ptrdiff_t shift, std::ptrdiff_t end) const {
    std::size_t pairs = 0;
    const std::ptrdiff_t last = std::min(end, size(channel_.recvs) - shift);
    for (std::ptrdiff_t i = std::max<std::ptrdiff_t>(0, -shift); i < last; ++i, ++pairs) {
      const Signature& send = signature(channel_.sends[static_cast<std::size_t>(i)]);
      if (!fit_together(send, signature(channel_.recvs[static_cast<std::size_t>(i + shift)]))) return std::nullopt;
    }
    return pairs;
  }

  const JobView& job_;
  const GroupView& group_;
  Channel& channel_;
};

bool beginning_lost(const MemberView* member) { return member && member->record && member->record->head_lost; }

}  // namespace

Channels channels_of(const JobView& job, const GroupView& group) {
  Channels channels;
  for (std::uint32_t i = 0; i < group.members.size(); ++i) {
    const MemberView& member = group.members[i];
    for (std::size_t k = 0; k < member.p2p_issued; ++k) {
      const std::uint32_t row = member.p2p[k];
      const Signature& s = job.trace->signature(member.program->signature(row));
      const auto peer = job.trace->peer(*member.record, s);
      if (!peer || *peer < 0) continue;
      const auto other = static_cast<std::uint32_t>(*peer);
      if (s.kind == OpKind::send) {
        channels[{member.position, other}].sends.push_back({i, row});
      } else {
        channels[{other, member.position}].recvs.push_back({i, row});
      }
    }
  }
  for (auto& [ends, channel] : channels) {
    const bool lost = beginning_lost(group.member_at(ends.first)) || beginning_lost(group.member_at(ends.second));
    if (lost) Aligner(job, group, channel).run();
  }
  return channels;
}

bool fit_together(const Signature& send, const Signature& recv) {
  const auto sent = count_of(send), expected = count_of(recv);
  if (sent && expected && *sent != *expected) return false;
  return send.type_in == DataType::unknown || recv.type_in == DataType::unknown || send.type_in == recv.type_in;
}

}  // namespace ddx::analyzers
