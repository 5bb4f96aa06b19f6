// Channels: the sends and receives between two members of a group, in order of posting. The n-th send of a channel
// meets its n-th receive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "analyzers/match/job_view.h"

namespace ddx::analyzers {

struct Posted {
  std::uint32_t member = 0;  // index into GroupView::members
  std::uint32_t row = 0;     // of its program
};

// What was posted and is retained. Rings lose the beginnings, each end another length of it, so the lists meet at a
// shift: sends[i] meets recvs[i + shift].
struct Channel {
  std::vector<Posted> sends, recvs;
  std::ptrdiff_t shift = 0;
  // No beginning is lost, or calls that are over show how the lists meet. Else the shift is a guess: what is not over
  // is taken to meet in order. A backend that sends small messages ahead of their receive (NCCL) breaks that.
  bool sure = true;
};
using Channels = std::map<std::pair<std::uint32_t, std::uint32_t>, Channel>;  // by (source, destination) position

// All that was issued. Calls whose peer is not recorded or negative are left out.
Channels channels_of(const JobView& job, const GroupView& group);

// A send and a receive that say nothing against each other: neither count nor datatype differ where both are recorded.
bool fit_together(const Signature& send, const Signature& recv);

// The call that meets the i-th send (or receive): its index in the other list. Negative: posted, and lost since;
// beyond the list's end: not posted.
inline std::ptrdiff_t recv_of(const Channel& channel, std::size_t send) {
  return static_cast<std::ptrdiff_t>(send) + channel.shift;
}
inline std::ptrdiff_t send_of(const Channel& channel, std::size_t recv) {
  return static_cast<std::ptrdiff_t>(recv) - channel.shift;
}

}  // namespace ddx::analyzers
