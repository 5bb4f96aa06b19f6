// Communicators themselves: one name with several member lists.
#pragma once

#include <vector>

#include "analyzers/match/job_view.h"

namespace ddx::analyzers {

// "group-disagree": one group name whose member lists differ and overlap. Disjoint lists of one name are legal: a split
// names all its parts alike.
std::vector<Finding> find_group_disagreements(const JobView& job);

}  // namespace ddx::analyzers
