#include "cli/report/scaling_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "base/counted.h"
#include "base/units.h"

namespace ddx::cli {
namespace {

constexpr double kWidth = 980, kHeight = 430;
constexpr double kTop = 84, kBottom = 350;  // of both pictures
constexpr double kLeft = 70, kMiddle = 470, kRightPicture = 570, kEnd = 950;

// Colours that also differ in brightness, for those who cannot tell them apart by hue.
struct Part {
  std::string_view name, colour;
  sim::Picos sim::TimeShares::*share;
};
constexpr std::array<Part, 5> kParts{{{"computing", "#1b6ca8", &sim::TimeShares::compute},
                                      {"communicating", "#e08e2b", &sim::TimeShares::communication},
                                      {"bubble", "#c23b4f", &sim::TimeShares::bubble},
                                      {"idle", "#b9bec4", &sim::TimeShares::idle},
                                      {"unattributed", "#e4e7ea", &sim::TimeShares::unattributed}}};

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      default: out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

class Plot {
 public:
  explicit Plot(const ScalingView& view) : view_(view), rows_(view.table.rows) {}
  std::string draw();

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(svg_), format, std::forward<Args>(args)...);
    svg_ += '\n';
  }
  void text(double x, double y, std::string_view anchor, std::string_view style, std::string_view said) {
    put("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\">{}</text>", x, y, anchor, style,
        escaped(said));
  }
  double speedup_x(double ranks) const;
  double speedup_y(double speedup) const;
  void speedups();
  void speedup_axes();
  void shares();
  void share_bar(std::size_t at, double left, double width);
  void legend();

  const ScalingView& view_;
  const std::vector<sim::ScalingRow>& rows_;
  std::string svg_;
};

double Plot::speedup_x(double ranks) const {
  const double first = std::log2(rows_.front().ranks), last = std::log2(rows_.back().ranks);
  return last == first ? (kLeft + kMiddle) / 2
                       : kLeft + 10 + (std::log2(ranks) - first) / (last - first) * (kMiddle - kLeft - 30);
}

double Plot::speedup_y(double speedup) const {
  const double most = std::max(1.0, std::log2(static_cast<double>(rows_.back().ranks) / rows_.front().ranks));
  return kBottom - std::log2(std::max(speedup, 0.25)) / most * (kBottom - kTop - 10);
}

void Plot::speedup_axes() {
  for (double mark = 1; mark <= static_cast<double>(rows_.back().ranks) / rows_.front().ranks * 1.001; mark *= 2) {
    const double y = speedup_y(mark);
    put("<line x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\" class=\"grid\"/>", kLeft, y, kMiddle, y);
    text(kLeft - 8, y + 4, "end", "mark", fmt::format("{:g}x", mark));
  }
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    text(speedup_x(rows_[i].ranks), kBottom + 20, "middle", "mark", format_count(rows_[i].ranks));
  }
  text((kLeft + kMiddle) / 2, kBottom + 42, "middle", "axis", "ranks");
}

void Plot::speedups() {
  text(kLeft, kTop - 16, "start", "title", "Work done a second, against the first");
  speedup_axes();
  const double first = rows_.front().ranks;
  put("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"ideal\"/>", speedup_x(first), speedup_y(1),
      speedup_x(rows_.back().ranks), speedup_y(rows_.back().ranks / first));
  text(speedup_x(rows_.back().ranks) - 6, speedup_y(rows_.back().ranks / first) + 4, "end", "note", "ideal");
  std::string points;
  for (const sim::ScalingRow& row : rows_) {
    points += fmt::format("{:.1f},{:.1f} ", speedup_x(row.ranks), speedup_y(row.speedup));
  }
  put("<polyline points=\"{}\" class=\"line\"/>", points);
  for (const sim::ScalingRow& row : rows_) {
    const double x = speedup_x(row.ranks), y = speedup_y(row.speedup);
    put("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" class=\"point\"><title>{}: {:.2f}x, {:.1f} % of the "
        "ideal</title></circle>",
        x, y, counted(row.ranks, "rank", "ranks"), row.speedup, 100 * row.efficiency);
    if (&row != &rows_.front()) text(x + 6, y + 17, "middle", "note", fmt::format("{:.0f} %", 100 * row.efficiency));
  }
}

void Plot::share_bar(std::size_t at, double left, double width) {
  const sim::ScalingRow& row = rows_[at];
  sim::Picos longest = 1;
  for (const sim::ScalingRow& other : rows_) longest = std::max(longest, other.time);
  double y = kBottom;
  for (const Part& part : kParts) {
    const double time = static_cast<double>(row.shares.*part.share);
    const double height = time / static_cast<double>(longest) * (kBottom - kTop - 14);
    if (height <= 0) continue;
    y -= height;
    put("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"><title>{}, {}: {} "
        "({:.1f} %)</title></rect>",
        left, y, width, height, part.colour, counted(row.ranks, "rank", "ranks"), part.name,
        format_duration(row.shares.*part.share / sim::kPicosPerNano), 100 * time / static_cast<double>(row.time));
  }
  text(left + width / 2, y - 6, "middle", "note", format_duration(sim::to_nanos(row.time)));
  text(left + width / 2, kBottom + 20, "middle", "mark", format_count(row.ranks));
}

void Plot::shares() {
  text(kRightPicture, kTop - 16, "start", "title", "Where the time of a step goes");
  put("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"base\"/>", kRightPicture, kBottom, kEnd, kBottom);
  const double step = (kEnd - kRightPicture) / static_cast<double>(rows_.size());
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const double width = std::min(56.0, step * 0.7);
    share_bar(i, kRightPicture + step * (static_cast<double>(i) + 0.5) - width / 2, width);
  }
  text((kRightPicture + kEnd) / 2, kBottom + 42, "middle", "axis", "ranks");
}

void Plot::legend() {
  double x = kMiddle;
  for (const Part& part : kParts) {
    put("<rect x=\"{:.1f}\" y=\"{}\" width=\"12\" height=\"12\" fill=\"{}\"/>", x, kHeight - 22, part.colour);
    text(x + 17, kHeight - 12, "start", "mark", part.name);
    x += 40 + 7.2 * static_cast<double>(part.name.size());
  }
}

std::string Plot::draw() {
  put("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" width=\"{}\" height=\"{}\" role=\"img\">",
      kWidth, kHeight, kWidth, kHeight);
  svg_ +=
      "<style>text{font-family:system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;fill:#1d2329}"
      ".head{font-size:18px;font-weight:600}.title{font-size:14px;font-weight:600}.mark,.axis{font-size:12px}"
      ".axis{fill:#59636e}.note{font-size:11px;fill:#59636e}.grid{stroke:#e3e6e9}.base{stroke:#8c959f}"
      ".ideal{stroke:#8c959f;stroke-dasharray:5 4}.line{fill:none;stroke:#1b6ca8;stroke-width:2.5}"
      ".point{fill:#1b6ca8}</style>\n";
  put("<rect width=\"{}\" height=\"{}\" fill=\"#ffffff\"/>", kWidth, kHeight);
  text(kLeft, 32, "start", "head",
       fmt::format("{} scaling on {}", view_.strong ? "Strong" : "Weak", view_.table.timed_by));
  speedups();
  shares();
  legend();
  svg_ += "</svg>\n";
  return std::move(svg_);
}

}  // namespace

std::string scaling_plot(const ScalingView& view) { return Plot(view).draw(); }

}  // namespace ddx::cli
