// JUnit XML: one suite a command, one case a finding, one passing case where there is none.
#include <fmt/format.h>

#include "cli/report/findings.h"
#include "cli/report/printable.h"
#include "cli/report/reporter.h"

namespace ddx::cli {
namespace {

// XML 1.0 knows no way to write these at all, not even escaped.
bool is_forbidden(char32_t c) {
  return (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0xfffe || c == 0xffff;
}

std::string escape(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    at += point.length;
    switch (point.value) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\r': out += "&#13;"; break;
      default: append_utf8(out, is_forbidden(point.value) ? U'\ufffd' : point.value);
    }
  }
  return out;
}

std::string attribute(std::string_view text) { return escape(printable_line(text)); }

std::string body_of(const Finding& finding, const Blame& blame) {
  std::string body = fmt::format("confidence: {}\n", name_of(finding.confidence));
  if (!finding.ranks.empty()) body += "at fault: " + finding.ranks.label() + '\n';
  if (const RankSet waiting = blame.waiting(finding); !waiting.empty()) body += "waiting: " + waiting.label() + '\n';
  const auto add = [&body](std::string_view part) {
    if (part.empty()) return;
    body += part;
    if (!body.ends_with('\n')) body += '\n';
  };
  add(finding.explanation);
  for (const EvidenceLine& line : finding.evidence) {
    const std::string path = printable_line(line.path);  // of one line, whatever its name
    add(line.line ? fmt::format("{}:{}: {}", path, *line.line, line.text) : path + ": " + line.text);
  }
  add(finding.advice);
  return escape(inert_lines(printable_lines(body)));
}

std::string case_of(const Report& report, const Finding& finding, const Blame& blame, bool failure) {
  const std::string open = fmt::format("    <testcase classname=\"ddx.{}\" name=\"{}\">\n", attribute(report.command),
                                       attribute(finding.code + ": " + finding.summary));
  const std::string body = body_of(finding, blame);
  if (!failure) return open + "      <system-out>" + body + "</system-out>\n    </testcase>\n";
  return open + fmt::format("      <failure type=\"{}\" message=\"{}\">{}</failure>\n    </testcase>\n",
                            attribute(finding.code), attribute(finding.summary), body);
}

// The case that stands for a report without a finding, or for what keeps it from an answer.
std::string evidence_case(const Report& report) {
  const std::string command = attribute(report.command);
  if (!report.sufficient) {
    return fmt::format(
        "    <testcase classname=\"ddx.{}\" name=\"evidence\">\n      <error type=\"insufficient\" "
        "message=\"the evidence does not suffice to judge: {}\"/>\n    </testcase>\n",
        command, attribute(report.reason));
  }
  if (!report.findings.empty()) return {};
  return fmt::format("    <testcase classname=\"ddx.{}\" name=\"nothing wrong found\"/>\n", command);
}

// What could not be read or used.
std::string losses_of(const Report& report) {
  std::string text;
  for (const Diagnostic& diagnostic : report.diagnostics) {
    if (!is_loud(diagnostic)) continue;
    text += fmt::format("{} x {}: {}\n", diagnostic.count, printable_line(diagnostic.name),
                        printable_line(diagnostic.detail));
  }
  return text.empty() ? "" : "    <system-err>" + escape(text) + "</system-err>\n";
}

}  // namespace

std::string render_junit(const Report& report, const RenderOptions& options) {
  const Blame blame(report.findings);
  std::string cases;
  std::size_t failures = 0;
  for (const Finding& finding : report.findings) {
    const bool failure = options.fail_on && finding.severity >= *options.fail_on;
    if (failure) ++failures;
    cases += case_of(report, finding, blame, failure);
  }
  const std::string evidence = evidence_case(report);
  const std::string counts =
      fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"0\"",
                  report.findings.size() + (evidence.empty() ? 0 : 1), failures, report.sufficient ? 0 : 1);
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"ddx\" {0}>\n  <testsuite name=\"ddx {1}\" "
      "{0}>\n{2}{3}{4}  </testsuite>\n</testsuites>\n",
      counts, attribute(report.command), cases, evidence, losses_of(report));
}

}  // namespace ddx::cli
