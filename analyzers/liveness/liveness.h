// Liveness as logs show it: which process ended first, who is silent, and what PyTorch's watchdog lines say.
#pragma once

#include <optional>
#include <vector>

#include "base/finding.h"
#include "base/rank_set.h"
#include "traces/model/evidence.h"

namespace ddx::analyzers {

// `dead-rank`: the first end of a process that is not itself the consequence of another. `inconclusive` where all ends
// only report that a peer went away.
std::vector<Finding> judge_process_ends(const Evidence& evidence);

// `inconclusive`: processes of the last attempt ended, all because of something that is not shown. For evidence from
// which nobody else draws a conclusion: a job that died is not clean.
std::optional<Finding> judge_unexplained_ends(const Evidence& evidence);

// `evidence-missing` for dump sets with holes, `lagging-rank` for a log that fell silent long before the time-outs.
std::vector<Finding> judge_absence(const Evidence& evidence);

// Time-outs of gloo, which blocks the host: `timeout`, or `lagging-rank` where one rank alone did not wait.
std::vector<Finding> judge_host_timeouts(const Evidence& evidence);

// `missing-ranks` that a library names by itself: the monitored barrier, the desync report, Horovod's stall check.
std::vector<Finding> judge_told_absent(const Evidence& evidence);

// From watchdog lines alone, per group: `mismatch-size`, `mismatch-type`, `rank-skipped`, `missing-ranks`,
// `stuck-device`, `stuck-in-collective`, `lagging-rank`, `timeout`, `timeout-short`.
std::vector<Finding> judge_watchdog(const Evidence& evidence);

}  // namespace ddx::analyzers
