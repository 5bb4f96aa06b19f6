// Judgement of what the ranks called: dumps, op lists, NCCL call logs.
#pragma once

#include <vector>

#include "base/finding.h"
#include "traces/model/evidence.h"

namespace ddx::analyzers {

std::vector<Finding> judge_snapshot(const Evidence& evidence);

}  // namespace ddx::analyzers
