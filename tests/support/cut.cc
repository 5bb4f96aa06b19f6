#include "tests/support/cut.h"

#include <random>
#include <vector>

#include "tests/support/random_program.h"

namespace ddx::testing {
namespace {

bool died(const Trace& trace, const Program& program) {
  for (std::size_t row = 0; row < program.size(); ++row) {
    const Signature& signature = trace.signature(program.signature(row));
    if (signature.kind == OpKind::stop && program.state(row) == OpState::completed) {
      return signature.stop_reason != StopReason::stuck;
    }
  }
  return false;
}

std::vector<Op> issued_calls(const Trace& trace, const Program& program) {
  std::vector<Op> rows;
  for (std::size_t row = 0; row < program.size(); ++row) {
    const OpKind kind = trace.signature(program.signature(row)).kind;
    if ((is_collective(kind) || is_p2p(kind)) && program.state(row) != OpState::planned) {
      rows.push_back(program.at(OpId(row)));
    }
  }
  return rows;
}

Signature recorded(Signature signature) {
  signature.redop = RedOp::unknown;
  if (is_rooted(signature.kind)) signature.peer_slot.reset();
  signature.tag.reset();
  signature.stream.reset();
  signature.split_in.clear();
  signature.split_out.clear();
  signature.async = false;
  return signature;
}

}  // namespace

Trace cut(const sim::ReplayResult& result, const CutOptions& options) {
  std::mt19937_64 random(options.seed);
  const Trace& from = result.snapshot;
  Trace out = from;
  out.programs.clear();
  out.ranks.clear();
  for (const RankRecord& record : from.ranks) {
    // Drawn for every rank, so that leaving one out changes nothing for the others.
    const std::uint64_t drawn = random();
    const Program& program = from.program(record);
    if (options.without.contains(*record.rank) || (!options.dead_leave_dumps && died(from, program))) continue;
    std::vector<Op> rows = issued_calls(from, program);
    std::size_t keep = rows.size();
    if (options.ring_max) {
      const std::uint32_t least = options.ring_min.value_or(1);
      keep = std::min<std::size_t>(keep, least + drawn % (*options.ring_max - least + 1));
    }
    RankRecord& to = out.ranks.emplace_back(record);
    to.program = ProgramId(out.programs.size());
    to.head_lost = keep < rows.size();
    to.whole_program = false;
    to.snapshot = true;
    to.timing = options.timing;
    Program& kept = out.programs.emplace_back();
    for (std::size_t i = rows.size() - keep; i < rows.size(); ++i) {
      if (!options.timing && rows[i].state == OpState::started) rows[i].state = OpState::scheduled;
      if (options.recorder_fields) rows[i].signature = out.intern(recorded(out.signature(rows[i].signature)));
      kept.append(rows[i]);
    }
    if (options.timing) continue;
    for (CommProgress& progress : to.progress) progress.last_started.reset();
  }
  return out;
}

}  // namespace ddx::testing
