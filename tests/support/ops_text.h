// Evidence and snapshots from a few lines of the ops notation, so that a test shows its input.
#pragma once

#include <string>

#include "sim/replay/reference_replay.h"
#include "traces/model/evidence.h"

namespace ddx::testing {

// Reads ops text (docs/ops-notation.md). Throws Error.
Evidence evidence_of(const std::string& ops_text);
Trace trace_of(const std::string& ops_text);

// What the ranks would have recorded once all came to rest.
Trace snapshot_of(const std::string& ops_text, const sim::ReplayOptions& options = {});

// A trace as ops text.
std::string text_of(const Trace& trace);

}  // namespace ddx::testing
