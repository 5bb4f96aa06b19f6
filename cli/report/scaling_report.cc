#include "cli/report/scaling_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/units.h"
#include "cli/report/json_text.h"
#include "cli/report/printable.h"

namespace ddx::cli {
namespace {

using analyzers::CollectivePoint;
using analyzers::figure;
using analyzers::ScalingAnswer;
using analyzers::ScalingPoint;

// Cells, the first row the heads; columns without any cell are left out. Text stands left, figures right.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> heads) { rows_.push_back(std::move(heads)); }
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  std::string text() const {
    std::string out;
    for (const std::vector<std::string>& row : rows_) {
      std::string line;
      for (std::size_t column = 0; column < row.size(); ++column) {
        const std::size_t width = width_of(column);
        if (width == 0) continue;
        if (!line.empty()) line += "  ";
        line += fmt::format("{:>{}}", row[column], width);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      out += line + '\n';
    }
    return out;
  }

 private:
  std::size_t width_of(std::size_t column) const {
    std::size_t width = 0;
    for (std::size_t i = 1; i < rows_.size(); ++i) width = std::max(width, rows_[i][column].size());
    return width == 0 ? 0 : std::max(width, rows_.front()[column].size());
  }

  std::vector<std::vector<std::string>> rows_;
};

std::string seconds_text(double seconds) { return format_duration(static_cast<Nanos>(std::min(seconds, 9e9) * 1e9)); }

std::string sizes_text(const ScalingAnswer& answer) {
  const bool rates = !answer.unit.empty();
  TextTable table({"nodes", answer.size_word + "s", answer.unit + "/s", answer.unit + "/s/" + answer.size_word, "time",
                   "step", "speed-up", "efficiency", "GPU h", "rows"});
  for (const ScalingPoint& point : answer.points) {
    const bool nodes = point.nodes && answer.size_word != "node";
    table.add({nodes ? format_count(*point.nodes) : "", format_count(point.gpus), rates ? figure(point.rate) : "",
               rates ? figure(point.rate / static_cast<double>(point.gpus)) : "",
               point.work_seconds ? seconds_text(*point.work_seconds) : "",
               point.step_seconds ? seconds_text(*point.step_seconds) : "", fmt::format("{:.2f}", point.speedup),
               fmt::format("{:.3f}", point.efficiency), point.gpu_hours ? figure(*point.gpu_hours) : "",
               point.rows > 1 ? format_count(point.rows) : ""});
  }
  std::string text = table.text();
  if (!answer.gpu_hours_of.empty()) text += fmt::format("GPU h: GPU hours for {}.\n", answer.gpu_hours_of);
  return text;
}

std::string collectives_text(const ScalingAnswer& answer) {
  TextTable table({"row", "op", "ranks", "bytes", "time", "bus GB/s", "link GB/s"});
  std::size_t number = 0;
  for (const CollectivePoint& point : answer.collectives) {
    const bool timed = point.row.seconds > 0;
    table.add({format_count(++number), printable_line(point.row.op), format_count(point.row.ranks),
               figure(point.row.bytes), timed ? seconds_text(point.row.seconds) : "none",
               point.bus_bytes ? figure(*point.bus_bytes / 1e9) : "-",
               point.row.link_bytes ? figure(*point.row.link_bytes / 1e9) : ""});
  }
  return table.text();
}

void put(Json& out, const char* key, const std::optional<double>& value) {
  if (value) out[key] = *value;
}

Json json_of(const ScalingPoint& point, const ScalingAnswer& answer) {
  Json out{{"line", point.line}, {"rows", point.rows}};
  if (answer.size_word != "node") out["gpus"] = point.gpus;
  if (point.nodes) out["nodes"] = *point.nodes;
  if (!answer.unit.empty()) {
    out["rate"] = point.rate;
    out["unit"] = answer.unit;
  }
  put(out, "work_seconds", point.work_seconds);
  put(out, "step_seconds", point.step_seconds);
  out["speedup"] = point.speedup;
  out["efficiency"] = point.efficiency;
  put(out, "gpu_hours", point.gpu_hours);
  if (point.gpu_hours) out["gpu_hours_of"] = answer.gpu_hours_of;
  if (point.rows > 1) out["spread"] = point.spread;
  return out;
}

Json json_of(const CollectivePoint& point) {
  Json out{{"line", point.row.line}, {"op", point.row.op}, {"ranks", point.row.ranks}, {"bytes", point.row.bytes}};
  // What is no time is no number either.
  out["seconds"] = point.row.seconds > 0 ? Json(point.row.seconds) : Json(nullptr);
  put(out, "bus_bytes_per_second", point.bus_bytes);
  put(out, "link_bytes_per_second", point.row.link_bytes);
  return out;
}

}  // namespace

std::string scaling_table_text(const ScalingAnswer& answer) {
  std::string text;
  if (!answer.points.empty()) text += sizes_text(answer);
  if (!answer.collectives.empty()) text += collectives_text(answer);
  return text;
}

std::string render_scaling_json(const Report& report, const ScalingAnswer& answer) {
  Json out = Json::parse(render_json(report, {}));
  Json rows = Json::array();
  for (const ScalingPoint& point : answer.points) rows.push_back(json_of(point, answer));
  for (const CollectivePoint& point : answer.collectives) rows.push_back(json_of(point));
  out["scaling"] = std::move(rows);
  return json_text(out);
}

}  // namespace ddx::cli
