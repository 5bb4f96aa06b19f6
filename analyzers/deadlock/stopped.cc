#include "analyzers/deadlock/stopped.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>

namespace ddx::analyzers {
namespace {

struct Stop {
  std::vector<RankId> ranks;
  const RankView* first = nullptr;
};

Finding stop_finding(const JobView& job, StopReason reason, const std::string& text, const Stop& stop) {
  const bool stuck = reason == StopReason::stuck;
  Finding f;
  f.code = stuck ? "stuck-host" : "dead-rank";
  f.confidence = Confidence::high;
  f.ranks = RankSet(stop.ranks);
  f.summary = fmt::format("{} {}{}", f.ranks.label(8), stuck ? f.ranks.size() == 1 ? "is stuck" : "are stuck" : "ended",
                          fmt::format(" ({}{}{})", name_of(reason), text.empty() ? "" : ": ", text));
  f.explanation = "So the program says. No other rank makes a call that needs it, so nobody waits yet.\n";
  f.evidence.push_back(
      {job.evidence->path(stop.first->record->input), std::nullopt,
       fmt::format("rank {}: {}{}{}", stop.first->rank.value, name_of(reason), text.empty() ? "" : " ", text)});
  f.advice = stuck ? "Look at what it is stuck in: the others wait as soon as they call something with it."
                   : "Look at what ended it: the others wait as soon as they call something with it.";
  return f;
}

}  // namespace

std::vector<Finding> find_stopped(const JobView& job) {
  std::map<std::pair<StopReason, std::string>, Stop> stops;
  for (const RankView& view : job.ranks) {
    if (!view.record->whole_program) continue;
    const Program& program = job.trace->program(*view.record);
    if (program.size() == 0) continue;
    const Signature& last = job.trace->signature(program.signature(program.size() - 1));
    if (last.kind != OpKind::stop || last.stop_reason == StopReason::exit) continue;
    Stop& stop = stops[{last.stop_reason, std::string(job.trace->text(last.name))}];
    stop.ranks.push_back(view.rank);
    if (!stop.first) stop.first = &view;
  }
  std::vector<Finding> findings;
  for (const auto& [what, stop] : stops) findings.push_back(stop_finding(job, what.first, what.second, stop));
  return findings;
}

}  // namespace ddx::analyzers
