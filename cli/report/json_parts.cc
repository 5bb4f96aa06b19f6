#include "cli/report/json_parts.h"

namespace ddx::cli {

Json json_of(const ReportInput& input) {
  Json out{{"path", input.path}, {"format", input.format}, {"ranks", rank_list(input.ranks)}};
  if (!input.note.empty()) out["note"] = input.note;
  if (input.unreadable) out["unreadable"] = true;
  return out;
}

Json json_of(const Diagnostic& diagnostic) {
  return {{"name", diagnostic.name},
          {"severity", name_of(diagnostic.severity)},
          {"count", diagnostic.count},
          {"detail", diagnostic.detail}};
}

void add_what_was_read(Json& document, const Report& report) {
  document["inputs"] = json_list(report.inputs, [](const ReportInput& input) { return json_of(input); });
  document["world_size"] = report.world_size ? Json(*report.world_size) : Json(nullptr);
  document["ranks_seen"] = rank_list(report.ranks_seen);
  document["ranks_absent"] = rank_list(report.ranks_absent);
}

void add_diagnostics(Json& document, const Report& report) {
  document["diagnostics"] = json_list(report.diagnostics, [](const Diagnostic& entry) { return json_of(entry); });
}

}  // namespace ddx::cli
