// A prediction of how a job scales, as a table for people and as JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "sim/predict/scaling.h"

namespace ddx::cli {

struct ScalingView {
  sim::ScalingTable table;
  bool strong = false;
  std::optional<std::uint64_t> batch;  // samples of a step of the recorded job
  std::size_t recorded = 0;            // its ranks
};

// Samples of a step on so many ranks; nullopt where the recorded job's are not known. Rounded to the nearest.
std::optional<std::uint64_t> batch_on(const ScalingView& view, std::uint32_t ranks);

std::string scaling_text(const ScalingView& view);
// {"schema": "ddx.scaling/1", "mode", "timed_by", "replicas_tied", "rows": [...], "assumed": [...]}; times in
// nanoseconds. Of a row, compute_ns, communication_ns, bubble_ns, idle_ns and unattributed_ns sum to step_ns.
std::string scaling_json(const ScalingView& view);

}  // namespace ddx::cli
