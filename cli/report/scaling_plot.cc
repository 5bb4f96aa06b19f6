#include "cli/report/scaling_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

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
  void speedup_marks();
  void speedup_points();
  void no_speedups();
  // Numbers of ranks and what else stands in a row below or above `places`, without those that would touch others.
  void row_of_text(const std::vector<double>& places, const std::vector<double>& heights, std::string_view style,
                   const std::vector<std::string>& said);
  void shares();
  double share_bar(std::size_t at, double left, double width);  // its upper end
  void legend();

  const ScalingView& view_;
  const std::vector<sim::ScalingRow>& rows_;
  double lowest_ = 0, highest_ = 1;  // of the speed-ups' axis: powers of two
  std::string svg_;
};

// About as wide as browsers draw it.
double width_of(std::string_view text, std::string_view style) {
  return static_cast<double>(text.size()) * (style == "note" ? 6.2 : 6.9);
}

double Plot::speedup_x(double ranks) const {
  const double first = std::log2(rows_.front().ranks), last = std::log2(rows_.back().ranks);
  return last == first ? (kLeft + kMiddle) / 2
                       : kLeft + 10 + (std::log2(ranks) - first) / (last - first) * (kMiddle - kLeft - 30);
}

double Plot::speedup_y(double speedup) const {
  return kBottom - (std::log2(speedup) - lowest_) / (highest_ - lowest_) * (kBottom - kTop - 10);
}

void Plot::row_of_text(const std::vector<double>& places, const std::vector<double>& heights, std::string_view style,
                       const std::vector<std::string>& said) {
  constexpr double kApart = 6;
  const auto half = [&](std::size_t i) { return width_of(said[i], style) / 2; };
  const std::size_t last = places.size() - 1;
  std::optional<std::size_t> before;
  for (std::size_t i = 0; i <= last; ++i) {
    const bool room = !before || places[i] - half(i) - kApart >= places[*before] + half(*before);
    // The largest is always told, and what would touch it is not.
    const bool last_has_room = i == last || places[i] + half(i) + kApart <= places[last] - half(last);
    if (!room || !last_has_room) continue;
    text(places[i], heights[i], "middle", style, said[i]);
    before = i;
  }
}

void Plot::speedup_marks() {
  constexpr double kMostMarks = 8;
  const double step = std::max(1.0, std::ceil((highest_ - lowest_) / kMostMarks));
  for (double mark = std::ceil(lowest_ / step) * step; mark <= highest_ + 0.001; mark += step) {
    const double y = speedup_y(std::exp2(mark));
    put("<line x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\" class=\"grid\"/>", kLeft, y, kMiddle, y);
    const double value = std::exp2(mark);
    text(kLeft - 8, y + 4, "end", "mark",
         value >= 1 ? fmt::format("{}x", format_count(static_cast<std::uint64_t>(std::llround(value))))
                    : fmt::format("{:.3g}x", value));
  }
}

void Plot::speedup_axes() {
  speedup_marks();
  std::vector<double> places;
  std::vector<std::string> said;
  for (const sim::ScalingRow& row : rows_) {
    places.push_back(speedup_x(row.ranks));
    said.push_back(format_count(row.ranks));
  }
  row_of_text(places, std::vector<double>(places.size(), kBottom + 20), "mark", said);
  text((kLeft + kMiddle) / 2, kBottom + 42, "middle", "axis", "ranks");
}

void Plot::speedup_points() {
  std::string points;
  std::vector<double> places, heights;
  std::vector<std::string> said;
  for (const sim::ScalingRow& row : rows_) {
    const double x = speedup_x(row.ranks), y = speedup_y(row.speedup);
    points += fmt::format("{:.1f},{:.1f} ", x, y);
    if (&row == &rows_.front()) continue;
    places.push_back(x + 6);
    heights.push_back(y + 17 > kBottom - 4 ? y - 9 : y + 17);  // above the point where the axis is in the way
    said.push_back(fmt::format("{:.{}f} %", 100 * row.efficiency, row.efficiency < 0.0995 ? 1 : 0));
  }
  put("<polyline points=\"{}\" class=\"line\"/>", points);
  for (const sim::ScalingRow& row : rows_) {
    put("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" class=\"point\"><title>{}: {:.3g}x, {:.1f} % of the "
        "ideal</title></circle>",
        speedup_x(row.ranks), speedup_y(row.speedup), counted(row.ranks, "rank", "ranks"), row.speedup,
        100 * row.efficiency);
  }
  if (!said.empty()) row_of_text(places, heights, "note", said);
}

// What there is to say is said where the lines would be.
void Plot::no_speedups() {
  double y = (kTop + kBottom) / 2 - 30;
  std::string_view rest = untied_text();
  while (!rest.empty()) {
    constexpr std::size_t kLetters = 52;
    const std::size_t cut = rest.size() <= kLetters ? rest.size() : rest.rfind(' ', kLetters);
    text(kLeft, y, "start", "note", rest.substr(0, cut));
    rest.remove_prefix(std::min(rest.size(), cut + 1));
    y += 18;
  }
}

void Plot::speedups() {
  text(kLeft, kTop - 16, "start", "title", "Work done a second, against the first");
  if (view_.table.untied) return no_speedups();
  const double first = rows_.front().ranks, ideal = rows_.back().ranks / first;
  double least = 1, most = ideal;
  for (const sim::ScalingRow& row : rows_) {
    least = std::min(least, row.speedup);
    most = std::max(most, row.speedup);
  }
  lowest_ = std::floor(std::log2(least) + 1e-9);
  highest_ = std::max({1.0, lowest_ + 1, std::log2(most)});
  speedup_axes();
  put("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"ideal\"/>", speedup_x(first), speedup_y(1),
      speedup_x(rows_.back().ranks), speedup_y(ideal));
  if (rows_.size() > 1) {
    text(speedup_x(rows_.back().ranks) - 8, speedup_y(ideal) - 4, "end", "note", "ideal");
  }
  speedup_points();
}

double Plot::share_bar(std::size_t at, double left, double width) {
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
  return y;
}

void Plot::shares() {
  text(kRightPicture, kTop - 16, "start", "title", "Where the time of a step goes");
  put("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"base\"/>", kRightPicture, kBottom, kEnd, kBottom);
  const double step = (kEnd - kRightPicture) / static_cast<double>(rows_.size());
  std::vector<double> places, tops;
  std::vector<std::string> times, ranks;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const double width = std::min(56.0, step * 0.7), middle = kRightPicture + step * (static_cast<double>(i) + 0.5);
    places.push_back(middle);
    tops.push_back(share_bar(i, middle - width / 2, width) - 6);
    times.push_back(format_duration(sim::to_nanos(rows_[i].time)));
    ranks.push_back(format_count(rows_[i].ranks));
  }
  row_of_text(places, tops, "note", times);
  row_of_text(places, std::vector<double>(places.size(), kBottom + 20), "mark", ranks);
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
