// Sends and receives: pairs that do not fit, tags that cross, peers that are no members.
#pragma once

#include <vector>

#include "analyzers/match/job_view.h"

namespace ddx::analyzers {

// Matched pairs with different count or datatype ("p2p-size"), or with tags that only a backend with tags would pair
// this way ("p2p-tag-order"). The n-th send of (group, source, destination) meets the n-th receive.
std::vector<Finding> find_bad_pairs(const JobView& job);

// Roots and peers outside the communicator ("peer-range").
std::vector<Finding> find_bad_peers(const JobView& job);

}  // namespace ddx::analyzers
