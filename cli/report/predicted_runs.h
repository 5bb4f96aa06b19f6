// What collective benchmarks are predicted to take.
#pragma once

#include <string>
#include <vector>

#include "sim/calibrate/runs.h"

namespace ddx::cli {

// {"runs": [{"id", "predicted_time_us": [a number or null for each row]}]}; "unknown" says why a run has none.
std::string predicted_runs_json(const std::vector<sim::CollectiveRun>& runs);

// A table a run; quiet: one line a run; verbose: also every algorithm that NCCL had to choose from.
std::string predicted_runs_text(const std::vector<sim::CollectiveRun>& runs, bool quiet, bool verbose);

}  // namespace ddx::cli
