// Programs that complete as they are and would not under another model of sends, groups or streams.
#pragma once

#include <cstdint>
#include <vector>

#include "base/finding.h"
#include "traces/model/evidence.h"

namespace ddx::cli {

// `p2p-hazard`, one a model at the most. `programs` are whole programs, not yet run, that complete in the reference
// model; at most about `snapshot_ops` operations of all ranks are judged (ReplayOptions).
std::vector<Finding> find_hazards(const Evidence& programs, std::uint64_t snapshot_ops);

}  // namespace ddx::cli
