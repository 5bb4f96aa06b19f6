// Ranks of which their whole program says that they stop in it, with nobody waiting for them.
#pragma once

#include <vector>

#include "analyzers/match/job_view.h"

namespace ddx::analyzers {

// `dead-rank` for those that crash or raise, `stuck-host` for those that never go on. Programs only (an ops file): of
// dumps nothing of the kind is known. For jobs in which no call shows what the stop led to.
std::vector<Finding> find_stopped(const JobView& job);

}  // namespace ddx::analyzers
