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

// What there is to say in place of a scaling where nothing ties the replicas together.
std::string_view untied_text();

// `quiet`: the first sentence, and what is to be doubted of it.
std::string scaling_text(const ScalingView& view, bool quiet);
// {"schema": "ddx.scaling/1", "mode", "timed_by", "replicas_tied", "rows": [...], "doubt", "assumed": [...]}; times in
// nanoseconds. Of a row, compute_ns, communication_ns, bubble_ns, idle_ns and unattributed_ns sum to step_ns;
// waiting_ns is a part of communication_ns, overlapped_ns of compute_ns; speedup and efficiency are null where replicas
// are not tied. "doubt": only where there is some.
std::string scaling_json(const ScalingView& view);

}  // namespace ddx::cli
