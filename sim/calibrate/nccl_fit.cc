#include "sim/calibrate/nccl_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "sim/calibrate/least_squares.h"

namespace ddx::sim {
namespace {

constexpr std::uint64_t kMebi = 1U << 20;
constexpr double kSmallWeight = .5;  // of points below 1 MiB
constexpr double kFullRows = 12;     // of a run: more of them share this weight
constexpr double kLargeError = .15;  // from where on an error counts less than its square
constexpr double kTolerance = 1.08;  // of measured over stated rates
constexpr double kHold = .1;         // of what is known, against one point

// Grows as x near 0 and as the root of x far away, so that its square is the soft L1 loss.
double softened(double error) {
  const double x = error / kLargeError;
  const double loss = 2 * (std::sqrt(1 + x * x) - 1);
  return std::copysign(kLargeError * std::sqrt(loss), error);
}

NcclTimes times_at(const std::vector<double>& logs) {
  std::vector<double> constants(logs.size());
  std::transform(logs.begin(), logs.end(), constants.begin(), [](double log) { return std::exp(log); });
  return times_of(constants);
}

// What is faster than the links are measures something else, or the run states its hardware wrong.
void check_plausible(const CollectiveRun& run, std::size_t row, const MeasuredCall& measured) {
  if (measured.micros * kTolerance >= measured.call.bound) return;
  throw Error(run.id, {},
              fmt::format("row {}: {} bytes in {:.4g} us, and the links that the run states need {:.4g} us at least: "
                          "not to be fitted",
                          row, measured.call.work.bytes, measured.micros, measured.call.bound));
}

}  // namespace

std::vector<MeasuredCall> calls_of(const CollectiveRun& run, const std::vector<std::optional<double>>& measured) {
  std::vector<MeasuredCall> calls;
  if (!run.unknown.empty()) return calls;
  Work work = run.work;
  for (std::size_t i = 0; i < run.bytes.size(); ++i) {
    if (!run.bytes[i] || !measured.at(i)) continue;
    work.bytes = *run.bytes[i];
    const double weight = work.bytes < kMebi ? kSmallWeight : 1;
    calls.push_back({nccl_call(run.cluster, run.placement, work, run.forced), *measured[i], weight});
    check_plausible(run, i, calls.back());
  }
  const double rows = static_cast<double>(calls.size());
  for (MeasuredCall& call : calls) call.weight *= std::sqrt(std::min(rows, kFullRows) / rows);
  return calls;
}

NcclTimes fit(const std::vector<MeasuredCall>& calls) {
  const std::vector<NcclConstant>& constants = nccl_constants();
  std::vector<double> start;
  for (const NcclConstant& constant : constants) start.push_back(std::log(constant.known));
  const Residuals residuals = [&](const std::vector<double>& logs, std::vector<double>& out) {
    const NcclTimes times = times_at(logs);
    out.clear();
    for (const MeasuredCall& call : calls) {
      out.push_back(call.weight * softened(std::log(nccl_micros(call.call, times).total() / call.micros)));
    }
    for (std::size_t i = 0; i < logs.size(); ++i) out.push_back(kHold * (logs[i] - start[i]) / constants[i].doubt);
  };
  return times_at(least_squares(residuals, start));
}

}  // namespace ddx::sim
