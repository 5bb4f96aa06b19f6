#include "cli/report/report.h"

#include <algorithm>
#include <utility>

namespace ddx::cli {
namespace {

// Above this a stated world size is not spelt out rank by rank: a corrupt number must not cost gigabytes.
constexpr std::uint32_t kMaxWorld = 4'000'000;

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

RankSet ranks_expected(const Trace& trace) {
  std::vector<RankId> expected;
  for (const Communicator& comm : trace.communicators()) {
    expected.insert(expected.end(), comm.members.begin(), comm.members.end());
  }
  RankSet all(std::move(expected));
  if (trace.world_size && *trace.world_size > 0 && *trace.world_size <= kMaxWorld) {
    all.insert(RankSet::range(RankId(0), RankId(std::int64_t{*trace.world_size} - 1)));
  }
  return all;
}

Verdict verdict_of(const Report& report) {
  const auto has = [&](Severity severity) {
    return std::any_of(report.findings.begin(), report.findings.end(),
                       [&](const Finding& f) { return f.severity == severity; });
  };
  if (has(Severity::error)) return Verdict::error;
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
  report.findings = std::move(findings);
  report.diagnostics = evidence.diagnostics.entries();
  report.sufficient = !evidence.trace.ranks.empty() || !evidence.events.empty() || !report.findings.empty();
  report.verdict = verdict_of(report);
  return report;
}

Report no_evidence_report(std::string command, const std::string& why) {
  Evidence none;
  none.diagnostics.count("load.no_evidence", DiagnosticSeverity::error, why);
  return make_report(std::move(command), none, {});
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
