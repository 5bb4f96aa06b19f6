// A library names who did not come: that is as good as what it can see. It sees who did not come, not why.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyzers/liveness/liveness.h"
#include "analyzers/log_view.h"

namespace ddx::analyzers {
namespace {

struct Told {
  RankSet ranks;
  RankSet reporters;
  std::string at;
  std::vector<const LogEvent*> events;
};

}  // namespace

std::vector<Finding> judge_told_absent(const Evidence& evidence) {
  std::map<std::string, Told> by_library;
  for (const auto& [event, fact] : seen<ToldAbsent>(evidence)) {
    if (fact->ranks.empty()) continue;
    Told& told = by_library[fact->by];
    told.ranks.insert(RankSet(fact->ranks));
    if (event->rank) told.reporters.insert(*event->rank);
    if (told.at.empty()) told.at = fact->at;
    told.events.push_back(event);
  }
  std::vector<Finding> findings;
  for (auto& [by, told] : by_library) {
    // Reporters that name each other: nobody is singled out.
    const RankSet both = told.ranks.common(told.reporters);
    Finding finding;
    finding.code = "missing-ranks";
    finding.confidence = both.empty() ? Confidence::medium : Confidence::low;
    finding.ranks = told.ranks;
    finding.victims = known_ranks(evidence).without(told.ranks);
    finding.summary =
        fmt::format("{} did not come{}: {} says so", told.ranks.label(4), told.at.empty() ? "" : " to " + told.at, by);
    finding.explanation = fmt::format("{} waited and then named those that it had not heard of.\n",
                                      told.reporters.empty() ? "The process that prints it" : told.reporters.label(4));
    if (!told.reporters.empty()) finding.explanation += "Who prints this is not at fault for printing it.\n";
    if (by == "monitoredBarrier") {
      finding.explanation += "Without wait_all_ranks=True it names only the first: there may be more.\n";
    }
    finding.advice = fmt::format("Look at what {} did instead: its log's end, a stack, its host.", told.ranks.label(8));
    for (const LogEvent* event : told.events) cite(finding, evidence, *event);
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace ddx::analyzers
