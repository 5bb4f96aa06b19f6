// NaN or infinity: a collective spreads it to all, so the rank that shows it first counts.
#include <fmt/format.h>

#include "analyzers/checker/checker.h"
#include "analyzers/log_view.h"

namespace ddx::analyzers {
namespace {

struct Notice {
  const LogEvent* event;
  std::string what;
};

// Notices, and exceptions that a check of the values raised.
std::vector<Notice> notices_of(const Evidence& evidence) {
  std::vector<Notice> notices;
  for (const LogEvent& event : evidence.events) {
    const auto* notice = std::get_if<NanNotice>(&event.fact);
    const auto* end = std::get_if<ProcessEnd>(&event.fact);
    if (notice != nullptr) notices.push_back({&event, notice->what});
    if (end != nullptr && end->kind == ProcessEnd::Kind::exception && !end->secondary && speaks_of_nan(end->what)) {
      notices.push_back({&event, end->what});
    }
  }
  return notices;
}

}  // namespace

std::vector<Finding> judge_nan(const Evidence& evidence) {
  const std::vector<Notice> notices = notices_of(evidence);
  if (notices.empty()) return {};
  const Notice* first = &notices.front();
  std::vector<RankId> ranks;
  for (const auto& notice : notices) {
    if (before(*notice.event, *first->event).value_or(false)) first = &notice;
    if (notice.event->rank) ranks.push_back(*notice.event->rank);
  }
  const RankSet all(std::move(ranks));
  // It is the first only where every other rank's line is known to come later.
  bool decided = first->event->rank.has_value();
  for (const auto& notice : notices) {
    if (notice.event->rank == first->event->rank) continue;
    const auto later = elapsed(*first->event, *notice.event);
    decided = decided && (later ? *later > 0 : before(*first->event, *notice.event).value_or(false));
  }
  // One line of one rank alone: every rank may have the same value, and only this log is here.
  decided = decided && (all.size() > 1 || spoken_ranks(evidence).size() > 1);
  Finding finding;
  finding.code = "nan-values";
  cite(finding, evidence, *first->event);
  for (const auto& notice : notices) cite(finding, evidence, *notice.event);
  if (decided) {
    finding.ranks.insert(*first->event->rank);
    finding.victims = all.without(finding.ranks);
    finding.confidence = Confidence::medium;
    finding.summary = fmt::format("{} was the first to show NaN or infinity: {}", finding.ranks.label(), first->what);
    finding.summary.front() = 'R';
  } else {
    finding.confidence = Confidence::low;
    finding.victims = all;
    finding.summary = fmt::format("NaN or infinity appeared{}; where it began is not shown",
                                  all.empty() ? std::string() : " on " + all.label(4));
  }
  finding.explanation =
      "A reduction carries one rank's NaN to all ranks in the same step: whoever shows it first, before that "
      "collective, is where it began.\n";
  finding.advice =
      "Check each rank's values before the collective (TORCH_NCCL_NAN_CHECK=1 aborts on the rank that brings them in).";
  return {finding};
}

}  // namespace ddx::analyzers
