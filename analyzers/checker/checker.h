// What checkers say, judged with care for the checker: PyTorch's collective wrapper, NCCL RAS, idle notices, NaN
// checks.
#pragma once

#include <vector>

#include "base/finding.h"
#include "traces/model/evidence.h"

namespace ddx::analyzers {

// ProcessGroupWrapper's mismatches: `mismatch-type`, `mismatch-size`, `mismatch-dtype`, `rank-skipped`,
// `checker-suspect`, `inconclusive`.
std::vector<Finding> judge_wrapper(const Evidence& evidence);

// NCCL RAS reports: `dead-rank`, `missing-ranks`, `lagging-rank`, `init-hang`, `inconclusive`.
std::vector<Finding> judge_ras(const Evidence& evidence);

// `no-fault`: lines that look like a hang and are none.
std::vector<Finding> judge_idle(const Evidence& evidence);

// `nan-values`.
std::vector<Finding> judge_nan(const Evidence& evidence);

}  // namespace ddx::analyzers
