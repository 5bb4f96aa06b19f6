// Programs that complete as they are and would not under another model of sends, groups or streams.
#pragma once

#include <vector>

#include "base/finding.h"
#include "sim/replay/reference_replay.h"
#include "traces/model/evidence.h"

namespace ddx::cli {

// `p2p-hazard`, one a model at the most. `programs` are whole programs, not yet run, that complete in the model that
// was `asked` for.
std::vector<Finding> find_hazards(const Evidence& programs, const sim::ReplayOptions& asked);

}  // namespace ddx::cli
