#include "analyzers/match/channels.h"

namespace ddx::analyzers {

Channels channels_of(const JobView& job, const GroupView& group, Posts which) {
  Channels channels;
  for (std::uint32_t i = 0; i < group.members.size(); ++i) {
    const MemberView& member = group.members[i];
    for (std::size_t k = 0; k < member.p2p_issued; ++k) {
      const std::uint32_t row = member.p2p[k];
      if (which == Posts::pending && !member.in_flight(row)) continue;
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
  return channels;
}

}  // namespace ddx::analyzers
