// `ddx predict --measured TABLE.csv`: what a table of the user's own runs says about scaling.
#pragma once

#include <string>

#include "cli/app.h"
#include "cli/commands/common_options.h"

namespace ddx::cli {

// Throws Error where the table cannot be read.
Exit judge_measured_table(const std::string& path, const CommonOptions& common, Console& console);

}  // namespace ddx::cli
