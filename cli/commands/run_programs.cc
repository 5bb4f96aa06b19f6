#include "cli/commands/run_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/commands/hazards.h"
#include "sim/replay/reference_replay.h"
#include "sim/replay/unrolled_program.h"

namespace ddx::cli {
namespace {

// What a judgement holds for each op of each rank comes to about 130 bytes.
constexpr std::uint64_t kMaxOps = 16'000'000;

bool is_plan(const RankRecord& record) { return record.whole_program && !record.snapshot; }

bool too_large(const Trace& trace) {
  std::vector<std::uint64_t> lengths;
  lengths.reserve(trace.programs.size());
  for (const Program& program : trace.programs) lengths.push_back(sim::length_of(program));
  std::uint64_t left = kMaxOps;
  for (const RankRecord& record : trace.ranks) {
    const std::uint64_t length = lengths[record.program.value];
    if (length > left) return true;
    left -= length;
  }
  return false;
}

void refuse(Evidence& evidence, const std::string& reason) {
  evidence.diagnostics.count("replay.refused", DiagnosticSeverity::data_loss, reason);
}

}  // namespace

std::vector<Finding> run_programs(Evidence& evidence) {
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
  if (too_large(evidence.trace)) {
    refuse(evidence,
           fmt::format("the programs of all ranks together run more than {} operations, too many to judge", kMaxOps));
    ranks.clear();
    return {};
  }
  sim::ReplayResult result = sim::replay(evidence.trace);
  if (result.outcome == sim::ReplayResult::Outcome::refused) {
    refuse(evidence, result.reason);
    return {};
  }
  std::vector<Finding> hazards;
  if (result.outcome == sim::ReplayResult::Outcome::completes) hazards = find_hazards(evidence);
  evidence.trace = std::move(result.snapshot);
  return hazards;
}

}  // namespace ddx::cli
