#include "cli/commands/run_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "analyzers/analyzer.h"
#include "cli/commands/hazards.h"
#include "sim/replay/missing_programs.h"
#include "sim/replay/reference_replay.h"
#include "sim/replay/unrolled_program.h"

namespace ddx::cli {
namespace {

// What a judgement holds for each op of each rank comes to about 130 bytes.
constexpr std::uint64_t kMaxOps = 16'000'000;
constexpr std::uint64_t kFewestOps = 16;

bool is_plan(const RankRecord& record) { return record.whole_program && !record.snapshot; }

// How many operations of each rank can be judged, the latest ones; nullopt: all that they have.
std::optional<std::uint64_t> judged_ops(const Trace& trace) {
  std::vector<std::uint64_t> lengths;
  lengths.reserve(trace.programs.size());
  for (const Program& program : trace.programs) lengths.push_back(sim::length_of(program));
  std::uint64_t left = kMaxOps;
  for (const RankRecord& record : trace.ranks) {
    const std::uint64_t length = lengths[record.program.value];
    if (length > left) return std::max<std::uint64_t>(kFewestOps, kMaxOps / trace.ranks.size());
    left -= length;
  }
  return std::nullopt;
}

void refuse(Evidence& evidence, const std::string& reason) {
  evidence.diagnostics.count("replay.refused", DiagnosticSeverity::data_loss, reason);
}

using Outcome = sim::ReplayResult::Outcome;

// Of programs with more operations than can be looked at one by one: the last ones.
void judge_in_part(Evidence& evidence, sim::ReplayOptions options, std::uint64_t judged, ProgramRun& run) {
  // Where all runs to its end there is nothing to find in what is over.
  options.keep_ops = run.result->outcome == Outcome::completes ? 1 : judged;
  run.result = sim::replay(evidence.trace, options);
  evidence.trace = std::exchange(run.result->snapshot, {});
  evidence.diagnostics.count(
      "replay.judged_in_part", DiagnosticSeverity::notice,
      fmt::format("all of it was run, and the last {} of each rank judged",
                  options.keep_ops == 1 ? "operation" : fmt::format("{} operations", options.keep_ops)));
}

}  // namespace

std::string not_to_be_run(const Evidence& evidence) {
  for (const Diagnostic& diagnostic : evidence.diagnostics.entries()) {
    if (diagnostic.severity == DiagnosticSeverity::error) return diagnostic.detail;
  }
  return sim::missing_programs(evidence);
}

ProgramRun run_programs(Evidence& evidence, sim::ReplayOptions options) {
  std::vector<RankRecord>& ranks = evidence.trace.ranks;
  const auto plans = std::count_if(ranks.begin(), ranks.end(), is_plan);
  if (plans == 0) return {};
  ProgramRun run;
  if (const std::string why = not_to_be_run(evidence); !why.empty()) {
    refuse(evidence, why);
    run.result.emplace().outcome = Outcome::refused;
    run.result->reason = why;
    return run;
  }
  if (static_cast<std::size_t>(plans) < ranks.size()) {
    evidence.diagnostics.count("replay.put_aside", DiagnosticSeverity::notice,
                               "programs beside records of a real run: give the ops file alone to judge it",
                               static_cast<std::uint64_t>(plans));
    std::erase_if(ranks, is_plan);
    return {};
  }
  const auto judged = judged_ops(evidence.trace);
  options.keep_ops = judged ? 0 : UINT64_MAX;
  run.result = sim::replay(evidence.trace, options);
  if (run.result->outcome == Outcome::completes) {
    run.result->reason = sim::unproven_groups(evidence.trace);
    if (!run.result->reason.empty()) run.result->outcome = Outcome::refused;
  }
  if (run.result->outcome == Outcome::refused) {
    refuse(evidence, run.result->reason);
    // What has too many operations to be run has too many to be looked at.
    if (judged) ranks.clear();
    return run;
  }
  if (run.result->outcome == Outcome::completes) run.hazards = find_hazards(evidence, judged.value_or(UINT64_MAX));
  if (judged) {
    judge_in_part(evidence, options, *judged, run);
    return run;
  }
  evidence.trace = std::exchange(run.result->snapshot, {});
  return run;
}

std::vector<Finding> judge(const Evidence& evidence, ProgramRun& run) {
  std::vector<Finding> findings = analyzers::analyze(evidence);
  std::move(run.hazards.begin(), run.hazards.end(), std::back_inserter(findings));
  run.hazards.clear();
  return findings;
}

}  // namespace ddx::cli
