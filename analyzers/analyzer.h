// Analyzer: a pure function from evidence to findings. The list of all of them is registry.cc.
#pragma once

#include <string_view>
#include <vector>

#include "base/finding.h"
#include "traces/model/evidence.h"

namespace ddx::analyzers {

struct Analyzer {
  std::string_view name;
  std::vector<Finding> (*run)(const Evidence& evidence);
};

const std::vector<Analyzer>& analyzers();

// Runs all of them, keeps one finding for one cause (docs/architecture.md, "Causes before consequences"), and orders
// what is left: errors first, causes before consequences.
std::vector<Finding> analyze(const Evidence& evidence);

}  // namespace ddx::analyzers
