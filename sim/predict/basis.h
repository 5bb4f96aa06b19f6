// Whether a trace is a basis for a prediction at all.
#pragma once

#include "sim/replay/virtual_ranks.h"
#include "traces/model/trace.h"

namespace ddx::sim {

// What has to be taken for granted of times that the trace lacks: no computation in it.
// Throws Error (which rank, which operation) where it holds no operation, or a time that cannot be: a computation of
// less than nothing, an operation that ends before it starts.
Assumptions check_basis(const Trace& trace);

}  // namespace ddx::sim
