#include "cli/commands/run_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "analyzers/analyzer.h"
#include "base/counted.h"
#include "cli/commands/hazards.h"
#include "sim/replay/missing_programs.h"
#include "sim/replay/reference_replay.h"
#include "sim/replay/unrolled_program.h"

namespace ddx::cli {
namespace {

// What a judgement holds for each op of each rank comes to about 130 bytes.
constexpr std::uint64_t kMaxJudgedOps = 16'000'000;

bool is_plan(const RankRecord& record) { return record.whole_program && !record.snapshot; }

bool too_many_to_judge(const Trace& trace) {
  std::vector<std::uint64_t> lengths;
  lengths.reserve(trace.programs.size());
  for (const Program& program : trace.programs) lengths.push_back(sim::length_of(program));
  std::uint64_t left = kMaxJudgedOps;
  return std::any_of(trace.ranks.begin(), trace.ranks.end(), [&](const RankRecord& record) {
    const std::uint64_t length = lengths[record.program.value];
    const bool fits = length <= left;
    if (fits) left -= length;
    return !fits;
  });
}

void refuse(Evidence& evidence, const std::string& reason) {
  evidence.diagnostics.count("replay.refused", DiagnosticSeverity::data_loss, reason);
}

using Outcome = sim::ReplayResult::Outcome;

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
  options.snapshot_ops = kMaxJudgedOps;
  run.result = sim::replay(evidence.trace, options);
  if (run.result->outcome == Outcome::completes) {
    run.result->reason = sim::unproven_groups(evidence.trace);
    if (!run.result->reason.empty()) run.result->outcome = Outcome::refused;
  }
  if (run.result->outcome == Outcome::refused) {
    refuse(evidence, run.result->reason);
    // What has too many operations to be run has too many to be looked at.
    if (too_many_to_judge(evidence.trace)) ranks.clear();
    return run;
  }
  if (run.result->outcome == Outcome::completes) run.hazards = find_hazards(evidence, options);
  evidence.trace = std::exchange(run.result->snapshot, {});
  if (run.result->window) {
    evidence.diagnostics.count(
        "replay.judged_in_part", DiagnosticSeverity::notice,
        fmt::format("all of it was run; judged are, of each group and pair of ranks, up to {} calls "
                    "before where it stands and as many behind",
                    *run.result->window));
  }
  return run;
}

std::vector<Finding> judge(const Evidence& evidence, ProgramRun& run) {
  // Where all of long programs ran to its end, a part of them has nothing to tell.
  const bool settled = run.result && run.result->outcome == Outcome::completes && run.result->window;
  std::vector<Finding> findings = settled ? std::vector<Finding>() : analyzers::analyze(evidence);
  std::move(run.hazards.begin(), run.hazards.end(), std::back_inserter(findings));
  run.hazards.clear();
  return findings;
}

}  // namespace ddx::cli
