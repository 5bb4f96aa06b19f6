// `--recorded-on`: how much longer or shorter computations take on the GPU that a trace is predicted for than on the
// one that it was recorded on.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/cluster.h"
#include "traces/model/trace.h"

namespace ddx::cli {

struct ComputeOptions {
  std::string recorded_on;  // "A100", or a cluster whose GPU is meant; empty: what the trace says
  std::string arithmetic = "bf16";
  std::optional<double> intensity;  // operations a byte
};

std::vector<CLI::Option*> add_compute_options(CLI::App& app, ComputeOptions& options);

// Time on the cluster's GPU over time as recorded, by the roofline; 1 where neither the user nor the trace says on what
// it was recorded. What was taken for granted goes to `told`. `cluster`: absent where nothing is timed. Throws
// UsageError.
double compute_factor(const ComputeOptions& options, const Trace& trace, const std::optional<sim::Cluster>& cluster,
                      std::vector<std::string>& told);

}  // namespace ddx::cli
