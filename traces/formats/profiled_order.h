// Profiles of several ranks whose calls have no sequence numbers.
#pragma once

#include "traces/model/evidence.h"

namespace ddx::formats {

// Numbers the collectives of each group from 1 in the order of their issue, where the profiles (Kineto, host traces) of
// at least two of its ranks hold as many of the same kinds in the same order, and none has a number: all profiles show
// the same steps then. Counts "kineto.matched_by_order", and "kineto.not_matched" where they do not agree. Call it once
// all files are read.
void number_profiled_calls(Evidence& evidence);

}  // namespace ddx::formats
