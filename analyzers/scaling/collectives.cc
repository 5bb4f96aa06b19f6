#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "analyzers/scaling/scaling.h"

namespace ddx::analyzers {
namespace {

// Above the link by more than what rounding and units (2^30 against 10^9) explain.
constexpr double kTolerance = 1.08;
// Where switches reduce (SHARP, NVLS) a rank sends its data once, and not twice as in a ring.
constexpr double kInNetworkGain = 2;

std::string plain(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (c >= 'a' && c <= 'z') text += c;
    if (c >= 'A' && c <= 'Z') text += static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

struct Factor {
  double value = 1;
  std::string text;  // "2*(127/128)"
};

std::optional<Factor> factor_of(const MeasuredCollective& row) {
  const std::string op = plain(row.op);
  const double share = static_cast<double>(row.ranks - 1) / static_cast<double>(row.ranks);
  const std::string text = fmt::format("{}/{}", row.ranks - 1, row.ranks);
  if (op == "allreduce") return Factor{2 * share, "2*(" + text + ")"};
  if (op == "allgather" || op == "reducescatter" || op == "alltoall") return Factor{share, text};
  if (op == "broadcast" || op == "reduce" || op == "sendrecv" || op == "send") return Factor{1, "1"};
  return std::nullopt;
}

// As the table has them: rates are in 10^9 bytes, and sizes in powers of two beside them would not add up.
std::string bytes_text(double bytes) { return figure(bytes) + " bytes"; }

std::string time_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} s", seconds);
}

std::string rate_text(double bytes) { return figure(bytes / 1e9) + " GB/s"; }

struct RowVerdict {
  bool impossible = false, open = false;
  std::string text;
};

RowVerdict judge_row(const MeasuredCollective& row, std::size_t number, std::optional<double>& bus_bytes) {
  const std::string label = fmt::format("Row {} ({})", number, row.op);
  if (row.seconds <= 0) {
    return {true, false,
            fmt::format("{}: the time is {}: no prediction, and not a number to add up.\n", label,
                        row.seconds < 0 ? "negative" : "zero")};
  }
  const auto factor = factor_of(row);
  if (!factor)
    return {false, true,
            fmt::format("{}: not judged, since how much an operation of that name moves is not known.\n", label)};
  bus_bytes = factor->value * row.bytes / row.seconds;
  const std::string sum = fmt::format("{}: {} * {} / {} = {}", label, factor->text, bytes_text(row.bytes),
                                      time_text(row.seconds), rate_text(*bus_bytes));
  if (!row.link_bytes) return {false, true, sum + "; no figure of the link to hold it against.\n"};
  if (*row.link_bytes <= 0) return {true, false, sum + " over a link of no bandwidth.\n"};
  const double ratio = *bus_bytes / *row.link_bytes;
  if (ratio <= kTolerance) {
    return {false, false,
            fmt::format("{} of the link's {}: plausible ({:.0f} %).\n", sum, rate_text(*row.link_bytes), ratio * 100)};
  }
  const std::string over = fmt::format("{} over a link of {}", sum, rate_text(*row.link_bytes));
  if (plain(row.op) == "allreduce" && ratio <= kInNetworkGain * kTolerance) {
    return {false, true, over + ": possible only where the network itself reduces (SHARP, NVLS).\n"};
  }
  return {true, false,
          fmt::format("{}: impossible, unless {:.0f} links are used per GPU, or the figure of the link is that of a "
                      "part of it (a lane, a direction, bits for bytes).\n",
                      over, std::ceil(ratio / kTolerance))};
}

// Rows beyond what their links carry, gathered in `f`.
Finding told_impossible(Finding f, const ScalingTable& table) {
  f.code = "sim-implausible";
  f.severity = Severity::error;
  f.confidence = Confidence::high;
  f.summary = fmt::format("{} of {} rows cannot be: {}", f.subjects.size(), table.collectives.size(),
                          fmt::join(f.subjects, ", "));
  f.advice =
      "Do not use these figures, nor sums that hold them. Check units (bits or bytes, of one GPU or of a node), the "
      "number of links per GPU, and whether the tool knows this size at all.";
  return f;
}

// The other rows; `open`: of some too little is known to refute them, as of operations of `unknown` names.
Finding told_plausible(Finding f, const ScalingTable& table, bool open, const std::set<std::string>& unknown) {
  f.code = "scaling-info";
  f.severity = Severity::info;
  f.confidence = Confidence::high;
  const bool one = f.subjects.size() == 1;
  const std::string_view what = open  ? "not refuted, some for lack of figures"
                                : one ? "within what its link carries"
                                      : "within what their links carry";
  f.summary = fmt::format("{} of {} rows {} {}", f.subjects.size(), table.collectives.size(), one ? "is" : "are", what);
  if (!unknown.empty()) f.summary += fmt::format("; not known: {}", fmt::join(unknown, ", "));
  f.advice = "Plausible is not measured: compare with nccl-tests on the same machines.";
  return f;
}

}  // namespace

std::vector<Finding> judge_collectives(const ScalingTable& table, std::vector<CollectivePoint>& points) {
  std::vector<Finding> findings;
  Finding impossible, rest;
  std::set<std::string> unknown;  // names of operations
  bool open = false;
  for (std::size_t i = 0; i < table.collectives.size(); ++i) {
    const MeasuredCollective& row = table.collectives[i];
    points.push_back({row, std::nullopt});
    if (points.back().row.seconds > 0 && !factor_of(row)) unknown.insert(row.op);
    const RowVerdict verdict = judge_row(row, i + 1, points.back().bus_bytes);
    open = open || verdict.open;
    Finding& to = verdict.impossible ? impossible : rest;
    to.explanation += verdict.text;
    to.subjects.push_back(fmt::format("row {}", i + 1));
    // The explanation has the sum.
    if (to.evidence.size() < 8) to.evidence.push_back({table.path, row.line, fmt::format("row {}", i + 1)});
  }
  if (!impossible.subjects.empty()) findings.push_back(told_impossible(std::move(impossible), table));
  if (!rest.subjects.empty()) findings.push_back(told_plausible(std::move(rest), table, open, unknown));
  return findings;
}

}  // namespace ddx::analyzers
