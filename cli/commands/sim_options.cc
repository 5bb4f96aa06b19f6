#include "cli/commands/sim_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/units.h"
#include "cli/closest.h"
#include "cli/commands/common_options.h"
#include "cli/commands/number_options.h"
#include "sim/cluster/cluster_file.h"
#include "sim/cluster/describe.h"
#include "sim/replay/cluster_costs.h"
#include "sim/replay/step_costs.h"
#include "traces/formats/ops_text.h"

namespace ddx::cli {
namespace {

[[noreturn]] void bad_injection(const std::string& text, std::string_view why) {
  throw UsageError(fmt::format(
      "--inject '{}': {}. Expected FAULT@RANK:OP, with FAULT one of skip, duplicate, swap, resize[=COUNT], retype, "
      "reroot[=POSITION], kill, delay[=TIME], and OP a number from 0 in the rank's list, or GROUP/SEQ",
      text, why));
}

constexpr double kMostTimes = 4000;  // so long may a computation get: in millionths it is 32 bits

void add_program_options(CLI::App& app, SimOptions& options) {
  CLI::Option* world = add_count(
      app, "--world-size", {1, kMaxRanks},
      [&options](std::uint64_t ranks) { options.world_size = static_cast<std::uint32_t>(ranks); },
      "Lay the trace over so many ranks, by replicas");
  CLI::Option* map =
      app.add_option("--map", options.map,
                     "With --world-size: what a group is for, GROUP=data (it grows with the replicas) or GROUP=model")
          ->option_text("GROUP=ROLE")
          ->allow_extra_args(false)
          ->needs(world);
  CLI::Option* inject =
      app.add_option("--inject", options.injections,
                     "Put a fault into the programs: skip, duplicate, swap, resize, retype, reroot, kill, delay")
          ->option_text("FAULT@RANK:OP")
          ->allow_extra_args(false);
  for (CLI::Option* option : {world, map, inject}) option->group("More ranks, and faults");
}

void add_model_options(CLI::App& app, SimOptions& options) {
  const std::string group = "How calls behave (as the trace says, unless)";
  app.add_flag("--blocking", options.blocking, "Every call blocks until it is complete")->group(group);
  app.add_flag("--streams", options.streams, "Every call returns at once and runs in order on its stream, as with NCCL")
      ->group(group);
  app.add_flag("--strict-groups", options.strict_groups, "What is posted together starts only once all partners can")
      ->group(group);
  add_count(
      app, "--eager", {}, [&options](std::uint64_t bytes) { options.eager = bytes; },
      "Sends of up to so many bytes complete without their receive")
      ->option_text("BYTES")
      ->group(group);
}

void add_time_options(CLI::App& app, SimOptions& options, FileOptions& files) {
  std::vector<CLI::Option*> network = add_network_options(app, options.network, files);
  network.front()->description("Time it on this cluster: a preset with its nodes (dgx-h100:8), or a file");
  network.push_back(
      app.add_option("--detail", options.detail, "Simulate collectives message by message, not by their closed forms")
          ->check(CLI::IsMember({"steps"}))
          ->option_text("steps"));
  for (CLI::Option* option : network) option->group("How long it takes");
  for (CLI::Option* option : add_compute_options(app, options.compute)) option->group("How long it takes");
  CLI::Option* scale = add_amount(app, "--compute-scale", options.compute_scale, kMostTimes,
                                  "Computations take so many times as long as recorded");
  CLI::Option* slow =
      app.add_option("--slow", options.slow, "Computations of one rank take so many times as long: 3=1.5")
          ->option_text("RANK=X")
          ->allow_extra_args(false);
  CLI::Option* noise = add_amount(app, "--noise", options.noise, 100,
                                  "Computations vary by so many percent (standard deviation), each by itself")
                           ->option_text("PERCENT");
  CLI::Option* seed = add_count(
                          app, "--seed", {}, [&options](std::uint64_t number) { options.seed = number; },
                          "Of the noise: the same seed gives the same times")
                          ->needs(noise);
  CLI::Option* timeline =
      app.add_option("--timeline", options.timeline,
                     "Write what every rank does, and with a network when, into this file for Perfetto")
          ->option_text("FILE.json");
  files.outputs.push_back(timeline);
  for (CLI::Option* option : {scale, slow, noise, seed, timeline}) option->group("How long it takes");
}

}  // namespace

// Each option's place in the help, and what it needs beside it.
void add_sim_options(CLI::App& app, SimOptions& options, FileOptions& files) {
  add_program_options(app, options);
  add_model_options(app, options);
  add_time_options(app, options, files);
}

namespace {

// Names of groups, and descriptions where those say more, each once.
std::vector<std::string> group_names(const Trace& trace) {
  std::vector<std::string> names;
  for (const Communicator& communicator : trace.communicators()) {
    for (const std::string_view text : {trace.text(communicator.name), trace.text(communicator.description)}) {
      if (!text.empty() && std::find(names.begin(), names.end(), text) == names.end()) names.emplace_back(text);
    }
  }
  return names;
}

void check_group(const std::string& text, const std::string& name, const Trace& trace) {
  const auto& groups = trace.communicators();
  if (std::any_of(groups.begin(), groups.end(),
                  [&](const Communicator& communicator) { return sim::is_named(trace, communicator, name); })) {
    return;
  }
  constexpr std::size_t kShown = 8;
  std::vector<std::string> names = group_names(trace);
  const std::vector<std::string> near = closest(name, names);
  const std::size_t more = names.size() - std::min(names.size(), kShown);
  names.resize(names.size() - more);
  std::string there = names.empty() ? "the trace has no group" : fmt::format("groups are {}", fmt::join(names, ", "));
  if (more > 0) there += fmt::format(" and {} more", more);
  throw UsageError(fmt::format("--map '{}': there is no group '{}'; {}{}", text, name, there,
                               near.empty() ? "" : ". Did you mean: " + near.front()));
}

}  // namespace

sim::RoleMap role_map(const std::vector<std::string>& map, const Trace& trace) {
  sim::RoleMap roles;
  for (const std::string& text : map) {
    const auto at = text.rfind('=');  // a group's name may have one
    const std::string role = at == std::string::npos ? "" : text.substr(at + 1);
    if (at == 0 || at == std::string::npos || (role != "data" && role != "model")) {
      const std::string why = at == std::string::npos || at == 0 ? "" : fmt::format("there is no role '{}'; ", role);
      throw UsageError(fmt::format(
          "--map '{}': {}expected GROUP=data (it grows with the replicas) or GROUP=model (each replica has its own)",
          text, why));
    }
    check_group(text, text.substr(0, at), trace);
    roles.by_name[text.substr(0, at)] = role == "data" ? sim::GroupRole::data : sim::GroupRole::model;
  }
  return roles;
}

sim::Injection injection(const std::string& text) {
  sim::Injection made;
  const auto at = text.find('@');
  const auto colon = text.find(':', at == std::string::npos ? 0 : at);
  if (at == std::string::npos || colon == std::string::npos) bad_injection(text, "it does not say where");
  const std::string head = text.substr(0, at), rank = text.substr(at + 1, colon - at - 1),
                    place = text.substr(colon + 1);
  const auto equals = head.find('=');
  const std::string value = equals == std::string::npos ? "" : head.substr(equals + 1);
  const auto fault = sim::injected_fault_from(head.substr(0, equals));
  if (!fault) bad_injection(text, fmt::format("there is no fault '{}'", head.substr(0, equals)));
  made.fault = *fault;
  const auto number_of_rank = formats::parse_unsigned(rank);
  if (!number_of_rank || *number_of_rank > INT32_MAX) bad_injection(text, fmt::format("'{}' is no rank", rank));
  made.rank = RankId(static_cast<std::int64_t>(*number_of_rank));
  const auto slash = place.rfind('/');
  if (slash != std::string::npos) made.place.group = place.substr(0, slash);
  const auto index = formats::parse_unsigned(slash == std::string::npos ? place : place.substr(slash + 1));
  if (!index) bad_injection(text, fmt::format("'{}' is no operation", place));
  made.place.index = *index;
  if (equals == std::string::npos) return made;
  if (made.fault == sim::InjectedFault::delay) {
    made.delay = formats::parse_ops_duration(value);
    if (!made.delay) bad_injection(text, fmt::format("'{}' is no time, such as 2ms", value));
  } else {
    made.value = formats::parse_unsigned(value);
    if (!made.value) bad_injection(text, fmt::format("'{}' is no number", value));
  }
  return made;
}

namespace {

void check_places(const sim::Cluster& cluster, const Trace& trace) {
  std::int64_t last = -1;
  for (const RankRecord& record : trace.ranks) {
    if (record.rank) last = std::max<std::int64_t>(last, record.rank->value);
  }
  if (last < static_cast<std::int64_t>(cluster.ranks())) return;
  const auto ranks = static_cast<std::uint64_t>(last) + 1;
  if (const std::string why = sim::lacks_network(cluster, ranks); !why.empty()) throw Error(why);
  throw UsageError(fmt::format("the cluster has {} ({} of {}) and the programs have a rank {}: give it {} nodes",
                               counted(cluster.ranks(), "place", "places"), counted(cluster.nodes, "node", "nodes"),
                               cluster.ranks_per_node, last, cluster.nodes_for(ranks)));
}

}  // namespace

std::optional<sim::Cluster> cluster_of(const SimOptions& options, const Trace& trace) {
  std::optional<sim::Cluster> cluster = network_of(options.network);
  if (cluster && !cluster->flat) check_places(*cluster, trace);
  return cluster;
}

std::unique_ptr<sim::CostModel> cost_model(const SimOptions& options, const std::optional<sim::Cluster>& cluster,
                                           const Trace& trace, std::vector<std::string>& told) {
  const sim::Algorithm* algorithm = algorithm_named(options.network.algorithm);
  const bool steps = !options.detail.empty();
  if (cluster) {
    const auto costs = [&](const sim::Algorithm* takes) {
      return steps ? sim::step_costs(*cluster, takes) : sim::cluster_costs(*cluster, takes);
    };
    auto asked = costs(algorithm);
    const sim::Algorithm* taken = taken_algorithm(algorithm, trace, {}, told);
    return taken == algorithm ? std::move(asked) : costs(taken);
  }
  if (algorithm != nullptr || steps) {
    throw UsageError("--algorithm and --detail need a network: --flat RATE,LATENCY or --cluster CLUSTER");
  }
  if (options.compute_scale != 1 || options.noise > 0 || !options.slow.empty()) {
    throw UsageError(
        "--compute-scale, --slow and --noise change times, and without a network there are none: add --flat "
        "RATE,LATENCY or --cluster CLUSTER");
  }
  return nullptr;
}

namespace {

constexpr double kMillion = 1e6;
constexpr std::uint64_t kMostOps = 120'000'000;  // of all classes of ranks: 3 GB with times

// "3=1.5".
std::pair<RankId, double> slow_rank(const std::string& text) {
  const auto at = text.find('=');
  const auto rank = formats::parse_unsigned(text.substr(0, at));
  const auto factor = at == std::string::npos ? std::nullopt : parse_decimal(text.substr(at + 1));
  if (!rank || *rank > INT32_MAX || !factor || *factor < 0 || *factor > kMostTimes) {
    throw UsageError(fmt::format("--slow '{}': expected RANK=X, with X a number from 0 to {:g}", text, kMostTimes));
  }
  return {RankId(static_cast<std::int64_t>(*rank)), *factor};
}

}  // namespace

sim::ReplayOptions replay_options(const SimOptions& options, const Trace& trace, const sim::CostModel* costs) {
  sim::ReplayOptions replay;
  replay.max_ops = kMostOps;
  replay.blocking = options.blocking;
  replay.stream_ordered = options.streams;
  replay.strict_groups = options.strict_groups;
  replay.eager_up_to = options.eager;
  replay.rendezvous = options.eager.has_value();  // which of them end locally is asked for
  replay.timing.costs = costs;
  replay.timing.noise_ppm = static_cast<std::uint32_t>(std::lround(options.noise * kMillion / 100));
  replay.timing.seed = options.seed;
  if (options.compute_scale == 1 && options.slow.empty()) return replay;
  if (options.compute_scale > 4000) {
    throw UsageError(
        fmt::format("computations would take {:.3g} times as long as recorded; expected at most 4,000 times",
                    options.compute_scale));
  }
  const auto factor_of = [](double times) {
    return static_cast<std::uint64_t>(std::round(times * static_cast<double>(sim::kWholeLength)));
  };
  auto& factors = replay.timing.compute_factors;
  factors.assign(trace.ranks.size(), factor_of(options.compute_scale));
  for (const std::string& text : options.slow) {
    const auto [rank, slower] = slow_rank(text);
    const auto at = std::find_if(trace.ranks.begin(), trace.ranks.end(),
                                 [&, wanted = rank](const RankRecord& record) { return record.rank == wanted; });
    if (at == trace.ranks.end()) throw UsageError(fmt::format("--slow '{}': there is no such rank", text));
    factors[static_cast<std::size_t>(at - trace.ranks.begin())] =
        factor_of(std::min(kMostTimes, options.compute_scale * slower));
  }
  return replay;
}

}  // namespace ddx::cli
