// Tables that users keep of their runs: CSV (also with semicolons or tabs), a header and one row a run. docs/scaling.md
// lists the columns.
#pragma once

#include <string>
#include <string_view>

#include "base/diagnostics.h"
#include "traces/model/scaling_table.h"

namespace ddx::formats {

// Sizes: gpus (ranks, world_size ...), or nodes and gpus_per_node. Values: a rate (images_per_s, tokens/s/gpu ...), the
// time of a step (step_ms, s_per_iter ...) or of the whole work (minutes, epoch_s ...). Or collectives: op, ranks,
// bytes, time_us. Rows that cannot be used are counted in `diagnostics`. Throws Error where the header has no size or
// no value, or no row is left.
ScalingTable read_scaling_table(const std::string& path, std::string_view bytes, Diagnostics& diagnostics);

}  // namespace ddx::formats
