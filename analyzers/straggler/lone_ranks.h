// Lone ranks: those of whom no other does the same, as the stages of a pipeline. Their own times compare
// only as a whole, and a stage that has more to do looks like a slow rank.
#pragma once

#include <optional>
#include <vector>

#include "analyzers/breakdown/breakdown.h"
#include "analyzers/match/job_view.h"
#include "base/finding.h"

namespace ddx::analyzers {

// Among at least three ranks with 32 timed calls or more each: the one that computes longer than the others, or, where
// not all tell their computations, that is outside of calls longer, by a seventh or more, and by far, if it is one of
// `lone` (the others compare better). Low confidence.
std::optional<Finding> judge_lone_ranks(const JobView& job, const std::vector<RankTime>& times, const RankSet& lone);

}  // namespace ddx::analyzers
