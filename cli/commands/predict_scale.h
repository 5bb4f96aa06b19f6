// `ddx predict --scale`: a recorded job on other numbers of ranks.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands/common_options.h"
#include "cli/commands/compute_options.h"
#include "cli/commands/network_options.h"

namespace ddx::cli {

struct ScaleOptions {
  std::string scale;  // "8,16,64"
  bool strong = false;
  bool weak = false;
  std::vector<std::string> map;
  NetworkOptions network;
  ComputeOptions compute;
  std::optional<std::uint64_t> batch;  // of the recorded job
  std::string plot;                    // an SVG file
};

// Tells `files` which of them name files. All need `scale`, the option that has them count.
void add_scale_options(CLI::App& app, ScaleOptions& options, FileOptions& files, CLI::Option* scale);
// Throws UsageError, Error.
Exit predict_scale(const ScaleOptions& options, const ReadOptions& read, const CommonOptions& common, Console& console);

}  // namespace ddx::cli
