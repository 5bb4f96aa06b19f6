// Dumps of an earlier run of the job that lie among those of the last one, told by their clocks.
#pragma once

#include "analyzers/match/job_view.h"

namespace ddx::analyzers {

// Ranks whose record has a call complete long before another member issued the same one: no run of a job does that, so
// theirs is an earlier one (or their clocks are minutes apart). Empty where times are not recorded.
RankSet ranks_of_earlier_run(const JobView& job);

}  // namespace ddx::analyzers
