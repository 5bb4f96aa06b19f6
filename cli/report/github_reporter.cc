// Workflow commands of GitHub Actions: one annotation a finding.
#include <fmt/format.h>

#include "cli/report/findings.h"
#include "cli/report/printable.h"
#include "cli/report/reporter.h"

namespace ddx::cli {
namespace {

std::string escape_data(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '%': out += "%25"; break;
      case '\r': out += "%0D"; break;
      case '\n': out += "%0A"; break;
      default: out += c;
    }
  }
  return out;
}

std::string escape_property(std::string_view text) {
  std::string out;
  for (char c : escape_data(printable_line(text))) {
    switch (c) {
      case ':': out += "%3A"; break;
      case ',': out += "%2C"; break;
      default: out += c;
    }
  }
  return out;
}

std::string_view level_of(Severity severity) {
  switch (severity) {
    case Severity::error: return "error";
    case Severity::warning: return "warning";
    case Severity::info: return "notice";
  }
  return "notice";
}

std::string who_of(const Finding& finding, const Blame& blame) {
  std::string text;
  if (!finding.ranks.empty()) text += "\nat fault: " + finding.ranks.label();
  if (const RankSet waiting = blame.waiting(finding); !waiting.empty()) text += "\nwaiting: " + waiting.label();
  return text;
}

std::string annotation(const Finding& finding, const Report& report, const Blame& blame, const RenderOptions& options) {
  std::string properties;
  const FindingPlace place = place_of(finding, report);
  if (!place.path.empty()) {
    properties += "file=" + escape_property(place.path) + ',';
    if (place.line && *place.line > 0) properties += fmt::format("line={},", *place.line);
  }
  properties +=
      "title=" + escape_property(fmt::format("ddx: {} [{} confidence]", finding.code, name_of(finding.confidence)));
  std::string message = printable_line(finding.summary) + who_of(finding, blame);
  if (!options.quiet) {
    for (const std::string& part : {finding.explanation, finding.advice}) {
      if (!part.empty()) message += '\n' + printable_lines(part);
      while (message.ends_with('\n')) message.pop_back();
    }
  }
  return fmt::format("::{} {}::{}\n", level_of(finding.severity), properties, escape_data(message));
}

// What could not be read or used is told where nobody looks into a report.
std::string annotation(const Diagnostic& diagnostic) {
  return fmt::format("::warning title={}::{}\n", escape_property("ddx: " + diagnostic.name),
                     escape_data(fmt::format("{} x: {}", diagnostic.count, printable_line(diagnostic.detail))));
}

}  // namespace

std::string render_github(const Report& report, const RenderOptions& options) {
  const Blame blame(report.findings);
  std::string out;
  for (const Finding& finding : report.findings) out += annotation(finding, report, blame, options);
  if (!report.sufficient) {
    out += fmt::format("::warning title=ddx {}::{}\n", report.command,
                       escape_data("the evidence does not suffice to judge: " + printable_line(report.reason)));
  } else if (report.findings.empty()) {
    out += fmt::format("::notice title=ddx {}::nothing wrong found\n", report.command);
  }
  for (const Diagnostic& diagnostic : report.diagnostics) {
    if (is_loud(diagnostic)) out += annotation(diagnostic);
  }
  return out;
}

}  // namespace ddx::cli
