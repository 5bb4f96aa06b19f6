// Who is slow where no calls compare one by one: from how long the calls of each kind took, alone.
#pragma once

#include <optional>

#include "analyzers/match/job_view.h"
#include "base/finding.h"

namespace ddx::analyzers {

// Of calls that end together on all ranks the slow rank's are the shortest: it comes last and waits least. Of work
// between calls (compute) the slow rank's is the longest. One value a rank: the median over its calls of one kind and
// size. It must stand apart from at least five others, and cost a tenth of the time. Low confidence.
std::optional<Finding> judge_durations(const JobView& job);

}  // namespace ddx::analyzers
