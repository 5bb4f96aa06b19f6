#include "cli/commands/predict_scale.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/ids.h"
#include "base/units.h"
#include "cli/commands/number_options.h"
#include "cli/commands/output_file.h"
#include "cli/commands/run_programs.h"
#include "cli/commands/sim_options.h"
#include "cli/report/scaling_plot.h"
#include "cli/report/scaling_rows.h"
#include "sim/cluster/cluster_file.h"
#include "sim/predict/scaling.h"
#include "sim/replay/cluster_costs.h"
#include "sim/replay/flat_costs.h"
#include "traces/formats/ops_text.h"

namespace ddx::cli {
namespace {

constexpr std::uint64_t kMostSamples = 1'000'000'000'000;  // times the most ranks they still are 64 bits

std::vector<std::uint32_t> scale_of(const std::string& text) {
  std::vector<std::uint32_t> ranks;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const auto number = formats::parse_unsigned(text.substr(at, comma - at));
    if (!number || *number == 0 || *number > kMaxRanks) {
      throw UsageError(fmt::format("--scale '{}': expected numbers of ranks between commas, such as 8,16,64", text));
    }
    ranks.push_back(static_cast<std::uint32_t>(*number));
    at = comma + 1;
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

// The cluster with as many nodes as so many ranks fill.
std::unique_ptr<sim::CostModel> costs_on(sim::Cluster cluster, const sim::Algorithm* algorithm, std::uint32_t ranks) {
  cluster.nodes = std::max(1U, (ranks + cluster.ranks_per_node - 1) / cluster.ranks_per_node);
  if (!cluster.flat && cluster.nodes > cluster.domain_nodes && cluster.network.bytes_per_second == 0) {
    throw Error(
        fmt::format("{} ranks need {} nodes, and {} says nothing of the network between nodes: expected 'network' "
                    "in the cluster file. What one node does says nothing of several",
                    ranks, cluster.nodes, cluster.name.empty() ? "the cluster" : cluster.name));
  }
  return sim::cluster_costs(cluster, algorithm);
}

void write_plot(const std::string& path, const ScalingView& view) {
  write_file(path, [&](std::ostream& file) { file << scaling_plot(view); });
}

// What a prediction can be made of. Throws Error.
void check_programs(const Evidence& evidence) {
  if (const std::string why = not_to_be_run(evidence); !why.empty()) throw Error(why);
}

// A step takes at least a sample on each replica.
void check_batch(const ScaleOptions& options, const std::vector<std::uint32_t>& scale, std::size_t recorded) {
  if (!options.batch || !options.strong || recorded == 0) return;
  const std::uint64_t replicas = scale.back() / recorded;
  if (replicas <= *options.batch) return;
  throw UsageError(
      fmt::format("--strong with --batch {}: {} ranks are {} replicas of the {} recorded, more than there are samples "
                  "in a step. Expected at most {} ranks",
                  *options.batch, format_count(scale.back()), format_count(replicas), format_count(recorded),
                  format_count(*options.batch * recorded)));
}

bool wants_svg(const CommonOptions& common) {
  return common.format == "svg" || (common.format == "text" && common.output.ends_with(".svg"));
}

std::string answer_of(const ScalingView& view, const CommonOptions& common) {
  if (wants_svg(common)) return scaling_plot(view);
  return common.format == "json" ? scaling_json(view) : scaling_text(view);
}

}  // namespace

void add_scale_options(CLI::App& app, ScaleOptions& options, FileOptions& files, CLI::Option* scale) {
  CLI::Option* cluster =
      app.add_option("--cluster", options.cluster, "On nodes of this kind, as many as are needed: a preset or a file")
          ->option_text("CLUSTER");
  CLI::Option* flat = app.add_option("--flat", options.flat, "On a flat network: a port of 50GB/s,1us for every rank")
                          ->option_text("RATE,LATENCY");
  CLI::Option* algorithm =
      app.add_option("--algorithm", options.algorithm, "Take this algorithm for the collectives that it can carry out")
          ->option_text("NAME");
  const std::vector<CLI::Option*> compute = add_compute_options(app, options.compute);
  CLI::Option* weak = app.add_flag("--weak", options.weak, "Each rank has as much to do as recorded (the default)");
  CLI::Option* strong =
      app.add_flag("--strong", options.strong, "The batch stays as it is: each rank has less to compute");
  CLI::Option* map = app.add_option("--map", options.map,
                                    "What a group is for: GROUP=data (it grows with the replicas) or GROUP=model")
                         ->option_text("GROUP=ROLE")
                         ->allow_extra_args(false);
  CLI::Option* batch = add_count(
      app, "--batch", {1, kMostSamples}, [&options](std::uint64_t samples) { options.batch = samples; },
      "Samples that the recorded job takes in a step");
  CLI::Option* plot =
      app.add_option("--plot", options.plot, "Draw it as well, into this file")->option_text("FILE.svg");
  for (CLI::Option* option : {cluster, flat, algorithm, weak, strong, map, batch, plot}) {
    option->needs(scale)->group("With --scale (--cluster or --flat must be there)");
  }
  for (CLI::Option* option : compute) option->needs(scale)->group("With --scale (--cluster or --flat must be there)");
  for (CLI::Option* flag : {weak, strong}) flag->option_text(" ");  // else the help says that it needs --scale
  files.inputs.push_back(cluster);
  files.outputs.push_back(plot);
}

Exit predict_scale(const ScaleOptions& options, const ReadOptions& read, const CommonOptions& common,
                   Console& console) {
  if (common.format != "text" && common.format != "json" && common.format != "svg") {
    throw UsageError("--scale gives figures and no findings: --format text, json or svg");
  }
  if (options.strong && options.weak) throw UsageError("--strong and --weak: give one");
  if (options.cluster.empty() == options.flat.empty()) {
    throw UsageError("--scale needs a network: --cluster CLUSTER or --flat RATE,LATENCY");
  }
  Evidence evidence = read_evidence(read, common, console);
  check_programs(evidence);
  const sim::Cluster cluster = options.flat.empty() ? sim::read_cluster(options.cluster) : sim::flat(options.flat);
  const sim::Algorithm* algorithm = algorithm_named(options.algorithm);
  sim::ScalingOptions scaling;
  scaling.ranks = scale_of(options.scale);
  scaling.strong = options.strong;
  scaling.roles = role_map(options.map);
  scaling.costs = [&](std::uint32_t ranks) { return costs_on(cluster, algorithm, ranks); };
  std::vector<std::string> told;
  scaling.compute_factor = compute_factor(options.compute, evidence.trace, cluster, told);
  const std::size_t recorded = evidence.trace.world_size.value_or(evidence.trace.ranks.size());
  check_batch(options, scaling.ranks, recorded);
  ScalingView view{sim::predict_scaling(evidence.trace, scaling), options.strong, options.batch, recorded};
  view.table.assumed.insert(view.table.assumed.end(), told.begin(), told.end());
  if (!options.plot.empty()) write_plot(options.plot, view);
  CommonOptions drawn = common;
  if (wants_svg(common)) drawn.format = "svg";
  write_output(answer_of(view, common), drawn, console);
  return Exit::fine;
}

}  // namespace ddx::cli
