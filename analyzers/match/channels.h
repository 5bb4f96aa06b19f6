// Channels: the sends and receives between two members of a group, in order of posting. The n-th send of a channel
// meets its n-th receive.
#pragma once

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
struct Channel {
  std::vector<Posted> sends, recvs;
};
using Channels = std::map<std::pair<std::uint32_t, std::uint32_t>, Channel>;  // by (source, destination) position

enum class Posts {
  issued,   // all that were posted: the n-th meet only where no beginning is lost
  pending,  // only what is not complete: all before it has met its partner
};

// Calls whose peer is not recorded or negative are left out.
Channels channels_of(const JobView& job, const GroupView& group, Posts which);

}  // namespace ddx::analyzers
