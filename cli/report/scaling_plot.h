// A prediction of how a job scales, drawn: speed-up against the ideal, and where the time of a step goes.
#pragma once

#include <string>

#include "cli/report/scaling_rows.h"

namespace ddx::cli {

// An SVG document. Two pictures side by side over the same numbers of ranks; no scripts, nothing from elsewhere.
std::string scaling_plot(const ScalingView& view);

}  // namespace ddx::cli
