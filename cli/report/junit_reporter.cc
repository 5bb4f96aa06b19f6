// JUnit XML: one suite a command, one case a finding, one passing case where there is none.
#include <fmt/format.h>

#include <algorithm>

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

std::string body_of(const Finding& finding) {
  std::string body = fmt::format("confidence: {}\n", name_of(finding.confidence));
  if (!finding.ranks.empty()) body += "at fault: " + finding.ranks.label() + '\n';
  if (!finding.victims.empty()) body += "waiting: " + finding.victims.label() + '\n';
  const auto add = [&body](std::string_view part) {
    if (part.empty()) return;
    body += part;
    if (!body.ends_with('\n')) body += '\n';
  };
  add(finding.explanation);
  for (const EvidenceLine& line : finding.evidence) {
    add(line.line ? fmt::format("{}:{}: {}", line.path, *line.line, line.text) : line.path + ": " + line.text);
  }
  add(finding.advice);
  return escape(printable_lines(body));
}

std::string case_of(const Report& report, const Finding& finding, bool failure) {
  const std::string open = fmt::format("    <testcase classname=\"ddx.{}\" name=\"{}\">\n", attribute(report.command),
                                       attribute(finding.code + ": " + finding.summary));
  const std::string body = body_of(finding);
  if (!failure) return open + "      <system-out>" + body + "</system-out>\n    </testcase>\n";
  return open + fmt::format("      <failure type=\"{}\" message=\"{}\">{}</failure>\n    </testcase>\n",
                            attribute(finding.code), attribute(finding.summary), body);
}

}  // namespace

std::string render_junit(const Report& report, const RenderOptions& options) {
  std::string cases;
  std::size_t failures = 0;
  for (const Finding& finding : report.findings) {
    const bool failure = options.fail_on && finding.severity >= *options.fail_on;
    if (failure) ++failures;
    cases += case_of(report, finding, failure);
  }
  const std::string command = attribute(report.command);
  const bool errored = !report.sufficient;
  if (report.findings.empty()) {
    cases += errored ? fmt::format(
                           "    <testcase classname=\"ddx.{}\" name=\"evidence\">\n      <error type=\"insufficient\" "
                           "message=\"the evidence does not suffice to judge\"/>\n    </testcase>\n",
                           command)
                     : fmt::format("    <testcase classname=\"ddx.{}\" name=\"nothing wrong found\"/>\n", command);
  }
  const std::string counts = fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"0\"",
                                         std::max<std::size_t>(report.findings.size(), 1), failures, errored ? 1 : 0);
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"ddx\" {0}>\n  <testsuite name=\"ddx {1}\" "
      "{0}>\n{2}  "
      "</testsuite>\n</testsuites>\n",
      counts, command, cases);
}

}  // namespace ddx::cli
