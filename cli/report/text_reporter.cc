// The report for people: the answer first, then who waits, why, what proves it and what to do; then what matters less;
// then what the evidence does not hold.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/units.h"
#include "cli/report/printable.h"
#include "cli/report/reporter.h"
#include "cli/report/text_layout.h"

namespace ddx::cli {
namespace {

constexpr std::size_t kFullFindings = 20;      // beyond them findings are counted by code
constexpr std::size_t kEvidenceLines = 4;      // a finding, unless verbose
constexpr std::size_t kExplanationLines = 40;  // a finding, unless verbose
constexpr std::size_t kNamedFiles = 5;
constexpr std::size_t kEvidenceColumns = 300;
constexpr std::size_t kDetail = 9;  // column of a detail's text

std::string counted(std::size_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", format_count(count), count == 1 ? one : many);
}

std::string_view label_of(Severity severity) {
  switch (severity) {
    case Severity::error: return "ERROR";
    case Severity::warning: return "WARNING";
    case Severity::info: return "INFO";
  }
  return "INFO";
}

Style style_of(Severity severity) {
  switch (severity) {
    case Severity::error: return Style::red;
    case Severity::warning: return Style::yellow;
    case Severity::info: return Style::blue;
  }
  return Style::plain;
}

void headline(Page& page, std::string_view label, Style style, const std::string& text) {
  page.paragraph(label, label.size() + 2, printable_line(text), style, Style::bold);
}

void headline(Page& page, const Finding& finding) {
  headline(page, label_of(finding.severity), style_of(finding.severity), finding.summary);
}

void detail(Page& page, std::string_view label, const std::string& text) {
  if (!text.empty()) page.paragraph(fmt::format("  {}", label), kDetail, text, Style::dim);
}

std::string what_of(const Finding& finding) {
  std::string text = fmt::format("{}, confidence {}", printable_line(finding.code), name_of(finding.confidence));
  for (const std::string& subject : finding.subjects) text += ", " + printable_line(subject);
  return text;
}

std::string who_of(const Finding& finding) {
  std::string text;
  if (!finding.ranks.empty()) text = finding.ranks.label();
  if (!finding.victims.empty()) {
    if (!text.empty()) text += "; ";
    text += finding.victims.label() + (finding.victims.size() == 1 ? " waits" : " wait");
  }
  return text;
}

std::string why_of(const Finding& finding, bool verbose) {
  std::string text = printable_lines(finding.explanation);
  std::size_t end = 0;
  for (std::size_t lines = 0; lines < kExplanationLines && end != std::string::npos; ++lines) {
    end = text.find('\n', end == 0 ? 0 : end + 1);
  }
  if (verbose || end == std::string::npos) return text;
  const auto more =
      static_cast<std::size_t>(std::count(text.begin() + static_cast<std::ptrdiff_t>(end) + 1, text.end(), '\n'));
  if (more == 0) return text;
  return text.substr(0, end) +
         fmt::format("\n... ({}, --verbose shows them)", counted(more, "line more", "lines more"));
}

std::string seen_of(const Finding& finding, bool verbose) {
  std::string text;
  const std::size_t shown = verbose ? finding.evidence.size() : std::min(finding.evidence.size(), kEvidenceLines);
  for (std::size_t i = 0; i < shown; ++i) {
    const EvidenceLine& line = finding.evidence[i];
    if (!text.empty()) text += '\n';
    if (!line.path.empty()) text += printable_line(line.path);
    if (!line.path.empty() && line.line) text += fmt::format(":{}", *line.line);
    if (!line.path.empty()) text += ": ";
    const std::string said = printable_line(line.text);
    text += verbose ? said : shortened(said, kEvidenceColumns);
  }
  if (shown < finding.evidence.size()) {
    text += fmt::format("\n... and {} more (--verbose shows them)", finding.evidence.size() - shown);
  }
  return text;
}

void in_full(Page& page, const Finding& finding, bool verbose) {
  headline(page, finding);
  detail(page, "what", what_of(finding));
  detail(page, "who", who_of(finding));
  detail(page, "why", why_of(finding, verbose));
  detail(page, "seen", seen_of(finding, verbose));
  detail(page, "do", printable_lines(finding.advice));
}

void in_short(Page& page, const Finding& finding) {
  headline(page, finding);
  detail(page, "what", what_of(finding));
  detail(page, "do", printable_lines(finding.advice));
}

// "3 more of mismatch-size, 1 more of dead-rank".
void count_rest(Page& page, const std::vector<Finding>& findings, std::size_t from) {
  std::map<std::string, std::size_t> codes;
  for (std::size_t i = from; i < findings.size(); ++i) ++codes[findings[i].code];
  std::string text;
  for (const auto& [code, count] : codes) {
    text += fmt::format("{}{} of {}", text.empty() ? "" : ", ", format_count(count), printable_line(code));
  }
  page.blank();
  page.paragraph("And more:", 10, text + " (--verbose shows them)");
}

void show_findings(Page& page, const Report& report, const RenderOptions& options) {
  const std::vector<Finding>& findings = report.findings;
  const std::size_t shown = options.verbose ? findings.size() : std::min(findings.size(), kFullFindings);
  Severity worst = Severity::info;
  for (const Finding& finding : findings) worst = std::max(worst, finding.severity);
  for (std::size_t i = 0; i < shown; ++i) {
    if (options.quiet) {
      headline(page, findings[i]);
      continue;
    }
    page.blank();
    if (options.verbose || findings[i].severity == worst) {
      in_full(page, findings[i], options.verbose);
    } else {
      in_short(page, findings[i]);
    }
  }
  if (shown < findings.size()) count_rest(page, findings, shown);
}

void show_no_finding(Page& page, const Report& report) {
  if (!report.sufficient) {
    headline(page, "INCONCLUSIVE", Style::yellow,
             "the evidence does not suffice to judge: nothing in it speaks of a job");
    return;
  }
  std::string of;
  if (!report.ranks_seen.empty()) of = " of " + counted(report.ranks_seen.size(), "rank", "ranks");
  headline(page, "CLEAN", Style::green, "nothing wrong found in the evidence" + of);
}

// "3 files of no format that ddx knows: a, b, c".
void list_files(Page& page, const std::vector<const ReportInput*>& files, std::string_view what, bool notes, bool all) {
  if (files.empty()) return;
  const std::size_t shown = all ? files.size() : std::min(files.size(), kNamedFiles);
  std::string text = counted(files.size(), "file", "files") + std::string(what);
  for (std::size_t i = 0; i < shown; ++i) {
    text += (i == 0 ? " " : ", ") + printable_line(files[i]->path);
    if (notes && !files[i]->note.empty()) text += " (" + shortened(printable_line(files[i]->note), 120) + ")";
  }
  if (shown < files.size()) text += fmt::format(", and {} more", format_count(files.size() - shown));
  page.paragraph("  -", 4, text);
}

// Diagnostics of the loader are told as lists of files.
bool told_as_files(const Diagnostic& diagnostic) {
  return diagnostic.name == "load.unknown_file" || diagnostic.name == "load.unreadable_file" ||
         diagnostic.name == "load.failed_file" || diagnostic.name == "load.compressed_file" ||
         diagnostic.name == "load.empty_file";
}

void show_holes(Page& page, const Report& report, const RenderOptions& options) {
  Page holes = page.fresh();
  if (!report.ranks_absent.empty()) {
    std::string text = "nothing from " + report.ranks_absent.label();
    if (report.world_size) text += fmt::format(" of {}", format_count(*report.world_size));
    holes.paragraph("  -", 4, text);
  }
  std::vector<const ReportInput*> unreadable, unknown, partial, left;
  for (const ReportInput& input : report.inputs) {
    if (input.unreadable) {
      unreadable.push_back(&input);
    } else if (input.format == "unknown") {
      unknown.push_back(&input);
    } else if (input.format == "launch") {
      left.push_back(&input);
    } else if (!input.note.empty()) {
      partial.push_back(&input);
    }
  }
  list_files(holes, unreadable, " that could not be read:", true, options.verbose);
  list_files(holes, partial, " read in part:", true, options.verbose);
  list_files(holes, unknown, " left out:", true, options.verbose);
  list_files(holes, left, " that describe the launch, left for 'ddx check':", false, options.verbose);
  for (const Diagnostic& diagnostic : report.diagnostics) {
    const bool loud =
        diagnostic.severity == DiagnosticSeverity::data_loss || diagnostic.severity == DiagnosticSeverity::error;
    if (told_as_files(diagnostic) || (!loud && !options.verbose)) continue;
    holes.paragraph("  -", 4,
                    fmt::format("{} x {}: {}", format_count(diagnostic.count), printable_line(diagnostic.name),
                                shortened(printable_line(diagnostic.detail), kEvidenceColumns)));
  }
  const std::string text = holes.take();
  if (text.empty()) return;
  page.blank();
  page.paragraph("", 0, "What the evidence does not hold:");
  page.append(text);
}

void show_foot(Page& page, const Report& report) {
  std::size_t by_severity[3] = {0, 0, 0};
  for (const Finding& finding : report.findings) ++by_severity[static_cast<std::size_t>(finding.severity)];
  std::string text =
      fmt::format("{} ({}, {}, {}); ", name_of(report.verdict), counted(by_severity[2], "error", "errors"),
                  counted(by_severity[1], "warning", "warnings"), counted(by_severity[0], "note", "notes"));
  if (report.world_size) {
    text +=
        fmt::format("{} of {}", format_count(report.ranks_seen.size()), counted(*report.world_size, "rank", "ranks"));
  } else {
    text += counted(report.ranks_seen.size(), "rank", "ranks");
  }
  text += " seen in " + counted(report.inputs.size(), "file", "files") + ".";
  if (!report.findings.empty()) text += " More: ddx explain " + printable_line(report.findings.front().code);
  page.blank();
  page.paragraph("Verdict:", 9, text, Style::dim);
}

}  // namespace

std::string render_text(const Report& report, const RenderOptions& options) {
  Page page(options.width, options.color);
  show_findings(page, report, options);
  if (report.findings.empty()) show_no_finding(page, report);
  if (options.quiet) return page.take();
  show_holes(page, report, options);
  show_foot(page, report);
  return page.take();
}

}  // namespace ddx::cli
