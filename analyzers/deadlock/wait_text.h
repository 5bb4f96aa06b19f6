// Words and sets that the analyzers of waits share.
#pragma once

#include <string>
#include <vector>

#include "analyzers/match/wait_graph.h"

namespace ddx::analyzers {

RankSet ranks_of(const WaitGraph& graph, const std::vector<std::uint32_t>& indices);
// All who wait for one of `culprits`, directly or through others.
RankSet victims_of(const WaitGraph& graph, const RankSet& culprits);
// "rank 3 waits", "ranks 0-2 wait".
std::string waits(const std::string& label);
// "rank 0 waits in all_reduce f32 x 8 (group a, seq 1) for rank 1".
std::string step_text(const JobView& job, const WaitGraph& graph, const Instance& instance, const RankSet& awaited);

}  // namespace ddx::analyzers
