// The inventory for people.
#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "cli/report/inventory.h"
#include "cli/report/printable.h"
#include "cli/report/text_layout.h"

namespace ddx::cli {
namespace {

constexpr std::size_t kGroups = 12;    // described one by one, unless verbose
constexpr std::size_t kSequences = 6;  // ranges of one group, unless verbose
constexpr std::size_t kNamedFiles = 5;
constexpr std::size_t kNamedHosts = 16;
constexpr std::size_t kColumn = 14;

std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", format_count(count), count == 1 ? one : many);
}

// "512 all_reduce, 8 barrier".
std::string counts_text(const std::map<std::string, std::uint64_t>& counts) {
  std::string text;
  for (const auto& [name, count] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", format_count(count), printable_line(name));
  }
  return text;
}

class InfoPage {
 public:
  InfoPage(const Inventory& inventory, Page page, bool verbose)
      : inventory_(inventory), report_(inventory.report), page_(std::move(page)), verbose_(verbose) {}

  std::string text(bool quiet) {
    files();
    ranks();
    if (quiet) return page_.take();
    named("hosts", inventory_.hosts);
    named("backends", inventory_.backends);
    named("library", inventory_.versions);
    holes();
    groups();
    events();
    diagnostics();
    return page_.take();
  }

 private:
  void row(std::string_view label, const std::string& text) { page_.paragraph(label, kColumn, text, Style::bold); }

  void files() {
    std::string text = counted(report_.inputs.size(), "file", "files");
    for (const auto& [name, count] : inventory_.formats) {
      text += fmt::format("\n{} {}", format_count(count.files), printable_line(name));
      if (!count.ranks.empty()) text += " (" + count.ranks.label() + ")";
    }
    row("files", text);
    std::string notes;
    std::size_t shown = 0, hidden = 0;
    for (const ReportInput& input : report_.inputs) {
      if (input.note.empty()) continue;
      if (!verbose_ && shown == kNamedFiles) {
        ++hidden;
        continue;
      }
      ++shown;
      notes += fmt::format("{}{}: {}", notes.empty() ? "" : "\n", printable_line(input.path),
                           shortened(printable_line(input.note), 200));
    }
    if (hidden > 0) notes += fmt::format("\n... and {} (--verbose shows them)", counted(hidden, "more", "more"));
    if (!notes.empty()) row("not whole", notes);
  }

  void ranks() {
    std::string text = report_.ranks_seen.empty() ? "none named" : report_.ranks_seen.text();
    if (!report_.ranks_seen.empty()) text += fmt::format(" ({})", format_count(report_.ranks_seen.size()));
    text += report_.world_size ? fmt::format("; world size {}", format_count(*report_.world_size))
                               : "; world size not stated";
    row("ranks seen", text);
    if (!report_.ranks_absent.empty()) {
      row("ranks absent",
          fmt::format("{} ({})", report_.ranks_absent.text(), format_count(report_.ranks_absent.size())));
    }
  }

  void named(std::string_view label, const std::map<std::string, RankSet>& sets) {
    if (sets.empty()) return;
    std::string text;
    std::size_t shown = 0;
    for (const auto& [name, ranks] : sets) {
      if (!verbose_ && shown == kNamedHosts) {
        text += fmt::format("\n... and {} more (--verbose shows them)", sets.size() - shown);
        break;
      }
      text += fmt::format("{}{}: {}", shown == 0 ? "" : "\n", printable_line(name), ranks.label(8));
      ++shown;
    }
    row(label, text);
  }

  void holes() {
    std::string text;
    const auto add = [&text](const RankSet& ranks, std::string_view what) {
      if (ranks.empty()) return;
      text += fmt::format("{}{}: {}", text.empty() ? "" : "\n", what, ranks.label());
    };
    add(inventory_.head_lost, "buffer overran, earlier operations are gone");
    add(inventory_.tail_lost, "file cut, later operations are gone");
    add(inventory_.claimed_twice, "more than one record claims");
    if (inventory_.records_without_rank > 0) {
      text += fmt::format("{}{} without a rank", text.empty() ? "" : "\n",
                          counted(inventory_.records_without_rank, "record", "records"));
    }
    if (!text.empty()) row("holes", text);
  }

  std::string sequences_of(const GroupInventory& group) const {
    std::string text;
    std::size_t shown = 0;
    for (const auto& [range, ranks] : group.sequences) {
      if (!verbose_ && shown == kSequences) {
        text += fmt::format("\n... and {} more ranges (--verbose shows them)", group.sequences.size() - shown);
        break;
      }
      text +=
          fmt::format("{}{}-{}: {}", shown == 0 ? "" : "\n", range.first, range.second,
                      group.sequences.size() == 1 ? "all " + counted(ranks.size(), "rank", "ranks") : ranks.label(8));
      ++shown;
    }
    return text;
  }

  void group(const GroupInventory& group) {
    page_.blank();
    std::string title = printable_line(group.name);
    if (!group.description.empty() && group.description != group.name)
      title += " (" + printable_line(group.description) + ")";
    row("group", title);
    std::string members = group.size ? counted(*group.size, "member", "members") : "size not recorded";
    if (!group.members.empty()) members += ": " + group.members.text();
    const RankSet unseen = group.members.without(group.seen);
    if (!unseen.empty()) members += fmt::format("; no record of {}", unseen.text());
    row("  members", members);
    row("  operations", group.operations.empty() ? "none recorded" : counts_text(group.operations));
    if (!group.states.empty()) row("  states", counts_text(group.states));
    if (!group.sequences.empty()) row("  sequence", sequences_of(group));
  }

  void groups() {
    if (inventory_.groups.empty()) return;
    page_.blank();
    row("operations", fmt::format("{} in {}, {}", format_count(inventory_.operations),
                                  counted(inventory_.records, "record", "records"),
                                  counted(inventory_.groups.size(), "group", "groups")));
    const std::size_t shown = verbose_ ? inventory_.groups.size() : std::min(inventory_.groups.size(), kGroups);
    for (std::size_t i = 0; i < shown; ++i) group(inventory_.groups[i]);
    if (shown < inventory_.groups.size()) {
      page_.blank();
      page_.paragraph("", 0,
                      fmt::format("... and {} more groups (--verbose shows them)", inventory_.groups.size() - shown));
    }
  }

  void events() {
    if (inventory_.events.empty()) return;
    page_.blank();
    std::string text;
    for (const auto& [name, kind] : inventory_.events) {
      text += fmt::format("{}{} {}", text.empty() ? "" : "\n", format_count(kind.count), name);
      if (!kind.ranks.empty()) text += ": " + kind.ranks.label(8);
    }
    row("log events", text);
  }

  void diagnostics() {
    if (report_.diagnostics.empty()) return;
    page_.blank();
    std::string text;
    for (const Diagnostic& diagnostic : report_.diagnostics) {
      text += fmt::format("{}{} x {} ({}): {}", text.empty() ? "" : "\n", format_count(diagnostic.count),
                          printable_line(diagnostic.name), name_of(diagnostic.severity),
                          shortened(printable_line(diagnostic.detail), 200));
    }
    row("diagnostics", text);
  }

  const Inventory& inventory_;
  const Report& report_;
  Page page_;
  bool verbose_;
};

}  // namespace

std::string render_info_text(const Inventory& inventory, std::size_t width, bool color, bool quiet, bool verbose) {
  return InfoPage(inventory, Page(width, color), verbose).text(quiet);
}

}  // namespace ddx::cli
