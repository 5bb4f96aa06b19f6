// Programs that are to be run together: whether they are those of one job.
#pragma once

#include <vector>

#include "base/finding.h"
#include "traces/model/evidence.h"

namespace ddx::analyzers {

// What keeps the records from being run together: two claim one rank (`rank-duplicate`), files state unlike worlds
// (`world-size-disagree`), a rank lies outside the world (`rank-range`). Records of one rank by two backends, or of two
// attempts, are no two claims.
std::vector<Finding> find_conflicts(const Evidence& evidence);

// Ranks of the world (stated, or up to the highest recorded one) and of the groups that have no record:
// `rank-missing`, an error where a recorded call needs them, with the first such call and who waits in it; else a
// warning.
std::vector<Finding> find_gaps(const Evidence& evidence);

}  // namespace ddx::analyzers
