#include "cli/report/scaling_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/counted.h"
#include "base/units.h"
#include "cli/report/json_parts.h"
#include "cli/report/printable.h"
#include "cli/report/text_layout.h"

namespace ddx::cli {
namespace {

constexpr std::size_t kWidth = 100;
constexpr double kMostlyNothing = 0.5;  // of a step

// The parts of a row in nanoseconds; what rounding leaves of the whole is unattributed.
struct Parts {
  Nanos step, compute, communication, bubble, idle, unattributed, waiting;
};

Parts parts_of(const sim::ScalingRow& row) {
  Parts parts{};
  parts.step = sim::to_nanos(row.time);
  parts.compute = row.shares.compute / sim::kPicosPerNano;
  parts.communication = row.shares.communication / sim::kPicosPerNano;
  parts.bubble = row.shares.bubble / sim::kPicosPerNano;
  parts.idle = row.shares.idle / sim::kPicosPerNano;
  parts.unattributed = parts.step - parts.compute - parts.communication - parts.bubble - parts.idle;
  parts.waiting = row.shares.waiting / sim::kPicosPerNano;
  return parts;
}

std::string percent(Nanos part, Nanos whole) {
  return fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string headline(const ScalingView& view) {
  const auto& rows = view.table.rows;
  const sim::ScalingRow &first = rows.front(), &last = rows.back();
  if (view.table.untied) return std::string(untied_text());
  if (rows.size() == 1) {
    return fmt::format("{} {} {} a step", counted(first.ranks, "rank", "ranks"), first.ranks == 1 ? "takes" : "take",
                       format_duration(sim::to_nanos(first.time)));
  }
  return fmt::format("{} -> {} ranks give {:.1f} times the work a second, {:.0f} % of the ideal ({} scaling)",
                     format_count(first.ranks), format_count(last.ranks), last.speedup, 100 * last.efficiency,
                     view.strong ? "strong" : "weak");
}

// Where most of a step is no work: that what is told of it is hardly of the job. Empty: it is.
std::string doubt(const ScalingView& view) {
  double most = 0;
  for (const sim::ScalingRow& row : view.table.rows) {
    const sim::Picos nothing = row.shares.idle + row.shares.unattributed;
    most = std::max(most, static_cast<double>(nothing) / static_cast<double>(row.time));
  }
  if (most <= kMostlyNothing) return "";
  std::string text = fmt::format("Beware: up to {:.1f} % of a step is no work and no call", 100 * most);
  if (!view.table.delays) return text + ": what is told here is told of the rest.";
  return text +
         ", but recorded delays, of which nobody knows the cause. They are taken to last as long on any number of "
         "ranks: that they scale is assumed, not found.";
}

}  // namespace

std::optional<std::uint64_t> batch_on(const ScalingView& view, std::uint32_t ranks) {
  if (!view.batch || view.strong || view.recorded == 0) return view.batch;
  return (*view.batch * ranks + view.recorded / 2) / view.recorded;
}

std::string_view untied_text() {
  return "Nothing ties the replicas together: no call of the trace has members in two of them. Each takes its time as "
         "if it were alone, and how the job scales cannot be told from that.";
}

std::string scaling_text(const ScalingView& view, bool quiet) {
  Page page(kWidth, false);
  page.paragraph("", 0, headline(view));
  if (const std::string text = doubt(view); !text.empty()) page.paragraph("", 0, text);
  if (quiet) return page.take();
  page.blank();
  page.paragraph("", 0,
                 fmt::format("  {:>9} {:>10} {:>9} {:>10} {:>9} {:>13} {:>7} {:>7} {:>12}{}", "ranks", "step",
                             "speed-up", "efficiency", "computing", "communicating", "bubble", "idle", "unattributed",
                             view.batch ? "       batch" : ""));
  for (const sim::ScalingRow& row : view.table.rows) {
    const Parts parts = parts_of(row);
    std::string line = fmt::format(
        "  {:>9} {:>10} {:>9} {:>10} {:>9} {:>13} {:>7} {:>7} {:>12}", format_count(row.ranks),
        format_duration(parts.step), view.table.untied ? "-" : fmt::format("{:.2f}x", row.speedup),
        view.table.untied ? "-" : fmt::format("{:.1f} %", 100 * row.efficiency), percent(parts.compute, parts.step),
        percent(parts.communication, parts.step), percent(parts.bubble, parts.step), percent(parts.idle, parts.step),
        percent(parts.unattributed, parts.step));
    if (const auto batch = batch_on(view, row.ranks)) line += fmt::format(" {:>11}", format_count(*batch));
    page.paragraph("", 0, line);
  }
  page.blank();
  page.paragraph(
      "", 0,
      "communicating: in a call, and not computing; bubble: in a send or receive whose partner is not there, "
      "and of pipeline stages that are done; idle: in none of these, recorded delays of unknown cause among it; "
      "unattributed: what no record tells. Means over ranks.");
  page.blank();
  page.paragraph("Timed by", 9, printable_line(view.table.timed_by));
  page.paragraph("", 0, "Assumed:");
  for (const std::string& sentence : view.table.assumed) page.paragraph("  -", 4, printable_line(sentence));
  return page.take();
}

std::string scaling_json(const ScalingView& view) {
  Json out;
  out["schema"] = "ddx.scaling/1";
  out["command"] = "predict";
  out["mode"] = view.strong ? "strong" : "weak";
  out["timed_by"] = view.table.timed_by;
  out["replicas_tied"] = !view.table.untied;
  out["rows"] = json_list(view.table.rows, [&](const sim::ScalingRow& row) {
    const Parts parts = parts_of(row);
    const bool untied = view.table.untied;
    Json made{{"ranks", row.ranks},
              {"step_ns", parts.step},
              {"speedup", untied ? Json(nullptr) : Json(row.speedup)},
              {"efficiency", untied ? Json(nullptr) : Json(row.efficiency)},
              {"compute_ns", parts.compute},
              {"communication_ns", parts.communication},
              {"bubble_ns", parts.bubble},
              {"idle_ns", parts.idle},
              {"unattributed_ns", parts.unattributed},
              {"waiting_ns", parts.waiting},
              {"overlapped_ns", row.shares.overlapped / sim::kPicosPerNano}};
    if (const auto batch = batch_on(view, row.ranks)) made["batch"] = *batch;
    return made;
  });
  if (const std::string text = doubt(view); !text.empty()) out["doubt"] = text;
  Json assumed = Json::array();
  for (const std::string& sentence : view.table.assumed) assumed.push_back(sentence);
  out["assumed"] = std::move(assumed);
  return json_text(out);
}

}  // namespace ddx::cli
