#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "analyzers/launch/trace_set.h"
#include "base/error.h"
#include "cli/commands/collective_choices.h"
#include "cli/commands/common_options.h"
#include "cli/commands/output_file.h"
#include "cli/commands/registry.h"
#include "cli/commands/run_programs.h"
#include "cli/commands/sim_options.h"
#include "cli/report/sufficiency.h"
#include "sim/cluster/cluster_file.h"
#include "sim/cluster/describe.h"
#include "sim/predict/basis.h"
#include "sim/replay/assumed_groups.h"
#include "sim/replay/recorded_programs.h"
#include "traces/formats/ops.h"
#include "traces/formats/perfetto_writer.h"

namespace ddx::cli {
namespace {

struct Options {
  CommonOptions common;
  ReadOptions read;
  SimOptions sim;
  std::string describe;  // a cluster
};

void lay_and_inject(const SimOptions& options, Trace& trace, std::vector<std::string>& told) {
  // Where nothing could be read, that is the answer, and not that there is nothing to lay over ranks.
  if (trace.ranks.empty()) return;
  if (options.world_size) {
    const sim::RoleMap roles = role_map(options.map, trace);
    for (auto& sentence : sim::lift(trace)) told.push_back(std::move(sentence));
    for (auto& sentence : sim::replicate(trace, *options.world_size, roles)) told.push_back(std::move(sentence));
    sim::state_world(trace);
  }
  for (const std::string& text : options.injections) {
    const sim::Injection fault = injection(text);
    const bool unseen = fault.fault == sim::InjectedFault::delay && !options.network.given();
    told.push_back(sim::inject(trace, fault) +
                   (unseen ? " (--inject), which shows in times alone: --flat or --cluster tell them" : " (--inject)"));
  }
}

// Lays the programs over the ranks that were asked for, and puts the faults in. What was assumed and done is in the
// assumptions.
sim::Recorded prepare_programs(const SimOptions& options, Trace& trace) {
  sim::Recorded recorded = sim::take_recorded(trace);
  lay_and_inject(options, trace, recorded.assumed);
  for (auto& sentence : sim::assumed_groups(trace)) recorded.assumed.push_back(std::move(sentence));
  return recorded;
}

// Ranks with the same times are told together; those that end last come first.
std::vector<Simulation::Totals> rank_totals(const Trace& snapshot, const sim::ReplayResult& result, Nanos whole) {
  using Key = std::tuple<Nanos, Nanos, Nanos, Nanos, Nanos, Nanos, Nanos>;
  std::map<Key, std::vector<RankId>, std::greater<>> kinds;
  for (std::size_t i = 0; i < snapshot.ranks.size(); ++i) {
    const sim::TimeShares& shares = result.shares[i];
    // Rounded down, so that what is left over is never less than nothing.
    const Key key{sim::to_nanos(result.rank_end[i]),         shares.compute / sim::kPicosPerNano,
                  shares.communication / sim::kPicosPerNano, shares.bubble / sim::kPicosPerNano,
                  shares.unattributed / sim::kPicosPerNano,  shares.waiting / sim::kPicosPerNano,
                  shares.overlapped / sim::kPicosPerNano};
    kinds[key].push_back(*snapshot.ranks[i].rank);
  }
  std::vector<Simulation::Totals> totals;
  for (auto& [key, ranks] : kinds) {
    const auto& [end, compute, communication, bubble, unattributed, waiting, overlapped] = key;
    // What rounding leaves is idle.
    const Nanos idle = whole - compute - communication - bubble - unattributed;
    totals.push_back(
        {RankSet(std::move(ranks)), end, compute, communication, bubble, idle, unattributed, waiting, overlapped});
  }
  return totals;
}

// Where nothing else says why ranks do not end: that they do not, and who waits for whom.
Finding stall(const sim::ReplayResult& result) {
  Finding f;
  f.code = "sim-stall";
  f.confidence = Confidence::high;
  f.victims = result.unfinished;
  f.summary = fmt::format("the programs do not run to their end: {}", result.reason);
  f.explanation =
      "Nothing is left that could go on, and these ranks are not done. Whether one of them is at fault the programs do "
      "not tell.\n";
  f.advice = "Compare who is a member of the group with who makes the call.";
  return f;
}

bool stands_still(const ProgramRun& run) {
  using Outcome = sim::ReplayResult::Outcome;
  return run.result && (run.result->outcome == Outcome::deadlock || run.result->outcome == Outcome::mismatch);
}

bool stalls(const ProgramRun& run, const std::vector<Finding>& findings) {
  return stands_still(run) &&
         std::none_of(findings.begin(), findings.end(), [](const Finding& f) { return f.severity == Severity::error; });
}

// Programs of some ranks of a recorded job wait for the others, whatever these did: no fault, but half an answer. True:
// so it is said, in place of findings that can only say less.
bool waits_for_absent(const sim::Recorded& recorded, const ProgramRun& run, Evidence& evidence,
                      std::vector<Finding>& findings) {
  if (recorded.records == 0 || !stalls(run, findings)) return false;
  RankSet here;
  for (const RankRecord& record : evidence.trace.ranks) here.insert(*record.rank);
  const RankSet all = ranks_expected(evidence.trace), absent = all.without(here);
  if (absent.empty()) return false;
  std::erase_if(findings, [](const Finding& f) { return f.code == "evidence-missing" || f.code == "inconclusive"; });
  evidence.diagnostics.count(
      "replay.ranks_absent", DiagnosticSeverity::info,
      fmt::format("this is a part of a job, whose ranks wait for others: --world-size {} lets them stand for all",
                  all.values().back().value + 1));
  return true;
}

// A rank whose calls were passed over may have made whichever it is said to have left out. True: nothing else is known
// to be wrong, and so it is said.
bool rests_on_untold(const sim::Recorded& recorded, const ProgramRun& run, Evidence& evidence,
                     std::vector<Finding>& findings) {
  if (!stands_still(run)) return false;
  const sim::Untold untold = sim::untold_calls(recorded);
  if (untold.ranks.empty()) return false;
  std::erase_if(findings, [&](const Finding& f) {
    const bool of_others = !f.ranks.empty() && f.ranks.without(untold.ranks).size() == f.ranks.size();
    return (f.severity == Severity::error && !of_others) || f.code == "inconclusive";
  });
  if (!stalls(run, findings)) return false;
  evidence.diagnostics.count("replay.calls_untold", DiagnosticSeverity::data_loss,
                             fmt::format("{}, so that nobody knows whether {} made the calls that others wait for",
                                         untold.why, untold.ranks.label(8)));
  return true;
}

// What was asked for and is not answered.
void note_doubts(const sim::Recorded& recorded, const Simulation& simulation, Evidence& evidence) {
  if (!simulation.untimed.empty()) {
    evidence.diagnostics.count("replay.no_times", DiagnosticSeverity::info,
                               "no time can be told: " + simulation.untimed);
  } else if (recorded.unknown_calls > 0 && recorded.unknown_calls == recorded.calls) {
    evidence.diagnostics.count("replay.no_calls", DiagnosticSeverity::info,
                               "none of its calls can be replayed: their kind, group or peer is not recorded");
  }
}

bool holds_operations(const Trace& trace) {
  return std::any_of(trace.ranks.begin(), trace.ranks.end(),
                     [&trace](const RankRecord& record) { return trace.program(record).size() > 0; });
}

// The gaps, then what the run came to but for what they explain: that their ranks are not there.
std::vector<Finding> with_gaps(std::vector<Finding> gaps, std::vector<Finding> findings) {
  if (gaps.empty()) return findings;
  RankSet absent;
  for (const Finding& gap : gaps) absent.insert(gap.ranks);
  for (Finding& f : findings) {
    const bool names_absent = f.severity == Severity::error && !f.ranks.empty() && f.ranks.without(absent).empty();
    if (!names_absent && f.code != "evidence-missing" && f.code != "inconclusive") gaps.push_back(std::move(f));
  }
  return gaps;
}

void add_result(Simulation& simulation, const sim::ReplayResult& result, const sim::CostModel* costs,
                const Trace& snapshot) {
  simulation.outcome = name_of(result.outcome);
  simulation.rank_ops = result.rank_ops;
  simulation.classes = result.classes;
  if (costs == nullptr || result.rank_ops == 0 || result.outcome != sim::ReplayResult::Outcome::completes) return;
  simulation.timed_by = costs->name();
  simulation.predicted = sim::to_nanos(*std::max_element(result.rank_end.begin(), result.rank_end.end()));
  simulation.totals = rank_totals(snapshot, result, *simulation.predicted);
}

// All that was run, or none: what is left of programs that are too long would look like the whole.
void refuse_part(const Evidence& evidence, std::string_view option) {
  if (evidence.diagnostics.count_of("replay.judged_in_part") == 0) return;
  throw UsageError(
      fmt::format("{0}: these programs have more operations than are kept one by one (16,000,000 over all ranks): take "
                  "fewer ranks or steps, or leave {0} out",
                  option));
}

void write_timeline(const std::string& path, const Evidence& evidence, bool quiet, Console& console) {
  refuse_part(evidence, "--timeline");
  formats::PerfettoCount count;
  write_file(path, [&](std::ostream& out) { count = formats::write_perfetto(evidence.trace, out); });
  if (count.cut && !quiet) {
    console.err << fmt::format("ddx: the timeline holds the first {} operations only\n", format_count(count.slices));
  }
}

// "-o OUT.ops": the answer goes where it goes without, and what was run into this file, as convert writes it.
std::string trace_file(CommonOptions& common) {
  return common.output.ends_with(".ops") ? std::exchange(common.output, {}) : std::string();
}

void write_trace(const std::string& path, const Evidence& evidence, const ProgramRun& run, Console& console) {
  refuse_part(evidence, "-o FILE.ops");
  if (!run.result || run.result->outcome == sim::ReplayResult::Outcome::refused) {
    console.err << fmt::format("ddx: nothing was run: there is no trace to write to '{}'\n", path);
    return;
  }
  write_file(path, [&](std::ostream& out) { formats::write_ops(evidence.trace, out); });
}

// Who shares a node: what the cluster says of ranks, as records of a run there would.
void name_hosts(const sim::Cluster& cluster, Trace& trace) {
  if (cluster.flat || cluster.nodes < 2) return;
  for (RankRecord& record : trace.ranks) {
    record.host = fmt::format("{}", static_cast<std::uint32_t>(record.rank->value) / cluster.ranks_per_node);
  }
}

Exit sim(Options options, Console& console) {
  const std::string trace_to = trace_file(options.common);
  Evidence evidence = read_evidence(options.read, options.common, console);
  // What cannot be run together is told before anything is made of it.
  if (std::vector<Finding> conflicts = analyzers::find_conflicts(evidence); !conflicts.empty()) {
    return finish(make_report("sim", evidence, std::move(conflicts)), options.common, console);
  }
  Simulation simulation;
  // Programs of nothing are a finding, not a prediction that cannot be made.
  const bool timed = options.sim.network.given() && holds_operations(evidence.trace);
  const std::vector<std::string> basis = timed ? sim::check_basis(evidence.trace) : sim::Assumptions{};
  sim::Recorded recorded = prepare_programs(options.sim, evidence.trace);
  simulation.assumed = std::move(recorded.assumed);
  simulation.assumed.insert(simulation.assumed.end(), basis.begin(), basis.end());
  std::vector<Finding> gaps = analyzers::find_gaps(evidence);
  const auto cluster = cluster_of(options.sim, evidence.trace);
  auto costs = cost_model(options.sim, cluster, evidence.trace, simulation.assumed);
  options.sim.compute_scale *= compute_factor(options.sim.compute, evidence.trace, cluster, simulation.assumed);
  if (costs) simulation.untimed = why_untimed(recorded);
  if (!simulation.untimed.empty()) costs = nullptr;
  simulation.ranks = evidence.trace.ranks.size();
  const bool told = options.common.verbose || options.common.format == "json";
  if (costs && told) simulation.choices = collective_choices(evidence.trace, *costs);
  ProgramRun run = run_programs(evidence, replay_options(options.sim, evidence.trace, costs.get()));
  if (cluster && run.result) name_hosts(*cluster, evidence.trace);
  if (!trace_to.empty()) write_trace(trace_to, evidence, run, console);
  if (!options.sim.timeline.empty()) write_timeline(options.sim.timeline, evidence, options.common.quiet, console);
  if (!run.gaps.empty()) gaps.clear();  // judge() tells them
  std::vector<Finding> findings = judge(evidence, run);
  note_doubts(recorded, simulation, evidence);
  const bool half =
      waits_for_absent(recorded, run, evidence, findings) || rests_on_untold(recorded, run, evidence, findings);
  // Nothing was expected of the ranks that were not recorded.
  for (Finding& gap : gaps) gap.severity = half ? Severity::info : gap.severity;
  findings = with_gaps(std::move(gaps), std::move(findings));
  if (!half && stalls(run, findings)) findings.insert(findings.begin(), stall(*run.result));
  if (run.result) add_result(simulation, *run.result, costs.get(), evidence.trace);
  if (costs) {
    for (std::string& note : costs->notes()) simulation.assumed.push_back(std::move(note));
  }
  Report report = make_report("sim", evidence, std::move(findings));
  if (run.result) report.simulation = std::move(simulation);
  const bool untimed = report.simulation && !report.simulation->untimed.empty();
  const Exit exit = finish(report, options.common, console);
  return exit == Exit::fine && untimed ? Exit::insufficient : exit;
}

Exit describe_cluster(const Options& options, Console& console) {
  const sim::Cluster cluster = sim::read_cluster(options.describe);
  const bool machine = options.common.format == "json";
  write_output(machine ? sim::cluster_json(cluster) : sim::describe(cluster) + "\n", options.common, console);
  return Exit::fine;
}

Action prepare(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CommonOptions& common = options->common;
  add_sim_options(app, options->sim, common.files);
  CLI::Option* describe =
      app.add_option("--describe-cluster", options->describe, "Only say what this cluster is (dgx-h100:8, or a file)")
          ->option_text("CLUSTER")
          ->group("How long it takes");
  common.files.inputs.push_back(describe);
  add_read_options(app, options->read, common);
  app.get_option("PATH")->required(false);
  CommonHelp help;
  help.output = "Write the answer to this file; FILE.ops: what was run, with its times, for any command to read";
  help.fail_on = "Exit with 1 on findings of this severity or above: error (the default), warning, info, never";
  help.quiet = "One line a finding";
  help.verbose = "Every finding in full, every piece of evidence";
  add_common_options(app, common, reporter_names(), help);
  app.footer(
      "Examples:\n"
      "  ddx sim job.ops                                      does it run?\n"
      "  ddx sim job.ops --cluster dgx-h100:8                 how long, on eight DGX H100?\n"
      "  ddx sim job.ops --world-size 64 --inject skip@9:3    what would this fault look like on 64 ranks?");
  return [options](Console& console) {
    const bool paths = !options->read.paths.empty();
    if (!options->describe.empty()) {
      if (paths) throw UsageError("--describe-cluster runs nothing: leave PATH out, or time it with --cluster");
      return describe_cluster(*options, console);
    }
    if (!paths) throw UsageError("PATH is required");
    return sim(*options, console);
  };
}

}  // namespace

Command sim_command() { return {"sim", "Run the programs of ranks: do they end, and how long do they take", prepare}; }

}  // namespace ddx::cli
