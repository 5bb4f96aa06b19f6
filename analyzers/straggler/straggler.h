// Stragglers: ranks that the others wait for again and again (slow-rank), and nodes all of whose ranks are so
// (slow-node). docs/stragglers.md says by what, and when nobody is named.
#pragma once

#include <vector>

#include "base/finding.h"
#include "traces/model/evidence.h"

namespace ddx::analyzers {

std::vector<Finding> judge_stragglers(const Evidence& evidence);

}  // namespace ddx::analyzers
