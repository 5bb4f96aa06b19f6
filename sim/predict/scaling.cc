#include "sim/predict/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "base/units.h"
#include "sim/predict/basis.h"
#include "sim/replay/assumed_groups.h"
#include "sim/replay/recorded_programs.h"

namespace ddx::sim {
namespace {

constexpr double kMostFactor = 4000;  // of a computation's length

ScalingRow row_of(const ReplayResult& result, std::uint32_t ranks) {
  ScalingRow row;
  row.ranks = ranks;
  row.time = *std::max_element(result.rank_end.begin(), result.rank_end.end());
  __extension__ using Sum = unsigned __int128;
  const auto mean = [&](Picos TimeShares::*part) {
    Sum sum = 0;
    for (const TimeShares& shares : result.shares) sum += static_cast<std::uint64_t>(shares.*part);
    return static_cast<Picos>(sum / result.shares.size());
  };
  row.shares = {mean(&TimeShares::compute),   mean(&TimeShares::communication), mean(&TimeShares::bubble),
                mean(&TimeShares::idle),      mean(&TimeShares::unattributed),  mean(&TimeShares::waiting),
                mean(&TimeShares::overlapped)};
  row.shares.unattributed += row.time - row.shares.total();
  return row;
}

// Whether some call has members in two replicas, each of `recorded` ranks. Of a send or receive its two ranks count,
// whoever else is in the group.
bool ties_replicas(const Trace& laid, std::uint32_t recorded) {
  const auto replica = [&](RankId rank) { return rank.value / static_cast<std::int32_t>(recorded); };
  std::map<ProgramId, UnlikeCalls> used;
  std::map<CommId, bool> spans;
  const auto spans_replicas = [&](CommId comm) {
    const auto [at, fresh] = spans.try_emplace(comm, false);
    const auto& members = laid.communicator(comm).members;
    if (fresh) {
      at->second = std::any_of(members.begin(), members.end(),
                               [&](RankId rank) { return replica(rank) != replica(members.front()); });
    }
    return at->second;
  };
  return std::any_of(laid.ranks.begin(), laid.ranks.end(), [&](const RankRecord& record) {
    const auto [calls, fresh] = used.try_emplace(record.program);
    if (fresh) calls->second = laid.program(record).unlike_calls();
    return std::any_of(calls->second.begin(), calls->second.end(), [&](const auto& call) {
      const auto& [slot, id] = call;
      const Signature& signature = laid.signature(id);
      if (slot >= record.comms.size()) return false;
      const CommId comm = record.comms[slot];
      if (is_collective(signature.kind)) return spans_replicas(comm);
      if (!is_p2p(signature.kind)) return false;
      const auto& members = laid.communicator(comm).members;
      const std::int32_t peer = laid.peer(record, signature).value_or(-1);
      return peer >= 0 && static_cast<std::size_t>(peer) < members.size() &&
             replica(members[static_cast<std::size_t>(peer)]) != replica(*record.rank);
    });
  });
}

// Of a recording that was cut the step is not the step. A window of a run is whole in itself.
void check_whole(const Trace& trace) {
  for (const RankRecord& record : trace.ranks) {
    if (!record.tail_lost || record.head_lost) continue;
    const std::string whose = record.rank ? fmt::format("the record of rank {}", record.rank->value) : "a record";
    throw Error(whose + " is cut, and what came after is unknown: how long a step takes it does not tell");
  }
}

bool has_delays(const Trace& trace) {
  const auto& signatures = trace.signatures();
  return std::any_of(signatures.begin(), signatures.end(), [](const Signature& signature) {
    return signature.kind == OpKind::delay && signature.compute_time.value_or(0) > 0;
  });
}

// `whole`: programs of all ranks of the recorded job.
ScalingRow predict(const Trace& whole, std::uint32_t ranks, const ScalingOptions& options, ScalingTable& table) {
  Trace laid = whole;
  const auto recorded = static_cast<std::uint32_t>(whole.ranks.size());
  const Batch batch = options.strong ? Batch::fixed : Batch::grows;
  for (std::string& sentence : replicate(laid, ranks, options.roles, batch))
    table.assumed.push_back(std::move(sentence));
  if (ranks > recorded && !ties_replicas(laid, recorded)) table.untied = true;
  const auto costs = options.costs(ranks);
  ReplayOptions replay_options;
  replay_options.snapshot_ops = 0;
  replay_options.timing.costs = costs.get();
  if (options.strong || options.compute_factor != 1) {
    const double part = options.compute_factor * (options.strong ? static_cast<double>(recorded) / ranks : 1);
    if (part > kMostFactor)
      throw RequestError(fmt::format("computations would take {:.3g} times as long as recorded", part));
    const double factor = std::round(part * static_cast<double>(kWholeLength));
    replay_options.timing.compute_factors.assign(ranks, static_cast<std::uint64_t>(factor));
  }
  const ReplayResult result = replay(laid, replay_options);
  if (result.outcome == ReplayResult::Outcome::refused) {
    throw Error(fmt::format("no time can be given on {}: {}", counted(ranks, "rank", "ranks"), result.reason));
  }
  if (result.outcome != ReplayResult::Outcome::completes) {
    throw Error(fmt::format("on {} the programs do not run to their end ({}): {}", counted(ranks, "rank", "ranks"),
                            name_of(result.outcome), result.reason));
  }
  table.timed_by = costs->name();
  for (std::string& note : costs->notes()) table.assumed.push_back(std::move(note));
  return row_of(result, ranks);
}

}  // namespace

ScalingTable predict_scaling(const Trace& trace, const ScalingOptions& options) {
  const Assumptions basis = check_basis(trace);
  check_whole(trace);
  ScalingTable table;
  Trace whole = trace;
  Recorded recorded = take_recorded(whole);
  if (const std::string why = why_untimed(recorded); !why.empty()) throw Error("nothing can be predicted: " + why);
  table.delays = has_delays(whole);
  Assumptions assumed = std::move(recorded.assumed);
  for (std::string& sentence : lift(whole)) assumed.push_back(std::move(sentence));
  for (std::string& sentence : assumed_groups(whole)) assumed.push_back(std::move(sentence));
  for (const std::uint32_t ranks : options.ranks) {
    table.assumed = assumed;
    ScalingRow row = predict(whole, ranks, options, table);
    if (row.time == 0) throw Error("nothing in the trace takes time: no computation has a length, no call a size");
    const ScalingRow& first = table.rows.empty() ? row : table.rows.front();
    const double faster = static_cast<double>(first.time) / static_cast<double>(row.time);
    const double larger = static_cast<double>(ranks) / first.ranks;
    // A weak step does `larger` times the work.
    row.speedup = options.strong ? faster : faster * larger;
    row.efficiency = row.speedup / larger;
    table.rows.push_back(row);
  }
  table.assumed.insert(table.assumed.end(), basis.begin(), basis.end());
  table.assumed.emplace_back(options.strong
                                 ? "the batch stays as it is: computations shrink with each rank's part of it, and "
                                   "gradients and parameters do not"
                                 : "each rank computes what it was recorded to: the batch grows with the ranks");
  return table;
}

}  // namespace ddx::sim
