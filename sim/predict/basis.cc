#include "sim/predict/basis.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace ddx::sim {
namespace {

std::string named(const RankRecord& record, std::size_t row) {
  return record.rank ? fmt::format("operation {} of rank {}", row, record.rank->value)
                     : fmt::format("operation {}", row);
}

void check_times(const Trace& trace, const RankRecord& record) {
  const Program& program = trace.program(record);
  for (std::size_t row = 0; row < program.size(); ++row) {
    const auto start = program.start(row), end = program.end(row);
    if (start && end && *end < *start) {
      throw Error(fmt::format("{} ends {} ns before it starts: nothing can be predicted from such times",
                              named(record, row), *start - *end));
    }
    const auto& length = trace.signature(program.signature(row)).compute_time;
    if (length && *length < 0) {
      throw Error(
          fmt::format("{} is a computation of {} ns: no time is less than nothing", named(record, row), *length));
    }
  }
}

}  // namespace

Assumptions check_basis(const Trace& trace) {
  if (trace.ranks.empty()) throw Error("there is no rank in the trace: nothing to predict from");
  const bool any = std::any_of(trace.ranks.begin(), trace.ranks.end(),
                               [&](const RankRecord& record) { return trace.program(record).size() > 0; });
  if (!any) throw Error("the trace holds no operation: nothing to predict from");
  std::vector<bool> checked(trace.programs.size(), false);
  for (const RankRecord& record : trace.ranks) {
    if (!checked[record.program.value]) check_times(trace, record);
    checked[record.program.value] = true;
  }
  const auto& signatures = trace.signatures();
  const bool computes = std::any_of(signatures.begin(), signatures.end(),
                                    [](const Signature& signature) { return signature.kind == OpKind::compute; });
  if (!computes) return {"the trace holds no computation: this is the time of its calls alone"};
  return {};
}

}  // namespace ddx::sim
