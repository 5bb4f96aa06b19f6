// What `ddx sim` may be asked for: how many ranks, which faults, which network, and how their texts are read.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands/common_options.h"
#include "cli/commands/compute_options.h"
#include "cli/commands/network_options.h"
#include "sim/replay/injection.h"
#include "sim/replay/reference_replay.h"
#include "sim/replay/timing.h"
#include "sim/replay/virtual_ranks.h"

namespace ddx::cli {

struct SimOptions {
  std::optional<std::uint32_t> world_size;
  std::vector<std::string> map;         // "dp=data", "tp=model"
  std::vector<std::string> injections;  // "skip@3:812"
  bool blocking = false;
  bool streams = false;
  bool strict_groups = false;
  std::optional<std::uint64_t> eager;
  NetworkOptions network;
  std::string detail;  // "steps"
  ComputeOptions compute;
  double compute_scale = 1;
  std::vector<std::string> slow;  // "3=1.5"
  double noise = 0;               // of computations, in percent
  std::uint64_t seed = 1;
  std::string timeline;  // a file to write
};

// Tells `files` which of them name files.
void add_sim_options(CLI::App& app, SimOptions& options, FileOptions& files);

// "tp=model". Throws UsageError with what was expected, or with the groups of `trace` where it has none of that name.
sim::RoleMap role_map(const std::vector<std::string>& map, const Trace& trace);
// "skip@3:812", "resize=0@3:pg0/812" (collective 812 of group pg0), "delay=2ms@3:812". Throws UsageError.
sim::Injection injection(const std::string& text);

// The network that was asked for, with places for all ranks of `trace`. Throws UsageError, and Error where these need a
// network between nodes that there is no figure for.
std::optional<sim::Cluster> cluster_of(const SimOptions& options, const Trace& trace);
// What prices operations on it; null where there is none. What of the options does nothing for `trace` goes to `told`.
// Throws UsageError, Error.
std::unique_ptr<sim::CostModel> cost_model(const SimOptions& options, const std::optional<sim::Cluster>& cluster,
                                           const Trace& trace, std::vector<std::string>& told);
sim::ReplayOptions replay_options(const SimOptions& options, const Trace& trace, const sim::CostModel* costs);

}  // namespace ddx::cli
