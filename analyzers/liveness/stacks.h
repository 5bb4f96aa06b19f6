// What the stacks of hosts show where no recorder does: sends and receives that wait for each other.
#pragma once

#include <vector>

#include "base/finding.h"
#include "traces/model/evidence.h"

namespace ddx::analyzers {

// `p2p-cycle` where every rank of the job waits in a receive; `inconclusive` where some wait in sends and receives and
// no dump records them.
std::vector<Finding> judge_stacks(const Evidence& evidence);

}  // namespace ddx::analyzers
