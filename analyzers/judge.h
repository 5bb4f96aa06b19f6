// From the findings of all analyzers to those that are told: one cause, one finding; causes before consequences.
#pragma once

#include <vector>

#include "base/finding.h"

namespace ddx::analyzers {

// Drops what a more specific or a more causal finding says already (docs/architecture.md), hands the victims of what is
// dropped on to its cause, and orders the rest: errors first, then warnings, then information.
std::vector<Finding> settle(std::vector<Finding> findings);

}  // namespace ddx::analyzers
