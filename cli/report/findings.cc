#include "cli/report/findings.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "traces/formats/rank_of_path.h"

namespace ddx::cli {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' || c == '.';
}

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
}

// Where `name` stands as a word of its own it becomes "*".
void hide_name(std::string& text, std::string_view name) {
  if (name.empty()) return;
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at > 0 && is_word(text[at - 1])) || (end < text.size() && is_word(text[end]))) continue;
    text.replace(at, name.size(), "*");
  }
}

// "ranks 8,10-15 wait (group tp1, seq 11)" -> "rank # wait (group *, seq #)".
std::string shape_of(const Finding& finding) {
  std::string text = finding.summary;
  for (const std::string& subject : finding.subjects) {
    const std::size_t blank = subject.find(' ');
    if (blank != std::string::npos) hide_name(text, std::string_view(subject).substr(blank + 1));
  }
  std::string shape;
  for (std::size_t at = 0; at < text.size();) {
    if (!is_digit(text[at])) {
      shape += text[at++];
      continue;
    }
    while (at < text.size() && (is_digit(text[at]) || text[at] == ',' || text[at] == '-' || text[at] == '.')) ++at;
    shape += '#';
  }
  replace_all(shape, "ranks ", "rank ");
  replace_all(shape, " waits", " wait");
  replace_all(shape, "# (# rank)", "#");
  return shape;
}

// "... at /home/user/train.py:48 in step": the file and its line.
std::optional<FindingPlace> call_site_in(const EvidenceLine& seen) {
  static constexpr std::string_view kAt = ", at ";
  const std::size_t at = seen.text.rfind(kAt);
  if (at == std::string::npos) return std::nullopt;
  std::string_view site = std::string_view(seen.text).substr(at + kAt.size());
  site = site.substr(0, site.rfind(" in "));
  const std::size_t colon = site.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  const std::string_view digits = site.substr(colon + 1);
  std::uint32_t line = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), line);
  if (error != std::errc() || end != digits.data() + digits.size() || line == 0) return std::nullopt;
  return FindingPlace{std::string(site.substr(0, colon)), line, seen.text};
}

}  // namespace

Blame::Blame(const std::vector<Finding>& findings) {
  std::array<std::vector<RankId>, 3> ranks;
  for (const Finding& finding : findings) {
    for (std::size_t severity = 0; severity <= static_cast<std::size_t>(finding.severity); ++severity) {
      ranks[severity].insert(ranks[severity].end(), finding.ranks.begin(), finding.ranks.end());
    }
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) culprits_[i] = RankSet(std::move(ranks[i]));
}

RankSet Blame::waiting(const Finding& finding) const {
  return finding.victims.without(culprits_[static_cast<std::size_t>(finding.severity)]);
}

std::vector<std::vector<std::size_t>> alike(const std::vector<Finding>& findings) {
  std::vector<std::vector<std::size_t>> sets;
  std::map<std::tuple<std::string_view, Severity, Confidence, std::string>, std::size_t> index;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const Finding& finding = findings[i];
    const auto [at, fresh] =
        index.try_emplace({finding.code, finding.severity, finding.confidence, shape_of(finding)}, sets.size());
    if (fresh) sets.emplace_back();
    sets[at->second].push_back(i);
  }
  return sets;
}

FindingPlace place_of(const Finding& finding, const Report& report) {
  for (const EvidenceLine& line : finding.evidence) {
    if (auto site = call_site_in(line)) return *std::move(site);
  }
  for (const EvidenceLine& line : finding.evidence) {
    if (!line.path.empty()) return {line.path, line.line, line.text};
  }
  return {report.inputs.empty() ? "" : report.inputs.front().path, std::nullopt, ""};
}

bool is_empty_file(const ReportInput& input) { return input.format == "unknown" && input.note == "empty file"; }

bool is_empty_dump(const ReportInput& input) {
  if (!is_empty_file(input)) return false;
  std::string_view name = input.path;
  name.remove_prefix(name.rfind('/') + 1);  // npos: 0
  if (name.ends_with(".pickle") || name.ends_with(".pkl")) return true;
  if (name.ends_with(".json")) name.remove_suffix(5);
  if (name.empty() || !is_digit(name.back()) || name.find('.') != std::string_view::npos) return false;
  return formats::stated_rank(name) || name.find("trace") != std::string_view::npos ||
         name.find("dump") != std::string_view::npos;
}

bool describes_launch(const ReportInput& input) { return input.format == "launch" || input.format == "env-table"; }

bool is_loud(const Diagnostic& diagnostic) {
  return diagnostic.severity == DiagnosticSeverity::data_loss || diagnostic.severity == DiagnosticSeverity::error;
}

}  // namespace ddx::cli
