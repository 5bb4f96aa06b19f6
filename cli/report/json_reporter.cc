// The report schema "ddx.report/1": docs/report-schema.json. Keys are only ever added.
#include "cli/report/json_parts.h"
#include "cli/report/reporter.h"

namespace ddx::cli {
namespace {

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

Json json_of(const Simulation::Totals& totals) {
  return {
      {"ranks", rank_list(totals.ranks)},         {"end_ns", totals.end},         {"compute_ns", totals.compute},
      {"communication_ns", totals.communication}, {"bubble_ns", totals.bubble},   {"idle_ns", totals.idle},
      {"unattributed_ns", totals.unattributed},   {"waiting_ns", totals.waiting}, {"overlapped_ns", totals.overlapped}};
}

void add_simulation(Json& out, const Simulation& simulation) {
  Json assumed = Json::array();
  for (const std::string& sentence : simulation.assumed) assumed.push_back(sentence);
  out["simulation"] = {{"outcome", simulation.outcome},
                       {"ranks", simulation.ranks},
                       {"rank_ops", simulation.rank_ops},
                       {"classes", simulation.classes},
                       {"assumed", std::move(assumed)}};
  if (!simulation.untimed.empty()) out["simulation"]["untimed"] = simulation.untimed;
  if (!simulation.predicted) return;
  out["simulation"]["timed_by"] = simulation.timed_by;
  out["simulation"]["collectives"] = json_list(simulation.choices, [](const Simulation::Choice& choice) {
    return Json{{"kind", choice.kind},
                {"ranks", choice.ranks},
                {"least_bytes", choice.least_bytes},
                {"most_bytes", choice.most_bytes},
                {"algorithm", choice.algorithm},
                {"protocol", choice.protocol}};
  });
  out["predicted_ns"] = *simulation.predicted;
  out["rank_totals"] = json_list(simulation.totals, [](const Simulation::Totals& totals) { return json_of(totals); });
}

}  // namespace

std::string render_json(const Report& report, const RenderOptions&) {
  Json out;
  out["schema"] = "ddx.report/1";
  out["command"] = report.command;
  out["verdict"] = name_of(report.verdict);
  if (!report.reason.empty()) out["reason"] = report.reason;
  add_what_was_read(out, report);
  out["findings"] = json_list(report.findings, [](const Finding& finding) { return json_of(finding); });
  add_diagnostics(out, report);
  if (report.simulation) add_simulation(out, *report.simulation);
  return json_text(out);
}

}  // namespace ddx::cli
