// What recorders would have left of a replayed job: ring buffers, absent ranks, no start times.
#pragma once

#include <cstdint>
#include <optional>

#include "base/rank_set.h"
#include "sim/replay/reference_replay.h"
#include "traces/model/trace.h"

namespace ddx::testing {

struct CutOptions {
  std::uint64_t seed = 1;
  // The ring of each rank holds between these many of its last calls, drawn per rank; absent: all.
  std::optional<std::uint32_t> ring_min, ring_max;
  RankSet without;                // ranks that left no dump
  bool dead_leave_dumps = false;  // ranks that crashed, raised or exited early leave one too
  bool timing = true;             // off: what had started shows as scheduled
  // As PyTorch's recorder has it: no reduction, root, tag, stream or split lists.
  bool recorder_fields = false;
};

// Keeps communication calls only, and of these the issued ones.
Trace cut(const sim::ReplayResult& result, const CutOptions& options = {});

}  // namespace ddx::testing
