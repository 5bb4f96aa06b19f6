// Time-outs of a backend whose calls block the host (gloo): "Timed out waiting 30000ms for recv operation". Who timed
// out waited; those whose connection closed then fell over it. Only where a single rank neither waited nor fell is that
// a sign, and a weak one.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analyzers/liveness/liveness.h"
#include "analyzers/log_view.h"

namespace ddx::analyzers {
namespace {

struct Waits {
  RankSet waited;
  RankSet lost_a_peer;
  std::vector<const LogEvent*> events;  // of those who waited
};

Waits waits_of(const Evidence& evidence) {
  Waits waits;
  std::vector<RankId> waited;
  std::vector<RankId> lost;
  for (const LogEvent& event : evidence.events) {
    if (timed_out_waiting(event)) {
      waits.events.push_back(&event);
      if (event.rank) waited.push_back(*event.rank);
      continue;
    }
    const auto* end = std::get_if<ProcessEnd>(&event.fact);
    const bool fell = (end != nullptr && end->secondary) || std::holds_alternative<NetSocketError>(event.fact);
    if (event.rank && fell) lost.push_back(*event.rank);
  }
  waits.waited = RankSet(std::move(waited));
  waits.lost_a_peer = RankSet(std::move(lost)).without(waits.waited);
  return waits;
}

}  // namespace

std::vector<Finding> judge_host_timeouts(const Evidence& evidence) {
  const Waits waits = waits_of(evidence);
  if (waits.events.empty() || !seen<WatchdogTimeout>(evidence).empty()) return {};
  // Dumps show what each rank called, and a rank that ended explains why the others waited.
  if (std::any_of(evidence.trace.ranks.begin(), evidence.trace.ranks.end(), [](const auto& r) { return r.snapshot; }))
    return {};
  for (const Finding& finding : judge_process_ends(evidence)) {
    if (finding.code == "dead-rank") return {};
  }
  const RankSet others = known_ranks(evidence).without(waits.waited).without(waits.lost_a_peer);
  const bool one_silent = others.size() == 1 && waits.waited.size() > 1;
  Finding finding;
  finding.code = one_silent ? "lagging-rank" : "timeout";
  finding.severity = one_silent ? Severity::warning : Severity::error;
  finding.confidence = Confidence::low;
  if (one_silent) finding.ranks = others;
  finding.victims = waits.waited;
  finding.victims.insert(waits.lost_a_peer);
  for (const LogEvent* event : waits.events) cite(finding, evidence, *event);
  const std::string who =
      waits.waited.empty() ? std::string("a process whose rank is not known") : waits.waited.label(4);
  finding.summary =
      one_silent
          ? fmt::format("{} timed out waiting for a peer; {} alone reports nothing of the kind", who, others.label())
          : fmt::format("{} timed out waiting for a peer; whose fault it is these logs do not show", who);
  finding.explanation = "Who times out waits on somebody else: a victim.\n";
  if (!waits.lost_a_peer.empty()) {
    finding.explanation +=
        fmt::format("{} lost a connection when the others gave up: a consequence.\n", waits.lost_a_peer.label());
  }
  if (one_silent) {
    finding.explanation += fmt::format(
        "{} did not wait with them: it may never have come to that operation. Silence is weak "
        "evidence.\n",
        others.label());
  } else if (!others.empty()) {
    finding.explanation += fmt::format("{} did not report a wait here.\n", others.label());
  }
  finding.advice =
      fmt::format("Take a stack of {} while the job hangs (py-spy dump), or give recorder dumps of all ranks.",
                  one_silent ? others.label() : std::string("every rank"));
  return {finding};
}

}  // namespace ddx::analyzers
