// The network that `ddx sim` and `ddx predict --scale` time a job on, and the algorithm that its collectives are to
// take.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands/common_options.h"
#include "sim/cluster/cluster.h"
#include "sim/collectives/algorithm.h"
#include "traces/model/trace.h"

namespace ddx::cli {

struct NetworkOptions {
  std::string cluster;    // a file, "dgx-h100:8"
  std::string flat;       // "50GB/s,1us"
  std::string algorithm;  // "ring"

  bool given() const { return !cluster.empty() || !flat.empty(); }
};

// Tells `files` which of them name files.
std::vector<CLI::Option*> add_network_options(CLI::App& app, NetworkOptions& options, FileOptions& files);

// nullopt: none was asked for. Throws UsageError for what was typed, Error for a cluster file.
std::optional<sim::Cluster> network_of(const NetworkOptions& options);

// Null for no name. Throws UsageError with the names that there are.
const sim::Algorithm* algorithm_named(const std::string& name);

// `algorithm`, if at least one kind of collective in `trace` can take it, else null; what does not take it goes to
// `told`. `factors`: how many times as many members groups may come to have.
const sim::Algorithm* taken_algorithm(const sim::Algorithm* algorithm, const Trace& trace,
                                      const std::vector<std::uint32_t>& factors, std::vector<std::string>& told);

}  // namespace ddx::cli
