// What stands in a send or receive that nobody will ever meet (match/orphans.h).
#pragma once

#include <vector>

#include "analyzers/match/orphans.h"
#include "analyzers/match/wait_graph.h"
#include "base/finding.h"

namespace ddx::analyzers {

// p2p-unmatched, of the orphans that some rank is in: one for a wrong peer that explains a call at either side, else
// one a call; many are put together. `graph`: who waits for whom otherwise.
std::vector<Finding> orphan_findings(const JobView& job, const WaitGraph& graph, const std::vector<Orphan>& orphans);

}  // namespace ddx::analyzers
