// A name that could not be resolved: a log alone tells "not yet" from "never" only where it goes on.
#include <fmt/format.h>

#include <map>
#include <set>

#include "analyzers/hosts/hosts.h"
#include "analyzers/log_view.h"

namespace ddx::analyzers {
namespace {

// The last line of each file that needs a resolved name.
std::map<InputId, std::uint64_t> last_work(const Evidence& evidence) {
  std::map<InputId, std::uint64_t> last;
  for (const LogEvent& event : evidence.events) {
    const bool of_work =
        std::holds_alternative<ProgressNotice>(event.fact) || std::holds_alternative<CommInit>(event.fact) ||
        std::holds_alternative<StoreBarrier>(event.fact) || std::holds_alternative<StoreJoin>(event.fact) ||
        std::holds_alternative<WatchdogTimeout>(event.fact) || std::holds_alternative<LibraryVersion>(event.fact);
    if (of_work) last[event.input] = event.line;
  }
  return last;
}

}  // namespace

std::vector<Finding> judge_names(const Evidence& evidence) {
  const auto errors = seen<NameResolutionError>(evidence);
  if (errors.empty()) return {};
  Finding finding;
  finding.code = "addr-unresolved";
  finding.severity = Severity::warning;
  std::set<std::string> names;
  std::set<std::string> places;
  bool resolved = true;
  const auto last = last_work(evidence);
  for (const auto& [event, fact] : errors) {
    if (!fact->name.empty()) names.insert(fact->name);
    places.insert(host_subject(evidence, *event));
    const auto work = last.find(event->input);
    resolved = resolved && work != last.end() && work->second > event->line;
    cite(finding, evidence, *event);
  }
  for (const std::string& place : places) {
    if (finding.subjects.size() < 12) finding.subjects.push_back(place);
  }
  for (const std::string& name : names) {
    if (finding.subjects.size() < 16) finding.subjects.push_back("name " + name);
  }
  std::vector<std::string> where;
  for (const std::string& place : places) where.push_back(place.substr(place.find(' ') + 1));
  const std::string what = names.empty() ? "The rendezvous name" : join_words({names.begin(), names.end()}, 3);
  finding.confidence = Confidence::medium;
  if (resolved) {
    finding.summary = fmt::format("{} was not known on {} at first, and then was", what, join_words(where, 4));
    finding.explanation = "The log goes on after the error, so the name resolved later: it was not there yet.\n";
  } else {
    finding.summary =
        fmt::format("{} could not be resolved on {}: not yet there, or never", what, join_words(where, 4));
    finding.explanation =
        "The process gave up at once, so this log does not tell \"not yet\" from \"never\". On a cluster whose names "
        "appear with its pods the first seconds are often without them; if others of the job resolved the same "
        "name, it is that.\n";
  }
  finding.advice =
      "Look the name up on that host now. If it resolves, wait for DNS before the start (an init container, or "
      "retries); "
      "MASTER_ADDR need not change. If it still does not, the name or the resolver is wrong.";
  return {finding};
}

}  // namespace ddx::analyzers
