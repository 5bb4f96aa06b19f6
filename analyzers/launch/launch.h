// How the job was started, as its logs show it: who met at the store, which communicators were made of whom, on which
// devices.
#pragma once

#include <vector>

#include "base/finding.h"
#include "traces/model/evidence.h"

namespace ddx::analyzers {

// The store barrier's numbers: `rank-missing`, `group-create`, `rank-range`, `launch-double`, `stale-store`,
// `partial-restart`, `world-size-disagree`.
std::vector<Finding> judge_store_barrier(const Evidence& evidence);

// One job that became several: `launch-split`.
std::vector<Finding> judge_worlds(const Evidence& evidence);

// NCCL's INIT lines: `rank-duplicate`, `world-size-disagree`, `init-hang`, `split-mismatch`, `rank-range`; and dumps
// that claim one rank or disagree on the world.
std::vector<Finding> judge_identity(const Evidence& evidence);

// Which GPU: `device-duplicate`, `barrier-device`.
std::vector<Finding> judge_devices(const Evidence& evidence);

}  // namespace ddx::analyzers
