#include "cli/commands/run_programs.h"

#include <algorithm>
#include <utility>

#include "sim/replay/reference_replay.h"

namespace ddx::cli {
namespace {

bool is_plan(const RankRecord& record) { return record.whole_program && !record.snapshot; }

}  // namespace

void run_programs(Evidence& evidence) {
  std::vector<RankRecord>& ranks = evidence.trace.ranks;
  const auto plans = std::count_if(ranks.begin(), ranks.end(), is_plan);
  if (plans == 0) return;
  if (static_cast<std::size_t>(plans) < ranks.size()) {
    evidence.diagnostics.count("replay.put_aside", DiagnosticSeverity::notice,
                               "programs beside records of a real run: give the ops file alone to judge it",
                               static_cast<std::uint64_t>(plans));
    std::erase_if(ranks, is_plan);
    return;
  }
  sim::ReplayResult result = sim::replay(evidence.trace);
  if (result.outcome == sim::ReplayResult::Outcome::refused) {
    evidence.diagnostics.count("replay.refused", DiagnosticSeverity::data_loss, result.reason);
    return;
  }
  evidence.trace = std::move(result.snapshot);
}

}  // namespace ddx::cli
