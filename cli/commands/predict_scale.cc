#include "cli/commands/predict_scale.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/counted.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/units.h"
#include "cli/commands/number_options.h"
#include "cli/commands/output_file.h"
#include "cli/commands/run_programs.h"
#include "cli/commands/sim_options.h"
#include "cli/report/scaling_plot.h"
#include "cli/report/scaling_rows.h"
#include "cli/report/sufficiency.h"
#include "sim/cluster/cluster_file.h"
#include "sim/cluster/describe.h"
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
      throw UsageError(
          fmt::format("--scale '{}': expected numbers of ranks from 1 to {} between commas, such as 8,16,64", text,
                      format_count(kMaxRanks)));
    }
    ranks.push_back(static_cast<std::uint32_t>(*number));
    at = comma + 1;
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

std::unique_ptr<sim::CostModel> costs_on(sim::Cluster cluster, const sim::Algorithm* algorithm, std::uint32_t ranks) {
  cluster.nodes = static_cast<std::uint32_t>(cluster.nodes_for(ranks));
  if (const std::string why = sim::lacks_network(cluster, ranks); !why.empty()) throw Error(why);
  return sim::cluster_costs(cluster, algorithm);
}

// Where somebody said how many nodes there are: that as many are taken as are needed.
void tell_nodes(const NetworkOptions& options, const sim::Cluster& cluster, std::uint32_t ranks,
                std::vector<std::string>& told) {
  const bool stated = cluster.nodes > 1 && cluster.nodes != cluster.domain_nodes;
  if (options.cluster.empty() || (!stated && options.cluster.find(':') == std::string::npos)) return;
  const std::uint64_t needed = cluster.nodes_for(ranks);
  if (needed <= cluster.nodes) return;
  told.push_back(fmt::format("{} fill {}, and --cluster {} has {}: as many are taken as are needed",
                             counted(ranks, "rank", "ranks"), counted(needed, "node", "nodes"), options.cluster,
                             format_count(cluster.nodes)));
}

void write_plot(const std::string& path, const ScalingView& view) {
  write_file(path, [&](std::ostream& file) { file << scaling_plot(view); });
}

// What a prediction can be made of. Throws Error.
void check_programs(const Evidence& evidence) {
  if (evidence.trace.ranks.empty()) throw Error("nothing to predict from: " + why_nothing(evidence));
  if (const std::string why = not_to_be_run(evidence); !why.empty()) throw Error("nothing can be predicted: " + why);
  if (const std::string why = why_broken(evidence); !why.empty()) {
    throw Error("nothing can be predicted from a part of a job: " + why);
  }
}

// What was lost besides is no basis either, and the answer holds without it.
void tell_losses(const Evidence& evidence, std::vector<std::string>& told) {
  for (const Diagnostic& diagnostic : evidence.diagnostics.entries()) {
    if (diagnostic.severity < DiagnosticSeverity::data_loss) continue;
    told.push_back(fmt::format("what was left out changes nothing: {} x {}: {}", format_count(diagnostic.count),
                               diagnostic.name, diagnostic.detail));
  }
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

// How many times the ranks of the trace there are to be, each once.
std::vector<std::uint32_t> factors_of(const std::vector<std::uint32_t>& scale, std::size_t recorded) {
  std::vector<std::uint32_t> factors;
  for (const std::uint32_t ranks : scale) {
    if (recorded > 0 && ranks >= recorded) factors.push_back(ranks / static_cast<std::uint32_t>(recorded));
  }
  return factors;
}

bool wants_svg(const CommonOptions& common) {
  return common.format == "svg" || (common.format == "text" && common.output.ends_with(".svg"));
}

std::string answer_of(const ScalingView& view, const CommonOptions& common) {
  if (wants_svg(common)) return scaling_plot(view);
  return common.format == "json" ? scaling_json(view) : scaling_text(view, common.quiet);
}

}  // namespace

void add_scale_options(CLI::App& app, ScaleOptions& options, FileOptions& files, CLI::Option* scale) {
  std::vector<CLI::Option*> all = add_network_options(app, options.network, files);
  all.front()->description("On nodes of this kind, as many as are needed: a preset or a file");
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
  all.insert(all.end(), compute.begin(), compute.end());
  all.insert(all.end(), {weak, strong, map, batch, plot});
  for (CLI::Option* option : all) option->needs(scale)->group("With --scale (--cluster or --flat must be there)");
  for (CLI::Option* flag : {weak, strong}) flag->option_text(" ");  // else the help says that it needs --scale
  files.outputs.push_back(plot);
}

Exit predict_scale(const ScaleOptions& options, const ReadOptions& read, const CommonOptions& common,
                   Console& console) {
  if (common.format != "text" && common.format != "json" && common.format != "svg") {
    throw UsageError("--scale gives figures and no findings: --format text, json or svg");
  }
  if (options.strong && options.weak) throw UsageError("--strong and --weak: give one");
  // What was typed is looked at before anything is read.
  const auto cluster = network_of(options.network);
  if (!cluster) throw UsageError("--scale needs a network: --cluster CLUSTER or --flat RATE,LATENCY");
  const sim::Algorithm* algorithm = algorithm_named(options.network.algorithm);
  sim::ScalingOptions scaling;
  scaling.ranks = scale_of(options.scale);
  Evidence evidence = read_evidence(read, common, console);
  check_programs(evidence);
  scaling.strong = options.strong;
  scaling.roles = role_map(options.map, evidence.trace);
  std::vector<std::string> told;
  const std::size_t recorded = evidence.trace.world_size.value_or(evidence.trace.ranks.size());
  static_cast<void>(costs_on(*cluster, algorithm, 1));  // refuses what does not go together
  algorithm = taken_algorithm(algorithm, evidence.trace, factors_of(scaling.ranks, recorded), told);
  scaling.costs = [&](std::uint32_t ranks) { return costs_on(*cluster, algorithm, ranks); };
  scaling.compute_factor = compute_factor(options.compute, evidence.trace, cluster, told);
  tell_losses(evidence, told);
  tell_nodes(options.network, *cluster, scaling.ranks.back(), told);
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
