#include "cli/commands/measured_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analyzers/scaling/scaling.h"
#include "base/units.h"
#include "cli/report/scaling_report.h"
#include "traces/formats/file_bytes.h"
#include "traces/formats/scaling_table.h"

namespace ddx::cli {
namespace {

Verdict verdict_of(const std::vector<Finding>& findings) {
  Severity worst = Severity::info;
  for (const Finding& finding : findings) worst = std::max(worst, finding.severity);
  return worst == Severity::error ? Verdict::error : worst == Severity::warning ? Verdict::warning : Verdict::clean;
}

Report report_of(const ScalingTable& table, const analyzers::ScalingAnswer& answer, const Diagnostics& diagnostics) {
  Report report;
  report.command = "predict";
  report.inputs.push_back({table.path, "scaling-table", {}, "", false});
  report.findings = answer.findings;
  std::stable_sort(report.findings.begin(), report.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  report.diagnostics = diagnostics.entries();
  report.verdict = verdict_of(report.findings);
  if (!answer.undecided.empty() && report.verdict != Verdict::error) {
    report.verdict = Verdict::inconclusive;
    report.sufficient = false;
    report.reason = answer.undecided;
  }
  const std::size_t rows = table.runs.size() + table.collectives.size();
  report.rows_read = fmt::format("{} row{}", format_count(rows), rows == 1 ? "" : "s");
  return report;
}

std::string rendered(const Report& report, const analyzers::ScalingAnswer& answer, const CommonOptions& common,
                     const Console& console) {
  const RenderOptions options = render_options(common, console);
  if (common.format == "json") return render_scaling_json(report, answer);
  std::string text = find_reporter(common.format)->render(report, options);
  if (common.format != "text" || common.quiet) return text;
  return scaling_table_text(answer) + "\n" + text;
}

}  // namespace

Exit judge_measured_table(const std::string& path, const CommonOptions& common, Console& console) {
  Diagnostics diagnostics;
  const formats::FileBytes file(path);
  const ScalingTable table = formats::read_scaling_table(path, file.view(), diagnostics);
  const analyzers::ScalingAnswer answer = analyzers::judge_scaling(table);
  const Report report = report_of(table, answer, diagnostics);
  write_output(rendered(report, answer, common, console), common, console);
  if (fails(report, threshold(common))) return Exit::findings;
  return report.verdict == Verdict::inconclusive ? Exit::insufficient : Exit::fine;
}

}  // namespace ddx::cli
