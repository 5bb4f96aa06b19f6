// A report by hand: what reporters are tested with.
#pragma once

#include <string>

#include "cli/report/reporter.h"

namespace ddx::cli {

inline Finding skipped() {
  Finding finding;
  finding.code = "rank-skipped";
  finding.severity = Severity::error;
  finding.confidence = Confidence::high;
  finding.ranks = {RankId(3)};
  finding.victims = RankSet::range(RankId(0), RankId(7)).without({RankId(3)});
  finding.subjects = {"group pg0", "seq 812"};
  finding.summary = "rank 3 skipped one all_reduce (group pg0, seq 812): 7 ranks wait for it";
  finding.explanation = "From 812 on rank 3 is one ahead.\nThe circle:\n  rank 3 waits for rank 0\n";
  finding.evidence = {{"fr/rank_3", 12, "all_gather f32 x 64"}, {"fr/rank_0", {}, "all_reduce f32 x 64"}};
  finding.advice = "Let all ranks call it, or none.";
  return finding;
}

inline Finding note(std::string code = "evidence-missing") {
  Finding finding;
  finding.code = std::move(code);
  finding.severity = Severity::info;
  finding.confidence = Confidence::medium;
  finding.summary = "no dump of rank 7";
  finding.advice = "Collect it.";
  return finding;
}

inline Report sample_report() {
  Report report;
  report.command = "analyze";
  report.verdict = Verdict::error;
  report.inputs = {{"fr/rank_0", "flight-recorder-pickle", {RankId(0)}, "", false},
                   {"fr/rank_3", "flight-recorder-pickle", {RankId(3)}, "cut at byte 90", false},
                   {"fr/readme", "unknown", {}, "no format that ddx knows", false},
                   {"fr/secret", "unknown", {}, "cannot be opened: Permission denied", true}};
  report.world_size = 8;
  report.ranks_seen = {RankId(0), RankId(3)};
  report.ranks_absent = RankSet::range(RankId(0), RankId(7)).without(report.ranks_seen);
  report.findings = {skipped(), note()};
  report.diagnostics = {
      {"flight_recorder.truncated_file", DiagnosticSeverity::data_loss, 1, "fr/rank_3 at byte 90: cut"},
      {"load.unknown_file", DiagnosticSeverity::notice, 1, "fr/readme: no format that ddx knows"},
      {"load.unreadable_file", DiagnosticSeverity::data_loss, 1, "fr/secret: cannot be opened"}};
  return report;
}

inline Report insufficient_report(const std::string& reason) {
  Report report;
  report.command = "analyze";
  report.verdict = Verdict::inconclusive;
  report.sufficient = false;
  report.reason = reason;
  return report;
}

// Strings that have broken somebody's output before.
inline const std::vector<std::string>& hostile_strings() {
  static const std::vector<std::string> kHostile{
      "\x1b[31mred\x1b[0m \x1b]0;title\a",
      std::string("nul\0inside", 10),
      "bad utf-8 \xff\xfe \xc3 \xed\xa0\x80 \xf4\x90\x80\x80",
      "quotes \" ' <tag attr=\"x\"> & &amp; ]]> <!-- -->",
      "lines\nof\r\ntext\ttab\x0b\x0c",
      "%0A::error::injected %25 , : ::",
      "::error file=x,line=1::injected",
      "##[error]injected",
      "far behind\n \t::error::injected\n\xe3\x80\x80::warning::injected\n  ##[group]injected",
      std::string(60, 'x') + " ::error::injected " + std::string(60, 'x') + " ##[error]injected",
      "direction \xe2\x80\xae override \xe2\x80\x8f \xef\xbb\xbf",
      "noncharacters \xef\xbf\xbe \xef\xbf\xbf",
      "C1 controls \xc2\x9b"
      "31m \xc2\x85",
      "unfinished \x1b",
      "unfinished \x1b[31",
      "unfinished \x1b]0;never ends",
      std::string(5000, 'x'),
      "",
  };
  return kHostile;
}

inline Report hostile_report(const std::string& text) {
  Report report = sample_report();
  report.inputs.push_back({text, text, {}, text, true});
  report.inputs.push_back({text, "unknown", {}, text, false});
  Finding finding;
  finding.code = "mismatch-size";
  finding.severity = Severity::error;
  finding.subjects = {text, text};
  finding.summary = text;
  finding.explanation = text + "\n " + text;
  finding.evidence = {{text, 7, text}, {text, {}, text}};
  finding.advice = text;
  report.findings.insert(report.findings.begin(), finding);
  finding.code = text;
  finding.severity = Severity::warning;
  report.findings.push_back(finding);
  report.diagnostics.push_back({text, DiagnosticSeverity::error, 3, text});
  return report;
}

}  // namespace ddx::cli
