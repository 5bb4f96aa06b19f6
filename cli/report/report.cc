#include "cli/report/report.h"

#include <algorithm>
#include <utility>

#include "cli/report/sufficiency.h"

namespace ddx::cli {
namespace {

RankSet ranks_seen(const Evidence& evidence) {
  std::vector<RankId> seen;
  for (const RankRecord& record : evidence.trace.ranks) {
    if (record.rank) seen.push_back(*record.rank);
  }
  for (const LogEvent& event : evidence.events) {
    // Many events have one writer; the list need not grow with the log.
    if (event.rank && (seen.empty() || seen.back() != *event.rank)) seen.push_back(*event.rank);
  }
  return RankSet(std::move(seen));
}

Verdict verdict_of(const Report& report) {
  const auto has = [&](Severity severity) {
    return std::any_of(report.findings.begin(), report.findings.end(),
                       [&](const Finding& f) { return f.severity == severity; });
  };
  if (has(Severity::error)) return Verdict::error;
  if (!report.sufficient) return Verdict::inconclusive;
  if (has(Severity::warning)) return Verdict::warning;
  const bool undecided = std::any_of(report.findings.begin(), report.findings.end(),
                                     [](const Finding& f) { return f.code == "inconclusive"; });
  return undecided || !report.sufficient ? Verdict::inconclusive : Verdict::clean;
}

}  // namespace

Report make_report(std::string command, const Evidence& evidence, std::vector<Finding> findings) {
  Report report;
  report.command = std::move(command);
  report.inputs.reserve(evidence.inputs.size());
  for (const Input& input : evidence.inputs) {
    report.inputs.push_back({input.path, input.format, input.ranks, input.note, input.unreadable});
  }
  report.world_size = evidence.trace.world_size;
  report.ranks_seen = ranks_seen(evidence);
  report.ranks_absent = ranks_expected(evidence.trace).without(report.ranks_seen);
  report.unnumbered = static_cast<std::size_t>(std::count_if(evidence.trace.ranks.begin(), evidence.trace.ranks.end(),
                                                             [](const RankRecord& record) { return !record.rank; }));
  report.findings = std::move(findings);
  report.diagnostics = evidence.diagnostics.entries();
  report.reason = why_insufficient(evidence, report.findings);
  report.sufficient = report.reason.empty();
  report.verdict = verdict_of(report);
  if (report.verdict == Verdict::inconclusive && report.sufficient) {
    const auto undecided = std::find_if(report.findings.begin(), report.findings.end(),
                                        [](const Finding& f) { return f.code == "inconclusive"; });
    report.reason = undecided->summary;
  }
  return report;
}

bool fails(const Report& report, std::optional<Severity> threshold) {
  if (!threshold) return false;
  return std::any_of(report.findings.begin(), report.findings.end(),
                     [&](const Finding& f) { return f.severity >= *threshold; });
}

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::clean: return "clean";
    case Verdict::inconclusive: return "inconclusive";
    case Verdict::warning: return "warning";
    case Verdict::error: return "error";
  }
  return "inconclusive";
}

}  // namespace ddx::cli
