// Programs (an ops file) say what ranks would do, not how far they came: they are run to rest before they are judged.
#pragma once

#include <vector>

#include "base/finding.h"
#include "traces/model/evidence.h"

namespace ddx::cli {

// Replaces the trace by what a run of its programs comes to. Beside a real job's records programs are put aside, with a
// notice: what happened outweighs what was planned. Programs that cannot be run stay as they are and are counted
// ("replay.refused"); those of too many operations to hold are counted so and dropped. Returns what other models of
// sends and groups would come to where this one completes.
std::vector<Finding> run_programs(Evidence& evidence);

}  // namespace ddx::cli
