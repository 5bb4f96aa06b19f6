#include "traces/formats/profiled_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/printable.h"

namespace ddx::formats {
namespace {

// The calls of one rank in one group.
struct Calls {
  ProgramId program;
  std::vector<std::size_t> rows;
  std::vector<OpKind> kinds;
  bool numbered = false;  // at least one
};

std::map<CommId, std::vector<Calls>> calls_by_group(const Evidence& evidence) {
  std::map<CommId, std::vector<Calls>> groups;
  const Trace& trace = evidence.trace;
  for (const RankRecord& record : trace.ranks) {
    if (!record.input || !record.rank) continue;
    const std::string& format = evidence.inputs[record.input->value].format;
    if (format != "kineto" && format != "host-trace") continue;
    std::map<CommId, Calls> of_rank;
    const Program& program = trace.program(record);
    for (std::size_t row = 0; row < program.size(); ++row) {
      const OpKind kind = trace.signature(program.signature(row)).kind;
      const auto slot = program.comm_slot(row);
      if (!slot || !is_collective(kind)) continue;
      Calls& calls = of_rank[record.comms[*slot]];
      calls.program = record.program;
      calls.rows.push_back(row);
      calls.kinds.push_back(kind);
      calls.numbered = calls.numbered || program.seq(row).has_value();
    }
    for (auto& [comm, calls] : of_rank) groups[comm].push_back(std::move(calls));
  }
  return groups;
}

}  // namespace

void number_profiled_calls(Evidence& evidence) {
  Trace& trace = evidence.trace;
  for (const auto& [comm, ranks] : calls_by_group(evidence)) {
    const bool numbered = std::any_of(ranks.begin(), ranks.end(), [](const Calls& calls) { return calls.numbered; });
    if (numbered || ranks.size() < 2) continue;
    const std::string name = printable_text(trace.text(trace.communicator(comm).name), 60);
    const Calls& first = ranks.front();
    const bool alike =
        std::all_of(ranks.begin(), ranks.end(), [&first](const Calls& calls) { return calls.kinds == first.kinds; });
    if (!alike) {
      evidence.diagnostics.count(
          "kineto.not_matched", DiagnosticSeverity::data_loss,
          fmt::format("group {}: calls without sequence numbers, and the profiles of its ranks hold different ones: "
                      "nothing tells which belong together",
                      name));
      continue;
    }
    for (const Calls& calls : ranks) {
      Program& program = trace.programs[calls.program.value];
      for (std::size_t i = 0; i < calls.rows.size(); ++i) {
        program.set_seq(calls.rows[i], static_cast<std::uint32_t>(i + 1));
      }
    }
    evidence.diagnostics.count(
        "kineto.matched_by_order", DiagnosticSeverity::notice,
        fmt::format("group {}: calls without sequence numbers, matched by their order in the group", name),
        ranks.front().rows.size());
  }
}

}  // namespace ddx::formats
