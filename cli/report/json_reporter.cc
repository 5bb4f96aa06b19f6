// The report schema "ddx.report/1": docs/report-schema.json. Keys are only ever added.
#include "cli/report/json_text.h"
#include "cli/report/reporter.h"

namespace ddx::cli {
namespace {

Json json_of(const ReportInput& input) {
  Json out{{"path", input.path}, {"format", input.format}, {"ranks", rank_list(input.ranks)}};
  if (!input.note.empty()) out["note"] = input.note;
  if (input.unreadable) out["unreadable"] = true;
  return out;
}

Json json_of(const EvidenceLine& line) {
  Json out{{"path", line.path}};
  if (line.line && *line.line > 0) out["line"] = *line.line;
  out["text"] = line.text;
  return out;
}

Json json_of(const Finding& finding) {
  Json evidence = Json::array();
  for (const EvidenceLine& line : finding.evidence) evidence.push_back(json_of(line));
  Json subjects = Json::array();
  for (const std::string& subject : finding.subjects) subjects.push_back(subject);
  return {{"code", finding.code},
          {"severity", name_of(finding.severity)},
          {"confidence", name_of(finding.confidence)},
          {"ranks", rank_list(finding.ranks)},
          {"victims", rank_list(finding.victims)},
          {"subjects", std::move(subjects)},
          {"summary", finding.summary},
          {"explanation", finding.explanation},
          {"evidence", std::move(evidence)},
          {"advice", finding.advice}};
}

Json json_of(const Diagnostic& diagnostic) {
  return {{"name", diagnostic.name},
          {"severity", name_of(diagnostic.severity)},
          {"count", diagnostic.count},
          {"detail", diagnostic.detail}};
}

template <class Item>
Json json_list(const std::vector<Item>& items) {
  Json list = Json::array();
  for (const Item& item : items) list.push_back(json_of(item));
  return list;
}

}  // namespace

std::string render_json(const Report& report, const RenderOptions&) {
  Json out;
  out["schema"] = "ddx.report/1";
  out["command"] = report.command;
  out["verdict"] = name_of(report.verdict);
  out["inputs"] = json_list(report.inputs);
  out["world_size"] = report.world_size ? Json(*report.world_size) : Json(nullptr);
  out["ranks_seen"] = rank_list(report.ranks_seen);
  out["ranks_absent"] = rank_list(report.ranks_absent);
  out["findings"] = json_list(report.findings);
  out["diagnostics"] = json_list(report.diagnostics);
  return json_text(out);
}

}  // namespace ddx::cli
