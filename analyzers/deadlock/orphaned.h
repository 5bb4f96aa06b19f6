// What stands in a send or receive that nobody will ever meet (match/orphans.h).
#pragma once

#include <cstdint>
#include <vector>

#include "analyzers/match/orphans.h"
#include "analyzers/match/wait_graph.h"
#include "base/finding.h"

namespace ddx::analyzers {

// Those that some rank is in, or also those that none has come to yet.
enum class OrphansTold : std::uint8_t { standing, all };

// p2p-unmatched: one for a wrong peer that explains a call at either side, else one a call; many are put together.
// `graph`: who waits for whom otherwise.
std::vector<Finding> orphan_findings(const JobView& job, const WaitGraph& graph, const std::vector<Orphan>& orphans,
                                     OrphansTold told);

}  // namespace ddx::analyzers
