#include "cli/report/predicted_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/counted.h"
#include "base/units.h"
#include "cli/report/json_text.h"
#include "cli/report/printable.h"
#include "sim/collectives/nccl_time.h"

namespace ddx::cli {
namespace {

std::string size_text(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  double size = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (size >= 1024 && unit + 1 < kUnits.size()) {
    size /= 1024;
    ++unit;
  }
  return fmt::format("{:.4g} {}", size, kUnits.at(unit));
}

std::string time_text(double micros) {
  if (micros < 1e3) return fmt::format("{:.1f} us", micros);
  if (micros < 1e6) return fmt::format("{:.2f} ms", micros / 1e3);
  return fmt::format("{:.2f} s", micros / 1e6);
}

std::string head(const sim::CollectiveRun& run) {
  std::string text = printable_line(run.id.empty() ? "(no id)" : run.id);
  text += fmt::format(": {} on {} {}", printable_line(run.collective), run.placement.ranks,
                      run.gpu.empty() ? (run.placement.ranks == 1 ? "GPU" : "GPUs") : printable_line(run.gpu));
  text += ", " + counted(run.placement.nodes, "node", "nodes");
  if (!run.nic.empty()) text += ", " + printable_line(run.nic);
  return inert_line(text);
}

sim::Work work_of(const sim::CollectiveRun& run, std::uint64_t bytes) {
  sim::Work work = run.work;
  work.bytes = bytes;
  return work;
}

std::string row_text(const sim::CollectiveRun& run, std::uint64_t bytes, double micros) {
  const sim::NcclCall call = sim::nccl_call(run.cluster, run.placement, work_of(run, bytes), run.forced);
  const double bus = static_cast<double>(bytes) * sim::bus_factor(call.work.kind, call.shape.ranks) / micros / 1e3;
  const std::string choice =
      call.choice ? fmt::format("{}/{}", name_of(call.choice->algorithm), name_of(call.choice->protocol)) : "sends";
  return fmt::format("  {:>10} {:>12} {:>11.2f}  {}\n", size_text(bytes), time_text(micros), bus, choice);
}

// Every algorithm and protocol for the largest size, with NCCL's own estimate of its time.
std::string candidates_text(const sim::CollectiveRun& run) {
  std::uint64_t most = 0;
  for (const std::optional<std::uint64_t>& bytes : run.bytes) most = std::max(most, bytes.value_or(0));
  const auto candidates = sim::nccl_candidates(run.cluster, run.placement, work_of(run, most), run.forced);
  if (candidates.empty()) return "";
  std::string text = fmt::format("  what NCCL has to choose from at {}, by its own estimate:\n", size_text(most));
  for (const sim::NcclCandidate& candidate : candidates) {
    const std::string name = fmt::format("{}/{}", name_of(candidate.algorithm), name_of(candidate.protocol));
    if (!candidate.enabled()) {
      text += fmt::format("    {:<20} - {}\n", name, candidate.refusal);
      continue;
    }
    text += fmt::format("    {:<20} {:>12}  {:.1f} GB/s, {:.1f} us of it latency\n", name, time_text(candidate.time_us),
                        candidate.bandwidth, candidate.latency_us);
  }
  return text;
}

// "16 sizes from 1 KiB (14.2 us) to 8 GiB (31.30 ms, 480.1 GB/s on the bus)".
std::string line_of(const sim::CollectiveRun& run, const std::vector<std::optional<double>>& times) {
  std::optional<std::size_t> least, most;
  std::size_t known = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (!times[i]) continue;
    ++known;
    if (!least || *run.bytes[i] < *run.bytes[*least]) least = i;
    if (!most || *run.bytes[i] > *run.bytes[*most]) most = i;
  }
  if (!most) return "no size is stated";
  const double bus = static_cast<double>(*run.bytes[*most]) * sim::bus_factor(run.work.kind, run.placement.ranks) /
                     *times[*most] / 1e3;
  if (known == 1) {
    return fmt::format("{} in {}, {:.1f} GB/s on the bus", size_text(*run.bytes[*most]), time_text(*times[*most]), bus);
  }
  return fmt::format("{} sizes from {} ({}) to {} ({}, {:.1f} GB/s on the bus)", known, size_text(*run.bytes[*least]),
                     time_text(*times[*least]), size_text(*run.bytes[*most]), time_text(*times[*most]), bus);
}

}  // namespace

std::string predicted_runs_json(const std::vector<sim::CollectiveRun>& runs) {
  Json list = Json::array();
  for (const sim::CollectiveRun& run : runs) {
    Json times = Json::array();
    for (const std::optional<double>& time : predict(run)) {
      if (time) {
        times.push_back(std::round(*time * 1e3) / 1e3);
      } else {
        times.push_back(nullptr);
      }
    }
    Json item{{"id", run.id}, {"predicted_time_us", std::move(times)}};
    if (!run.unknown.empty()) item["unknown"] = run.unknown;
    list.push_back(std::move(item));
  }
  return json_text(Json{{"runs", std::move(list)}});
}

std::string predicted_runs_text(const std::vector<sim::CollectiveRun>& runs, bool quiet, bool verbose) {
  std::string text;
  for (const sim::CollectiveRun& run : runs) {
    const std::vector<std::optional<double>> times = predict(run);
    if (!run.unknown.empty()) {
      text += fmt::format("{}\n  nothing can be said: {}\n", head(run), run.unknown);
      continue;
    }
    text += fmt::format("{}\n  {}\n", head(run), line_of(run, times));
    if (quiet) continue;
    bool titled = false;
    for (std::size_t i = 0; i < times.size(); ++i) {
      if (!times[i]) continue;
      if (!titled) text += "        size         time    bus GB/s  NCCL takes\n";
      titled = true;
      text += row_text(run, *run.bytes[i], *times[i]);
    }
    if (verbose) text += candidates_text(run);
  }
  return text.empty() ? "no runs\n" : text;
}

}  // namespace ddx::cli
