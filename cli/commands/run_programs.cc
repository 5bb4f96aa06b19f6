#include "cli/commands/run_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "analyzers/analyzer.h"
#include "analyzers/launch/trace_set.h"
#include "base/counted.h"
#include "cli/commands/hazards.h"
#include "sim/replay/assumed_groups.h"
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

// A group that no file describes and of which only one rank speaks: whom it means, and whether others miss that rank's
// call in theirs, nobody knows. One sentence; empty: there is none.
std::string lone_group(const Evidence& evidence) {
  const Trace& trace = evidence.trace;
  const auto& comms = trace.communicators();
  const auto is_lone = [](const Communicator& comm) { return comm.assumed && comm.members.size() == 1; };
  if (trace.ranks.size() < 2 || std::none_of(comms.begin(), comms.end(), is_lone)) return {};
  for (const RankRecord& record : trace.ranks) {
    const Program& program = trace.program(record);
    for (std::size_t row = 0; row < program.size(); ++row) {
      const auto slot = program.comm_slot(row);
      if (!slot) continue;
      const Communicator& comm = trace.communicator(record.comms[*slot]);
      if (!is_lone(comm)) continue;
      const Signature& call = trace.signature(program.signature(row));
      return fmt::format(
          "{}: rank {}: node {} ({}) is of group {}, which no file describes and no other rank uses: nobody knows "
          "whose calls it is to meet",
          evidence.path(record.input), record.rank->value, trace.text(call.name), name_of(call.kind),
          trace.text(comm.name));
    }
  }
  return {};
}

using Outcome = sim::ReplayResult::Outcome;

std::string contradiction(const Evidence& evidence) {
  for (const Diagnostic& diagnostic : evidence.diagnostics.entries()) {
    if (diagnostic.severity == DiagnosticSeverity::error) return diagnostic.detail;
  }
  return lone_group(evidence);
}

// Formats of which each rank has a file, or rows, of its own: there a rank that has none was lost. Others state the
// world, and with it who is absent on purpose.
bool has_file_for_each_rank(const Evidence& evidence) {
  const auto& ranks = evidence.trace.ranks;
  return std::all_of(ranks.begin(), ranks.end(), [&](const RankRecord& record) {
    const Input* input = evidence.input(record.input);
    return record.rank && input && (input->format == "chakra" || input->format == "op-table");
  });
}

// Ranks whose programs calls need, and that were lost: a run of the others would only say so again.
std::vector<Finding> lost_programs(const Evidence& evidence) {
  if (!has_file_for_each_rank(evidence)) return {};
  std::vector<Finding> gaps = analyzers::find_gaps(evidence);
  const bool needed =
      std::any_of(gaps.begin(), gaps.end(), [](const Finding& gap) { return gap.severity == Severity::error; });
  return needed ? gaps : std::vector<Finding>();
}

sim::ReplayResult refused(const std::string& reason) {
  sim::ReplayResult result;
  result.outcome = Outcome::refused;
  result.reason = reason;
  return result;
}

}  // namespace

std::string not_to_be_run(const Evidence& evidence) {
  if (std::string why = contradiction(evidence); !why.empty()) return why;
  const std::vector<Finding> gaps = lost_programs(evidence);
  return gaps.empty() ? std::string() : gaps.front().summary;
}

ProgramRun run_programs(Evidence& evidence, sim::ReplayOptions options) {
  std::vector<RankRecord>& ranks = evidence.trace.ranks;
  const auto plans = std::count_if(ranks.begin(), ranks.end(), is_plan);
  if (plans == 0) return {};
  ProgramRun run;
  if (const std::string why = contradiction(evidence); !why.empty()) {
    refuse(evidence, why);
    run.result = refused(why);
    return run;
  }
  if (run.gaps = lost_programs(evidence); !run.gaps.empty()) {
    run.result = refused(run.gaps.front().summary);
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
  std::vector<Finding> findings = std::exchange(run.gaps, {});
  std::vector<Finding> seen = settled ? std::vector<Finding>() : analyzers::analyze(evidence);
  std::move(seen.begin(), seen.end(), std::back_inserter(findings));
  std::move(run.hazards.begin(), run.hazards.end(), std::back_inserter(findings));
  run.hazards.clear();
  return findings;
}

}  // namespace ddx::cli
