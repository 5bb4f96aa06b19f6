#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "sim/calibrate/least_squares.h"
#include "tests/accuracy/validation.h"

namespace ddx::sim {
namespace {

constexpr std::uint64_t kKibi = 1U << 10;
constexpr std::uint64_t kMebi = 1U << 20;
constexpr std::uint64_t kAll = ~std::uint64_t{0};

struct Band {
  std::string_view name;
  std::uint64_t least;
  std::uint64_t end;
};
constexpr std::array kBands{
    Band{"< 64 KiB", 0, 64 * kKibi},       Band{"64 KiB - 1 MiB", 64 * kKibi, kMebi},
    Band{"1 - 16 MiB", kMebi, 16 * kMebi}, Band{"1 - 256 MiB", kMebi, 256 * kMebi},
    Band{">= 256 MiB", 256 * kMebi, kAll},
};

// Predicted over measured, less 1; NaN: no prediction.
using Model = std::function<double(const Point&)>;

struct Summary {
  std::size_t count = 0;
  double mean = 0;
  double median = 0;
  double p90 = 0;
  double most = 0;
  double bias = 0;
};

Summary summary_of(const std::vector<double>& errors) {
  Summary summary;
  std::vector<double> sizes;
  for (const double error : errors) {
    sizes.push_back(std::abs(error) * 100);
    summary.bias += error * 100 / static_cast<double>(errors.size());
    summary.mean += sizes.back() / static_cast<double>(errors.size());
  }
  if (sizes.empty()) return summary;
  std::sort(sizes.begin(), sizes.end());
  summary.count = sizes.size();
  summary.median = sizes[(sizes.size() - 1) / 2];
  summary.p90 = sizes[(sizes.size() - 1) * 9 / 10];
  summary.most = sizes.back();
  return summary;
}

std::vector<double> errors_of(const std::vector<Point>& points, const Model& model, std::uint64_t least,
                              std::uint64_t end, const std::function<bool(const Point&)>& wanted = nullptr) {
  std::vector<double> errors;
  for (const Point& point : points) {
    if (point.call.work.bytes < least || point.call.work.bytes >= end || (wanted && !wanted(point))) continue;
    const double predicted = model(point);
    if (std::isfinite(predicted)) errors.push_back(predicted / point.micros - 1);
  }
  return errors;
}

std::string row(const std::string& name, const Summary& s) {
  if (s.count == 0) return "";
  return fmt::format("| {} | {} | {:.1f} | {:.1f} | {:.1f} | {:.0f} | {:+.1f} |\n", name, s.count, s.mean, s.median,
                     s.p90, s.most, s.bias);
}

std::string head(std::string_view first) {
  return fmt::format("| {} | points | mean | median | p90 | max | bias |\n|---|---|---|---|---|---|---|\n", first);
}

std::string bands_table(const std::vector<Point>& points, const Model& model) {
  std::string text = head("size");
  for (const Band& band : kBands) {
    text += row(std::string(band.name), summary_of(errors_of(points, model, band.least, band.end)));
  }
  return text;
}

Model with(const NcclTimes& times) {
  return [times](const Point& point) { return nccl_micros(point.call, times).total(); };
}

double by_nccl(const Point& point) { return point.call.choice ? point.call.choice->time_us : std::nan(""); }

// a log2(n) + S f / B, fitted to each kind's calibrating runs.
Model plain_model(const std::vector<Point>& points) {
  std::map<std::string, std::vector<const Point*>> kinds;
  for (const Point& point : points) {
    if (point.run->calibrates) kinds[point.run->kind].push_back(&point);
  }
  const auto time = [](const Point& point, const std::vector<double>& logs) {
    const double moved =
        static_cast<double>(point.call.work.bytes) * bus_factor(point.call.work.kind, point.call.shape.ranks);
    return std::exp(logs[0]) * std::log2(point.call.shape.ranks) + moved / std::exp(logs[1]) / 1e3;
  };
  std::map<std::string, std::vector<double>> fitted;
  for (const auto& [kind, own] : kinds) {
    const auto& mine = own;
    fitted[kind] = least_squares(
        [&mine, &time](const std::vector<double>& logs, std::vector<double>& out) {
          out.clear();
          for (const Point* point : mine) out.push_back(std::log(time(*point, logs) / point->micros));
        },
        {std::log(10.), std::log(200.)});
  }
  return [fitted, time](const Point& point) {
    const auto found = fitted.find(point.run->kind);
    return found == fitted.end() ? std::nan("") : time(point, found->second);
  };
}

std::vector<const ValidationRun*> runs_where(const std::vector<ValidationRun>& runs,
                                             const std::function<bool(const ValidationRun&)>& wanted) {
  std::vector<const ValidationRun*> found;
  for (const ValidationRun& run : runs) {
    if (wanted(run)) found.push_back(&run);
  }
  return found;
}

// "owner/repository", or the source as it stands.
std::string origin(const CollectiveRun& run) { return run.source.substr(0, run.source.find_first_of(":#@ ")); }

// A talk's or paper's figures are of one origin, wherever they were found.
std::string origin_of(const CollectiveRun& run) {
  const std::size_t paper = run.source.find('(');
  return paper == std::string::npos ? origin(run) : run.source.substr(paper + 1, run.source.find(')') - paper - 1);
}

std::string baselines(const std::vector<Point>& points) {
  std::vector<Point> held;
  for (const Point& point : points) {
    if (!point.run->calibrates) held.push_back(point);
  }
  const Model plain = plain_model(points);
  std::string text = "| size | ddx | NCCL's own model | a log2 n + S/B |\n|---|---|---|---|\n";
  for (const Band& band : kBands) {
    const auto mean = [&](const Model& model) { return summary_of(errors_of(held, model, band.least, band.end)).mean; };
    text += fmt::format("| {} | {:.1f} | {:.1f} | {:.1f} |\n", band.name, mean(with(nccl_times())), mean(by_nccl),
                        mean(plain));
  }
  return text;
}

std::string by_trust(const std::vector<Point>& points) {
  std::string text = head("trust, size");
  for (const char* trust : {"A", "B", "C"}) {
    for (const Band& band : {kBands[3], kBands[4]}) {
      text += row(fmt::format("{}, {}", trust, band.name),
                  summary_of(errors_of(points, with(nccl_times()), band.least, band.end,
                                       [&](const Point& point) { return point.run->run.trust == trust; })));
    }
  }
  return text;
}

std::string by_kind(const std::vector<Point>& points) {
  std::set<std::string> kinds;
  for (const Point& point : points) kinds.insert(point.run->kind);
  std::string text = head("system, collective");
  for (const std::string& kind : kinds) {
    text += row(kind, summary_of(errors_of(points, with(nccl_times()), kMebi, kAll,
                                           [&](const Point& point) { return point.run->kind == kind; })));
  }
  return text;
}

// Each origin predicted with constants that were fitted to all others.
std::string leave_one_out(const std::vector<ValidationRun>& runs) {
  std::set<std::string> origins;
  for (const ValidationRun& run : runs) origins.insert(origin_of(run.run));
  std::map<std::string, std::vector<double>> all;
  std::string table = "| left out | runs | 1 - 256 MiB | >= 256 MiB |\n|---|---|---|---|\n";
  for (const std::string& left : origins) {
    const auto others = runs_where(runs, [&](const ValidationRun& run) { return origin_of(run.run) != left; });
    const auto own = runs_where(runs, [&](const ValidationRun& run) { return origin_of(run.run) == left; });
    const Model model = with(fit_runs(others));
    const std::vector<Point> points = points_of(own);
    std::array<std::string, kBands.size()> cells;
    for (std::size_t i = 0; i < kBands.size(); ++i) {
      const std::vector<double> errors = errors_of(points, model, kBands.at(i).least, kBands.at(i).end);
      std::vector<double>& total = all[std::string(kBands.at(i).name)];
      total.insert(total.end(), errors.begin(), errors.end());
      cells.at(i) = errors.empty() ? "" : fmt::format("{:.1f}", summary_of(errors).mean);
    }
    table += fmt::format("| {} | {} | {} | {} |\n", left, own.size(), cells[3], cells[4]);
  }
  std::string text = head("size");
  for (const Band& band : kBands) text += row(std::string(band.name), summary_of(all[std::string(band.name)]));
  return text + "\nOf each origin the mean:\n\n" + table;
}

// Up to 64 GPUs in the fit, the larger ones predicted.
std::string larger_scale(const std::vector<ValidationRun>& runs) {
  constexpr std::uint32_t kSmall = 64;
  const auto is_small = [](const ValidationRun& run) { return run.run.placement.ranks <= kSmall; };
  const Model model = with(fit_runs(runs_where(runs, is_small)));
  const auto large = points_of(runs_where(runs, [&](const ValidationRun& run) { return !is_small(run); }));
  return bands_table(large, model);
}

std::string run_list(const std::vector<ValidationRun>& runs, bool calibrates) {
  std::string text;
  for (const ValidationRun& run : runs) {
    if (run.calibrates == calibrates) text += fmt::format("{}`{}`", text.empty() ? "" : ", ", run.run.id);
  }
  return text;
}

std::string beginning(std::size_t runs, std::size_t points, std::size_t calibrating) {
  return fmt::format(R"(# How far predictions are off

Made by `build/release/tests/accuracy/ddx_accuracy > docs/accuracy.md`; a test fails where this page is not what that makes.

The times of collectives that `ddx predict --collectives` gives, against {} published runs with {} points (sizes)
([sources](../tests/data/validation/SOURCES.md)). An error is predicted over measured time, less 1, in per cent; "bias" is
its mean with the sign. What a run's own notes call unreliable was set aside before
([which](../tests/data/validation/excluded.json)).

The constants ([what they are](clusters.md#what-a-collective-takes)) are fitted to {} of the runs. A *kind* is GPU, network
and collective; of each kind the first, third, ... run in the order of ids calibrates, the others are held out, and so is a
run whose notes tell of hardware that none of its fields does. Whole runs are split, never the rows of one. The form of the
model was chosen with all of these runs in view; only the constants do not know the held-out ones. Where no run tells a
constant, it is what published peaks and NCCL's own model say.

## Runs that were held out

)",
                     runs, points, calibrating);
}

}  // namespace

double held_out_error(const std::vector<ValidationRun>& runs, std::uint64_t least, std::uint64_t end) {
  const auto held = runs_where(runs, [](const ValidationRun& run) { return !run.calibrates; });
  return summary_of(errors_of(points_of(held), with(nccl_times()), least, end)).mean;
}

std::string accuracy_page(const std::vector<ValidationRun>& runs) {
  const auto held = points_of(runs_where(runs, [](const ValidationRun& run) { return !run.calibrates; }));
  const auto fitted = points_of(runs_where(runs, [](const ValidationRun& run) { return run.calibrates; }));
  const auto all = points_of(runs_where(runs, [](const ValidationRun&) { return true; }));
  const std::size_t calibrating = runs_where(runs, [](const ValidationRun& run) { return run.calibrates; }).size();
  std::string text = beginning(runs.size(), all.size(), calibrating);
  text += bands_table(held, with(nccl_times()));
  text +=
      "\n## Beside simpler models\n\nMean error of the same held-out points. NCCL's own model chooses well and "
      "predicts "
      "badly below 256 MiB; the plain\none has two constants for each kind, from the same calibrating runs.\n\n";
  text += baselines(all);
  text += "\n## By trust\n\nHeld-out points. A: complete first-party logs; B: excerpts; C: digitised from figures.\n\n";
  text += by_trust(held);
  text += "\n## By system\n\nHeld-out points from 1 MiB on.\n\n" + by_kind(held);
  text += "\n## Runs that calibrate\n\nWhat the fit leaves:\n\n" + bands_table(fitted, with(nccl_times()));
  text +=
      "\n## Sources never seen\n\nAll runs of one origin left out of the fit, and predicted by what the others tell: "
      "the "
      "nearest to a system that is\nnot in this list. No run of an origin's own hardware may be left then, so single "
      "origins can be far off.\n\n";
  text += leave_one_out(runs);
  text +=
      "\n## Larger than any seen\n\nThe fit sees runs of up to 64 GPUs alone; the points are those of the larger "
      "ones.\n\n";
  text += larger_scale(runs);
  text += "\n## Which run is where\n\nCalibrate: " + run_list(runs, true) + ".\n\nHeld out: " + run_list(runs, false) +
          ".\n";
  return text;
}

}  // namespace ddx::sim
