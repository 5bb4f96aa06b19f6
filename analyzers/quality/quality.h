// What is wrong with the recorded calls themselves, before anything is concluded from them.
#pragma once

#include <vector>

#include "base/finding.h"
#include "traces/model/evidence.h"

namespace ddx::analyzers {

// "empty-trace": recorders that hold no call at all; "trace-no-rank": records that no rank can be given to;
// "trace-unknown-op": calls of a kind that ddx does not know; "trace-time-skew": ends before starts.
std::vector<Finding> judge_trace_quality(const Evidence& evidence);

}  // namespace ddx::analyzers
