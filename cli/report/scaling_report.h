// What `ddx predict --measured` prints beside the findings: the table of sizes.
#pragma once

#include <string>

#include "analyzers/scaling/scaling.h"
#include "cli/report/reporter.h"

namespace ddx::cli {

// One line a size (or a collective), the columns that the table has figures for.
std::string scaling_table_text(const analyzers::ScalingAnswer& answer);

// The report as "ddx.report/1", with the rows as its list "scaling".
std::string render_scaling_json(const Report& report, const analyzers::ScalingAnswer& answer);

}  // namespace ddx::cli
