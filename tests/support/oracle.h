// The brute-force oracle: whom can one edit put right?
#pragma once

#include <vector>

#include "base/ids.h"
#include "tests/support/random_program.h"

namespace ddx::testing {

// The ranks for which one single edit of that rank's list (insert a call that others make, delete one, replace one,
// swap two neighbours; for a list that a stop cut short: go on as the others do) makes the lists of all ranks agree, so
// that a replay completes. Ascending; empty where the lists agree as they are. A case is decidable when it is one rank.
std::vector<RankId> single_edit_culprits(const CallLists& lists);

}  // namespace ddx::testing
