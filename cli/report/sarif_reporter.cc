// SARIF 2.1.0 (OASIS), as code hosts and editors take it.
#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <optional>

#include "cli/explain_pages.h"
#include "cli/report/findings.h"
#include "cli/report/json_text.h"
#include "cli/report/reporter.h"

namespace ddx::cli {
namespace {

std::string_view level_of(Severity severity) {
  switch (severity) {
    case Severity::error: return "error";
    case Severity::warning: return "warning";
    case Severity::info: return "note";
  }
  return "note";
}

std::string_view level_of(DiagnosticSeverity severity) {
  switch (severity) {
    case DiagnosticSeverity::error: return "error";
    case DiagnosticSeverity::data_loss: return "warning";
    case DiagnosticSeverity::notice:
    case DiagnosticSeverity::info: return "note";
  }
  return "note";
}

// A path as RFC 3986 writes it; an absolute one becomes a file URI, a relative one stays relative.
std::string uri_of(std::string_view path) {
  static constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
  std::string out = path.starts_with('/') ? "file://" : "";
  for (char c : path) {
    if (kPlain.find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

Json location_of(const std::string& path, std::optional<std::uint64_t> line, const std::string& text) {
  Json physical{{"artifactLocation", {{"uri", uri_of(path)}}}};
  if (line && *line > 0) physical["region"] = {{"startLine", *line}};
  Json out{{"physicalLocation", std::move(physical)}};
  if (!text.empty()) out["message"] = {{"text", text}};
  return out;
}

// One place, at which tools show the result, and what was seen elsewhere.
void add_locations(Json& result, const Finding& finding, const Report& report) {
  const FindingPlace place = place_of(finding, report);
  if (place.path.empty()) return;
  result["locations"] = Json::array({location_of(place.path, place.line, place.text)});
  Json related = Json::array();
  for (const EvidenceLine& line : finding.evidence) {
    const bool shown = line.path == place.path && line.line == place.line && line.text == place.text;
    if (!line.path.empty() && !shown) related.push_back(location_of(line.path, line.line, line.text));
  }
  if (!related.empty()) result["relatedLocations"] = std::move(related);
}

// The codes that the report uses, in order of first use.
struct Rules {
  Json list = Json::array();
  std::map<std::string, std::size_t> index;
};

Rules rules_of(const Report& report) {
  Rules rules;
  for (const Finding& finding : report.findings) {
    if (!rules.index.emplace(finding.code, rules.list.size()).second) continue;
    Json rule{{"id", finding.code}};
    if (const ExplainPage* page = find_page(finding.code)) {
      rule["shortDescription"] = {{"text", page->meaning}};
      rule["help"] = {{"text", page->what_to_do}};
    }
    rule["defaultConfiguration"] = {{"level", level_of(finding.severity)}};
    rules.list.push_back(std::move(rule));
  }
  return rules;
}

Json result_of(const Finding& finding, const Report& report, const Rules& rules) {
  std::string text = finding.summary;
  for (const std::string& part : {finding.explanation, finding.advice}) {
    if (!part.empty()) text += '\n' + part;
    while (text.ends_with('\n')) text.pop_back();
  }
  Json out{{"ruleId", finding.code},
           {"ruleIndex", rules.index.at(finding.code)},
           {"level", level_of(finding.severity)},
           {"message", {{"text", std::move(text)}}}};
  add_locations(out, finding, report);
  out["properties"] = {{"confidence", name_of(finding.confidence)},
                       {"ranks", rank_list(finding.ranks)},
                       {"victims", rank_list(finding.victims)},
                       {"subjects", finding.subjects}};
  return out;
}

Json invocation_of(const Report& report) {
  Json notifications = Json::array();
  for (const Diagnostic& diagnostic : report.diagnostics) {
    notifications.push_back(
        {{"descriptor", {{"id", diagnostic.name}}},
         {"level", level_of(diagnostic.severity)},
         {"message", {{"text", fmt::format("{} times, first: {}", diagnostic.count, diagnostic.detail)}}}});
  }
  if (!report.sufficient) {
    notifications.push_back({{"descriptor", {{"id", "evidence.insufficient"}}},
                             {"level", "error"},
                             {"message", {{"text", "the evidence does not suffice to judge: " + report.reason}}}});
  }
  Json out{{"executionSuccessful", report.sufficient}};
  if (!notifications.empty()) out["toolExecutionNotifications"] = std::move(notifications);
  return out;
}

}  // namespace

std::string render_sarif(const Report& report, const RenderOptions&) {
  const Rules rules = rules_of(report);
  Json results = Json::array();
  for (const Finding& finding : report.findings) results.push_back(result_of(finding, report, rules));
  Json driver{{"name", "ddx"}, {"version", DDX_VERSION}, {"rules", rules.list}};
  Json run;
  run["tool"] = {{"driver", std::move(driver)}};
  run["invocations"] = Json::array({invocation_of(report)});
  run["results"] = std::move(results);
  run["properties"] = {{"command", report.command}, {"verdict", name_of(report.verdict)}};
  Json out;
  out["$schema"] = "https://json.schemastore.org/sarif-2.1.0.json";
  out["version"] = "2.1.0";
  out["runs"] = Json::array({std::move(run)});
  return json_text(out);
}

}  // namespace ddx::cli
