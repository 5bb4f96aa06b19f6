// Judgement of one circle of ranks that wait for each other.
#pragma once

#include <vector>

#include "analyzers/match/call_key.h"
#include "analyzers/match/wait_graph.h"

namespace ddx::analyzers {

// `set`: a strongly connected set of ranks of `graph`.
Finding cycle_finding(const JobView& job, const CallKeys& keys, const WaitGraph& graph,
                      const std::vector<std::uint32_t>& set);

}  // namespace ddx::analyzers
