// Judgement where somebody waits and nobody is known to be missing.
#pragma once

#include <vector>

#include "analyzers/match/call_key.h"
#include "analyzers/match/wait_graph.h"

namespace ddx::analyzers {

// Findings: ranks without evidence that alone could be the cause; a circle in the order in which devices run what was
// enqueued; a device that did not start what others started; or an operation that all entered and that does not end.
std::vector<Finding> judge_without_missing(const JobView& job, const CallKeys& keys, const WaitGraph& graph);

}  // namespace ddx::analyzers
