#include "cli/report/simulation_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/counted.h"
#include "cli/report/printable.h"

namespace ddx::cli {
namespace {

constexpr std::size_t kTotalsShown = 12;

std::string share(Nanos part, Nanos whole) {
  return fmt::format("{:.1f} %", whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string parts_of(const Simulation::Totals& t, Nanos whole) {
  return fmt::format("  {:>9} {:>10} {:>13} {:>8} {:>8} {:>12} {:>12}", share(t.compute, whole),
                     share(t.overlapped, whole), share(t.communication, whole), share(t.bubble, whole),
                     share(t.idle, whole), share(t.unattributed, whole), format_duration(t.end));
}

// Ranks whose lines would read alike are told in one, at the place of the first.
std::vector<std::pair<std::string, std::vector<RankId>>> lines_of(const Simulation& simulation) {
  std::vector<std::pair<std::string, std::vector<RankId>>> lines;
  std::unordered_map<std::string, std::size_t> places;
  for (const Simulation::Totals& totals : simulation.totals) {
    std::string text = parts_of(totals, *simulation.predicted);
    const auto [at, fresh] = places.try_emplace(text, lines.size());
    if (fresh) lines.emplace_back(std::move(text), std::vector<RankId>());
    auto& ranks = lines[at->second].second;
    ranks.insert(ranks.end(), totals.ranks.begin(), totals.ranks.end());
  }
  return lines;
}

void show_totals(Page& page, const Simulation& simulation) {
  page.blank();
  page.paragraph("", 0, "Where the time goes:");
  page.paragraph("", 0,
                 fmt::format("  {:>9} {:>10} {:>13} {:>8} {:>8} {:>12} {:>12}  {}", "computing", "overlapped",
                             "communicating", "bubble", "idle", "unattributed", "ends after", "ranks"));
  const auto lines = lines_of(simulation);
  const std::size_t shown = std::min(lines.size(), kTotalsShown);
  for (std::size_t i = 0; i < shown; ++i) {
    page.paragraph("", 0, fmt::format("{}  {}", lines[i].first, RankSet(lines[i].second).text(4)));
  }
  if (shown < lines.size()) {
    page.paragraph("", 0,
                   fmt::format("  ... and {} of rank (--format json has all)",
                               counted(lines.size() - shown, "more kind", "more kinds")));
  }
}

}  // namespace

void show_completes(Page& page, const Simulation& simulation) {
  const std::string_view all = simulation.ranks == 1 ? "runs to its end" : "run to their end";
  std::string text = fmt::format("{} {}, {}", counted(simulation.ranks, "rank", "ranks"), all,
                                 counted(simulation.rank_ops, "operation", "operations"));
  if (simulation.predicted) text += fmt::format(", in {}", format_duration(*simulation.predicted));
  page.paragraph("COMPLETES", 11, text, Style::green, Style::bold);
}

void show_simulation(Page& page, const Simulation& simulation, bool told) {
  if (simulation.predicted) {
    page.blank();
    page.paragraph("Time:", 6,
                   fmt::format("{} ({} ns), by {}", format_duration(*simulation.predicted),
                               format_count(static_cast<std::uint64_t>(*simulation.predicted)),
                               printable_line(simulation.timed_by)));
    show_totals(page, simulation);
  }
  if (!told && !simulation.untimed.empty()) {
    page.blank();
    page.paragraph("Time:", 6, "none; " + printable_line(simulation.untimed));
  }
  if (simulation.assumed.empty()) return;
  page.blank();
  page.paragraph("", 0, "Assumed:");
  for (const std::string& sentence : simulation.assumed) page.paragraph("  -", 4, printable_line(sentence));
}

void show_choices(Page& page, const Simulation& simulation) {
  if (simulation.choices.empty()) return;
  page.blank();
  page.paragraph("", 0, "Collectives take:");
  for (const Simulation::Choice& choice : simulation.choices) {
    std::string bytes = counted(choice.most_bytes, "byte", "bytes");
    if (choice.least_bytes != choice.most_bytes) bytes = format_count(choice.least_bytes) + " to " + bytes;
    page.paragraph("  -", 4,
                   fmt::format("{} on {}, {}: {}{}{}", choice.kind, counted(choice.ranks, "rank", "ranks"), bytes,
                               choice.algorithm, choice.protocol.empty() ? "" : "/", choice.protocol));
  }
}

}  // namespace ddx::cli
