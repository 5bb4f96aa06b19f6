// The inventory for people.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "base/counted.h"
#include "base/units.h"
#include "cli/report/findings.h"
#include "cli/report/group_sets.h"
#include "cli/report/inventory.h"
#include "cli/report/printable.h"
#include "cli/report/text_layout.h"
#include "cli/report/time_rows.h"

namespace ddx::cli {
namespace {

constexpr std::size_t kGroups = 12;      // described one by one, unless verbose
constexpr std::size_t kFewestAlike = 3;  // groups that are alike are told as one from here on, unless verbose
constexpr std::size_t kSequences = 6;    // ranges of one group, unless verbose
constexpr std::size_t kNamedFiles = 5;
constexpr std::size_t kNamedHosts = 16;
constexpr std::size_t kRanges = 16;  // of one list of ranks, unless verbose
constexpr std::size_t kColumn = 14;

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
    show_times(page_, inventory_.times, verbose_);
    events();
    diagnostics();
    return page_.take();
  }

 private:
  void row(std::string_view label, const std::string& text) { page_.paragraph(label, kColumn, text, Style::bold); }

  // A list of ranks: in full where that was asked for.
  std::size_t ranges(std::size_t otherwise = kRanges) const {
    return verbose_ ? std::numeric_limits<std::size_t>::max() : otherwise;
  }

  void files() {
    std::string text = counted(report_.inputs.size(), "file", "files");
    for (const auto& [name, count] : inventory_.formats) {
      text += fmt::format("\n{} {}", format_count(count.files), printable_line(name));
      if (!count.ranks.empty()) text += " (" + count.ranks.label(ranges()) + ")";
    }
    row("files", text);
    if (verbose_) each_file();
    std::vector<const ReportInput*> unread, unknown, partial, empty_dumps;
    std::size_t empty = 0, launch = 0;
    for (const ReportInput& input : report_.inputs) {
      if (is_empty_dump(input)) {
        empty_dumps.push_back(&input);
      } else if (is_empty_file(input)) {
        ++empty;
      } else if (input.unreadable) {
        unread.push_back(&input);
      } else if (input.format == "unknown") {
        unknown.push_back(&input);
      } else if (describes_launch(input)) {
        ++launch;
      } else if (!input.note.empty()) {
        partial.push_back(&input);
      }
    }
    notes("unreadable", unread);
    notes("empty dump", empty_dumps);
    notes("not whole", partial);
    notes("left out", unknown);
    if (empty > 0) row("empty", counted(empty, "file", "files"));
    if (launch > 0) {
      row("launch", counted(launch, "file describes", "files describe") + " it; this version does not judge that");
    }
  }

  void each_file() {
    std::string text;
    for (const ReportInput& input : report_.inputs) {
      text +=
          fmt::format("{}{}: {}", text.empty() ? "" : "\n", printable_line(input.path), printable_line(input.format));
      if (!input.ranks.empty()) text += ", " + input.ranks.label(ranges());
    }
    if (!text.empty()) row("each file", text);
  }

  // What is the matter with each of `inputs`.
  void notes(std::string_view label, const std::vector<const ReportInput*>& inputs) {
    if (inputs.empty()) return;
    const std::size_t shown = verbose_ ? inputs.size() : std::min(inputs.size(), kNamedFiles);
    std::string text;
    for (std::size_t i = 0; i < shown; ++i) {
      text += fmt::format("{}{}: {}", i == 0 ? "" : "\n", printable_line(inputs[i]->path),
                          shortened(printable_line(inputs[i]->note), 200));
    }
    if (shown < inputs.size()) {
      text += fmt::format("\n... and {} more (--verbose shows them)", format_count(inputs.size() - shown));
    }
    row(label, text);
  }

  void ranks() {
    std::string text = report_.ranks_seen.empty() ? "none named" : report_.ranks_seen.text(ranges());
    if (!report_.ranks_seen.empty()) text += fmt::format(" ({})", format_count(report_.ranks_seen.size()));
    text += report_.world_size ? fmt::format("; world size {}", format_count(*report_.world_size))
                               : "; world size not stated";
    row("ranks seen", text);
    if (report_.ranks_absent.size() > report_.unnumbered) {
      row("ranks absent",
          fmt::format("{} ({})", report_.ranks_absent.text(ranges()), format_count(report_.ranks_absent.size())));
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
      text += fmt::format("{}{}: {}", shown == 0 ? "" : "\n", printable_line(name), ranks.label(ranges(8)));
      ++shown;
    }
    row(label, text);
  }

  void holes() {
    std::string text;
    const auto add = [this, &text](const RankSet& ranks, std::string_view what) {
      if (ranks.empty()) return;
      text += fmt::format("{}{}: {}", text.empty() ? "" : "\n", what, ranks.label(ranges()));
    };
    add(inventory_.head_lost, "begins late, earlier operations are not in it");
    add(inventory_.tail_lost, "ends early, later operations are not in it");
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
      text += fmt::format(
          "{}{}-{}: {}", shown == 0 ? "" : "\n", range.first, range.second,
          group.sequences.size() == 1 ? "all " + counted(ranks.size(), "rank", "ranks") : ranks.label(ranges(8)));
      ++shown;
    }
    return text;
  }

  std::string title_of(const GroupInventory& group) const {
    std::string title = printable_line(group.name);
    if (!group.description.empty() && group.description != group.name)
      title += " (" + printable_line(group.description) + ")";
    return title;
  }

  void group(const GroupSet& set) {
    const GroupInventory& all = set.together;
    const GroupInventory& first = *set.groups.front();
    const bool many = set.groups.size() > 1;
    page_.blank();
    if (many) {
      std::string text = fmt::format("{} alike, such as {}", format_count(set.groups.size()), title_of(first));
      if (!first.members.empty()) text += ": " + first.members.text(ranges());
      row("groups", text);
    } else {
      row("group", title_of(first));
    }
    std::string members = all.size ? counted(*all.size, "member", "members") : "size not recorded";
    if (many && all.size) members += " each";
    if (!all.members.empty()) members += (many ? ", in all: " : ": ") + all.members.text(ranges());
    const RankSet unseen = all.members.without(all.seen);
    if (!unseen.empty()) members += fmt::format("; no record of {}", unseen.text(ranges()));
    row("  members", members);
    row("  operations", all.operations.empty() ? "none recorded" : counts_text(all.operations));
    if (!all.states.empty()) row("  states", counts_text(all.states));
    if (!all.sequences.empty()) row("  sequence", sequences_of(all));
  }

  void groups() {
    if (inventory_.groups.empty()) return;
    page_.blank();
    row("operations", fmt::format("{} in {}, {}", format_count(inventory_.operations),
                                  counted(inventory_.records, "record", "records"),
                                  counted(inventory_.groups.size(), "group", "groups")));
    const std::vector<GroupSet> sets =
        group_sets(inventory_.groups, verbose_ ? inventory_.groups.size() + 1 : kFewestAlike);
    const std::size_t shown = verbose_ ? sets.size() : std::min(sets.size(), kGroups);
    for (std::size_t i = 0; i < shown; ++i) group(sets[i]);
    std::size_t hidden = 0;
    for (std::size_t i = shown; i < sets.size(); ++i) hidden += sets[i].groups.size();
    if (hidden > 0) {
      page_.blank();
      page_.paragraph("", 0,
                      fmt::format("... and {} (--verbose shows them)", counted(hidden, "more group", "more groups")));
    }
  }

  void events() {
    if (inventory_.events.empty()) return;
    page_.blank();
    std::string text;
    for (const auto& [name, kind] : inventory_.events) {
      text += fmt::format("{}{} {}", text.empty() ? "" : "\n", format_count(kind.count), name);
      if (!kind.ranks.empty()) text += ": " + kind.ranks.label(ranges(8));
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
