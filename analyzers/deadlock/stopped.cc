#include "analyzers/deadlock/stopped.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>

namespace ddx::analyzers {
namespace {

struct Stop {
  std::vector<RankId> ranks;
  std::set<std::string> texts;
  const RankView* first = nullptr;
};

std::string words_of(StopReason reason, const Stop& stop) {
  constexpr std::size_t kMostTexts = 3;
  std::string words(name_of(reason));
  std::size_t told = 0;
  for (const std::string& text : stop.texts) {
    if (text.empty()) continue;
    if (told == kMostTexts) return words + ", ...";
    words += (told++ == 0 ? ": " : ", ") + text;
  }
  return words;
}

Finding stop_finding(const JobView& job, StopReason reason, const Stop& stop) {
  const bool stuck = reason == StopReason::stuck;
  Finding f;
  f.code = stuck ? "stuck-host" : "dead-rank";
  f.confidence = Confidence::high;
  f.ranks = RankSet(stop.ranks);
  const char* what = !stuck ? "ended" : f.ranks.size() == 1 ? "is stuck" : "are stuck";
  f.summary = fmt::format("{} {} ({})", f.ranks.label(8), what, words_of(reason, stop));
  f.explanation = "So the program says. No other rank makes a call that needs it, so nobody waits yet.\n";
  f.evidence.push_back({job.evidence->path(stop.first->record->input), std::nullopt,
                        fmt::format("rank {}: {}", stop.first->rank.value, name_of(reason))});
  f.advice = stuck ? "Look at what it is stuck in: the others wait as soon as they call something with it."
                   : "Look at what ended it: the others wait as soon as they call something with it.";
  return f;
}

}  // namespace

std::vector<Finding> find_stopped(const JobView& job) {
  std::map<StopReason, Stop> stops;
  for (const RankView& view : job.ranks) {
    if (!view.record->whole_program) continue;
    const Program& program = job.trace->program(*view.record);
    if (program.size() == 0) continue;
    const Signature& last = job.trace->signature(program.signature(program.size() - 1));
    if (last.kind != OpKind::stop || last.stop_reason == StopReason::exit) continue;
    Stop& stop = stops[last.stop_reason];
    stop.texts.emplace(job.trace->text(last.name));
    stop.ranks.push_back(view.rank);
    if (!stop.first) stop.first = &view;
  }
  std::vector<Finding> findings;
  for (const auto& [reason, stop] : stops) findings.push_back(stop_finding(job, reason, stop));
  return findings;
}

}  // namespace ddx::analyzers
