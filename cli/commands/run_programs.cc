#include "cli/commands/run_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "cli/commands/hazards.h"
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

}  // namespace

ProgramRun run_programs(Evidence& evidence, sim::ReplayOptions options) {
  std::vector<RankRecord>& ranks = evidence.trace.ranks;
  const auto plans = std::count_if(ranks.begin(), ranks.end(), is_plan);
  if (plans == 0) return {};
  if (static_cast<std::size_t>(plans) < ranks.size()) {
    evidence.diagnostics.count("replay.put_aside", DiagnosticSeverity::notice,
                               "programs beside records of a real run: give the ops file alone to judge it",
                               static_cast<std::uint64_t>(plans));
    std::erase_if(ranks, is_plan);
    return {};
  }
  const auto judged = judged_ops(evidence.trace);
  options.keep_ops = judged.value_or(UINT64_MAX);
  ProgramRun run;
  run.result = sim::replay(evidence.trace, options);
  if (run.result->outcome == sim::ReplayResult::Outcome::refused) {
    refuse(evidence, run.result->reason);
    // What has too many operations to be run has too many to be looked at.
    if (judged) ranks.clear();
    return run;
  }
  if (run.result->outcome == sim::ReplayResult::Outcome::completes)
    run.hazards = find_hazards(evidence, options.keep_ops);
  if (judged) {
    evidence.diagnostics.count(
        "replay.judged_in_part", DiagnosticSeverity::notice,
        fmt::format("all of it was run, and the last {} operations of each rank judged", *judged));
  }
  evidence.trace = std::exchange(run.result->snapshot, {});
  return run;
}

}  // namespace ddx::cli
