// A notice that repeats while an engine waits for work looks like a hang. It is none where work goes on after it and
// nothing else is wrong.
#include <fmt/format.h>

#include <algorithm>

#include "analyzers/checker/checker.h"
#include "analyzers/log_view.h"

namespace ddx::analyzers {
namespace {

bool trouble(const LogEvent& event) {
  const auto* comm = std::get_if<RasCommunicator>(&event.fact);
  return std::holds_alternative<WatchdogTimeout>(event.fact) || std::holds_alternative<WatchdogStatus>(event.fact) ||
         std::holds_alternative<HeartbeatStuck>(event.fact) || std::holds_alternative<WrapperMismatch>(event.fact) ||
         std::holds_alternative<ProcessEnd>(event.fact) || std::holds_alternative<ElasticFailure>(event.fact) ||
         std::holds_alternative<NetCompletionError>(event.fact) || std::holds_alternative<NetSocketError>(event.fact) ||
         std::holds_alternative<SharedMemoryError>(event.fact) ||
         (comm != nullptr && !comm->errors.empty() && comm->errors != "OK");
}

// The notices come at one interval, as a timer's do.
bool regular(const std::vector<Seen<IdleNotice>>& notices) {
  std::optional<Nanos> step;
  for (std::size_t i = 1; i < notices.size(); ++i) {
    if (notices[i].event->input != notices[i - 1].event->input) continue;
    const auto between = elapsed(*notices[i - 1].event, *notices[i].event);
    if (!between || *between <= 0) continue;
    // An idle stretch may end and another begin: whole multiples are regular too.
    const Nanos interval = notices[i].fact->interval.value_or(step.value_or(*between));
    if (interval <= 0) return false;
    step = step.value_or(interval);
    const Nanos off = *between % interval;
    if (std::min(off, interval - off) > interval / 10 && *between < interval) return false;
  }
  return true;
}

}  // namespace

std::vector<Finding> judge_idle(const Evidence& evidence) {
  const auto notices = seen<IdleNotice>(evidence);
  if (notices.empty() || std::any_of(evidence.events.begin(), evidence.events.end(), trouble)) return {};
  const LogEvent& last = *notices.back().event;
  const LogEvent* progress = nullptr;
  for (const auto& [event, fact] : seen<ProgressNotice>(evidence)) {
    if (before(last, *event).value_or(false)) progress = event;
  }
  Finding finding;
  finding.severity = Severity::info;
  for (const auto& [event, fact] : notices) cite(finding, evidence, *event);
  const std::string every =
      notices.front().fact->interval ? fmt::format(" every {}", format_duration(*notices.front().fact->interval)) : "";
  if (progress != nullptr) {
    finding.code = "no-fault";
    finding.confidence = regular(notices) ? Confidence::high : Confidence::medium;
    finding.evidence.push_back(line_of(evidence, *progress));
    finding.summary = "No hang: the notice repeats while there is no work, and work finished after it";
    finding.explanation = fmt::format(
        "The line ({} time{}{}) is written by a timer whenever nothing arrives. It comes at an "
        "information level, and the job went on after the last one.\n",
        notices.size(), notices.size() == 1 ? "" : "s", every);
    finding.advice = "Nothing to do. If requests were waiting at that time, look at the engine's queue instead.";
    return {finding};
  }
  finding.code = "inconclusive";
  finding.confidence = Confidence::low;
  finding.summary =
      "The notice repeats and the log ends with it: idle for lack of work, or a worker that does not answer";
  finding.explanation = fmt::format(
      "The line ({} time{}{}) alone is no fault: it comes whenever nothing arrives. Nothing here shows "
      "work after it, so a hang is not excluded either.\n",
      notices.size(), notices.size() == 1 ? "" : "s", every);
  finding.advice = "See whether requests are waiting. If so, take stacks of all workers; if not, it is idle.";
  return {finding};
}

}  // namespace ddx::analyzers
