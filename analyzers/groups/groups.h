// Communicators themselves: one name with several member lists, one communicator with several time-outs.
#pragma once

#include <cstdint>
#include <vector>

#include "analyzers/match/job_view.h"

namespace ddx::analyzers {

// "group-disagree": one group name whose member lists differ and overlap. Disjoint lists of one name are legal: a split
// names all its parts alike.
struct GroupDisagreement {
  Finding finding;
  std::vector<std::uint32_t> groups;  // indices into JobView::groups: who waits in these waits because of it
};

std::vector<GroupDisagreement> find_group_disagreements(const JobView& job);

// "timeout-short": members whose calls may take unlike times, by what their recorders hold (PyTorch's timeout_ms).
std::vector<Finding> find_unlike_limits(const JobView& job);

}  // namespace ddx::analyzers
