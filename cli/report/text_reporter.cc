// The report for people: the answer first, then who waits, why, what proves it and what to do; then what matters less;
// then what the evidence does not hold.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/counted.h"
#include "base/units.h"
#include "cli/report/findings.h"
#include "cli/report/printable.h"
#include "cli/report/reporter.h"
#include "cli/report/simulation_text.h"
#include "cli/report/text_layout.h"

namespace ddx::cli {
namespace {

constexpr std::size_t kFullFindings = 20;      // beyond them findings are counted by code
constexpr std::size_t kEvidenceLines = 4;      // a finding, unless verbose
constexpr std::size_t kExplanationLines = 40;  // a finding, unless verbose
constexpr std::size_t kNamedFiles = 5;
constexpr std::size_t kFewestAlike = 3;  // findings that say the same are told as one from here on
constexpr std::size_t kAlikeLines = 16;
constexpr std::size_t kAlikeColumns = 160;
constexpr std::size_t kEvidenceColumns = 300;
constexpr std::size_t kDetail = 9;  // column of a detail's text

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

std::string who_of(const Finding& finding, const Blame& blame) {
  std::string text;
  if (!finding.ranks.empty()) text = finding.ranks.label();
  if (const RankSet waiting = blame.waiting(finding); !waiting.empty()) {
    if (!text.empty()) text += "; ";
    text += waiting.label(8) + (waiting.size() == 1 ? " waits" : " wait");
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

void in_full(Page& page, const Finding& finding, const Blame& blame, bool verbose) {
  headline(page, finding);
  detail(page, "what", what_of(finding));
  detail(page, "who", who_of(finding, blame));
  detail(page, "why", why_of(finding, verbose));
  detail(page, "seen", seen_of(finding, verbose));
  detail(page, "do", printable_lines(finding.advice));
}

void in_short(Page& page, const Finding& finding) {
  headline(page, finding);
  detail(page, "what", what_of(finding));
  detail(page, "do", printable_lines(finding.advice));
}

// "group tp1, seq 11: rank 9": what one finding has of its own, where others say the same.
std::string own_of(const Finding& finding) {
  std::string text = fmt::format("{}", fmt::join(finding.subjects, ", "));
  if (!finding.ranks.empty()) text += (text.empty() ? "" : ": ") + finding.ranks.label(8);
  return shortened(printable_line(text.empty() ? finding.summary : text), kAlikeColumns);
}

// What follows the first of a set of findings that say the same.
void show_alike(Page& page, const std::vector<Finding>& findings, const std::vector<std::size_t>& set, bool quiet) {
  const Finding& first = findings[set.front()];
  std::vector<RankId> ranks;
  std::string own;
  const std::size_t shown = std::min(set.size(), 1 + kAlikeLines);
  for (std::size_t i = 1; i < set.size(); ++i) {
    const Finding& finding = findings[set[i]];
    ranks.insert(ranks.end(), finding.ranks.begin(), finding.ranks.end());
    if (i < shown) own += (i == 1 ? "" : "\n") + own_of(finding);
  }
  if (shown < set.size()) {
    own += fmt::format("\n... and {} more (--verbose shows all in full)", format_count(set.size() - shown));
  }
  std::string text = fmt::format("{} more like this one ({})", format_count(set.size() - 1), first.code);
  const RankSet culprits(std::move(ranks));
  if (!culprits.empty()) text += ": " + culprits.label(8);
  if (!quiet) page.blank();
  headline(page, label_of(first.severity), style_of(first.severity), text);
  if (!quiet) detail(page, "each", own);
}

// "3 more of mismatch-size, 1 more of dead-rank".
void count_rest(Page& page, const std::vector<Finding>& findings, const std::vector<std::vector<std::size_t>>& sets) {
  std::map<std::string, std::size_t> codes;
  for (std::size_t i = kFullFindings; i < sets.size(); ++i) codes[findings[sets[i].front()].code] += sets[i].size();
  std::string text;
  for (const auto& [code, count] : codes) {
    text += fmt::format("{}{} of {}", text.empty() ? "" : ", ", format_count(count), printable_line(code));
  }
  page.blank();
  page.paragraph("And more:", 10, text + " (--verbose shows them)");
}

// Sets of findings to show in one place: those that say the same, where that makes it shorter.
std::vector<std::vector<std::size_t>> sets_to_show(const std::vector<Finding>& findings, bool verbose) {
  std::vector<std::vector<std::size_t>> sets;
  for (std::vector<std::size_t>& set : alike(findings)) {
    if (!verbose && set.size() >= kFewestAlike) {
      sets.push_back(std::move(set));
    } else {
      for (const std::size_t i : set) sets.push_back({i});
    }
  }
  std::sort(sets.begin(), sets.end());
  return sets;
}

void show_findings(Page& page, const Report& report, const RenderOptions& options) {
  const std::vector<Finding>& findings = report.findings;
  const Blame blame(findings);
  const std::vector<std::vector<std::size_t>> sets = sets_to_show(findings, options.verbose);
  const std::size_t shown = options.verbose ? sets.size() : std::min(sets.size(), kFullFindings);
  Severity worst = Severity::info;
  for (const Finding& finding : findings) worst = std::max(worst, finding.severity);
  for (std::size_t i = 0; i < shown; ++i) {
    const Finding& finding = findings[sets[i].front()];
    if (!options.quiet) page.blank();
    if (options.quiet) {
      headline(page, finding);
    } else if (options.verbose || finding.severity == worst || !report.rows_read.empty()) {  // of a table there are few
      in_full(page, finding, blame, options.verbose);
    } else {
      in_short(page, finding);
    }
    if (sets[i].size() > 1) show_alike(page, findings, sets[i], options.quiet);
  }
  if (shown < sets.size()) count_rest(page, findings, sets);
}

// The only reason for which nothing was judged: a file that cannot be read. Null: another one.
const ReportInput* unread_reason(const Report& report) {
  if (report.sufficient || report.inputs.size() != 1 || !report.inputs.front().unreadable) return nullptr;
  const ReportInput& input = report.inputs.front();
  return report.reason == input.path + ": " + input.note ? &input : nullptr;
}

void show_insufficient(Page& page, const Report& report) {
  if (report.sufficient) return;
  if (const ReportInput* input = unread_reason(report)) {
    return headline(page, "INCONCLUSIVE", Style::yellow,
                    fmt::format("nothing was judged: {}: {}", input->path, input->note));
  }
  headline(page, "INCONCLUSIVE", Style::yellow, "the evidence does not suffice to judge: " + report.reason);
}

void show_clean(Page& page, const Report& report) {
  const bool wrong = std::any_of(report.findings.begin(), report.findings.end(),
                                 [](const Finding& f) { return f.severity == Severity::error; });
  // What completes does so whatever it is warned of.
  if (report.sufficient && !wrong && report.simulation) return show_completes(page, *report.simulation);
  if (!report.sufficient || !report.findings.empty()) return;
  std::string of;
  if (!report.ranks_seen.empty()) of = " of " + counted(report.ranks_seen.size(), "rank", "ranks");
  headline(page, "CLEAN", Style::green, "nothing wrong found in the evidence" + of);
}

// "3 files left out: a, b, c". `what`: of one file, of many.
void list_files(Page& page, const std::vector<const ReportInput*>& files, std::array<std::string_view, 2> what,
                bool notes, bool all) {
  if (files.empty()) return;
  const std::size_t shown = all ? files.size() : std::min(files.size(), kNamedFiles);
  std::string text = counted(files.size(), what[0], what[1]);
  for (std::size_t i = 0; i < shown; ++i) {
    text += (i == 0 ? " " : ", ") + printable_line(files[i]->path);
    if (notes && !files[i]->note.empty()) text += " (" + shortened(printable_line(files[i]->note), 120) + ")";
  }
  if (shown < files.size()) text += fmt::format(", and {} more", format_count(files.size() - shown));
  page.paragraph("  -", 4, text);
}

// What was not used, by what is the matter with it.
void show_files(Page& page, const Report& report, bool all) {
  std::vector<const ReportInput*> unreadable, unknown, partial, launch, empty_dumps, empty;
  const ReportInput* told = unread_reason(report);
  for (const ReportInput& input : report.inputs) {
    if (&input == told) continue;  // the headline has it
    if (input.unreadable) {
      unreadable.push_back(&input);
    } else if (is_empty_file(input)) {
      (is_empty_dump(input) ? empty_dumps : empty).push_back(&input);
    } else if (input.format == "unknown") {
      unknown.push_back(&input);
    } else if (describes_launch(input)) {
      launch.push_back(&input);
    } else if (!input.note.empty()) {
      partial.push_back(&input);
    }
  }
  list_files(page, unreadable, {"file that could not be read:", "files that could not be read:"}, true, all);
  list_files(page, empty_dumps, {"empty dump:", "empty dumps:"}, false, all);
  list_files(page, partial, {"file read in part:", "files read in part:"}, true, all);
  list_files(page, unknown, {"file left out:", "files left out:"}, true, all);
  list_files(page, launch,
             {"file that describes the launch, which this version does not judge:",
              "files that describe the launch, which this version does not judge:"},
             false, all);
  // The log of a process that printed nothing is empty by right.
  if (all) list_files(page, empty, {"empty file:", "empty files:"}, false, all);
}

// Diagnostics of the loader are told as lists of files.
bool told_as_files(const Diagnostic& diagnostic) {
  return diagnostic.name == "load.unknown_file" || diagnostic.name == "load.unreadable_file" ||
         diagnostic.name == "load.failed_file" || diagnostic.name == "load.compressed_file" ||
         diagnostic.name == "load.wide_text" || diagnostic.name == "load.empty_file";
}

// What the headline says is not told again.
bool told_above(const Report& report, const Diagnostic& diagnostic) {
  return !report.sufficient && diagnostic.count == 1 && diagnostic.detail == report.reason;
}

// Ranks without a record, but for those that a finding is about.
RankSet ranks_not_told(const Report& report) {
  RankSet told;
  for (const Finding& finding : report.findings) {
    if (finding.code == "rank-missing") told.insert(finding.ranks);
  }
  return report.ranks_absent.without(told);
}

void show_holes(Page& page, const Report& report, const RenderOptions& options) {
  Page holes = page.fresh();
  if (const RankSet absent = ranks_not_told(report); absent.size() > report.unnumbered) {
    std::string text = "nothing from " + absent.label();
    if (report.world_size) text += fmt::format(" of {}", format_count(*report.world_size));
    holes.paragraph("  -", 4, text);
  }
  show_files(holes, report, options.verbose);
  for (const Diagnostic& diagnostic : report.diagnostics) {
    if (told_as_files(diagnostic) || told_above(report, diagnostic) || (!is_loud(diagnostic) && !options.verbose))
      continue;
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
  if (!report.rows_read.empty()) {
    text += report.rows_read + " read";
  } else if (report.world_size) {
    text += fmt::format("{} of {} seen", format_count(report.ranks_seen.size()),
                        counted(*report.world_size, "rank", "ranks"));
  } else {
    text += counted(report.ranks_seen.size(), "rank", "ranks") + " seen";
  }
  text += " in " + counted(report.inputs.size(), "file", "files") + ".";
  if (!report.findings.empty()) text += " More: ddx explain " + printable_line(report.findings.front().code);
  page.blank();
  page.paragraph("Verdict:", 9, text, Style::dim);
}

}  // namespace

std::string render_text(const Report& report, const RenderOptions& options) {
  Page page(options.width, options.color);
  show_insufficient(page, report);
  show_clean(page, report);
  show_findings(page, report, options);
  if (options.quiet) return page.take();
  if (report.simulation) show_simulation(page, *report.simulation, !report.sufficient);
  if (report.simulation && options.verbose) show_choices(page, *report.simulation);
  show_holes(page, report, options);
  show_foot(page, report);
  return page.take();
}

}  // namespace ddx::cli
