// Workflow commands of GitHub Actions: one annotation a finding.
#include <fmt/format.h>

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

std::string annotation(const Finding& finding, const RenderOptions& options) {
  std::string properties;
  if (!finding.evidence.empty() && !finding.evidence.front().path.empty()) {
    properties += "file=" + escape_property(finding.evidence.front().path) + ',';
    if (finding.evidence.front().line) properties += fmt::format("line={},", *finding.evidence.front().line);
  }
  properties += "title=" + escape_property("ddx: " + finding.code);
  std::string message = printable_line(finding.summary);
  if (!options.quiet) {
    for (const std::string& part : {finding.explanation, finding.advice}) {
      if (!part.empty()) message += '\n' + printable_lines(part);
      while (message.ends_with('\n')) message.pop_back();
    }
  }
  return fmt::format("::{} {}::{}\n", level_of(finding.severity), properties, escape_data(message));
}

}  // namespace

std::string render_github(const Report& report, const RenderOptions& options) {
  std::string out;
  for (const Finding& finding : report.findings) out += annotation(finding, options);
  if (!report.sufficient) {
    out += fmt::format("::warning title=ddx {}::the evidence does not suffice to judge\n", report.command);
  } else if (report.findings.empty()) {
    out += fmt::format("::notice title=ddx {}::nothing wrong found\n", report.command);
  }
  return out;
}

}  // namespace ddx::cli
