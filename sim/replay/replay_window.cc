// Which calls a snapshot holds where there are too many.
#include <algorithm>
#include <utility>

#include "sim/replay/replay_engine.h"

namespace ddx::sim {
namespace {

// Calls on each side of where all stand: as many as a judge looks at, as few as still show who is where, and enough of
// what completed to show what a step looks like.
constexpr std::uint64_t kMostWanted = 8192, kFewest = 4, kFewWanted = 16;

}  // namespace

std::uint64_t ReplayEngine::channel_base(std::uint64_t row) const {
  const std::uint32_t channel = folding_.channel[row];
  return channel == kNoOp ? 0 : channels_[channel].pairs.base();
}

// The collectives that a class of ranks makes, by its slots.
std::vector<std::uint64_t> ReplayEngine::calls_by_slot(std::uint32_t id) const {
  std::vector<std::uint64_t> calls(record(id).comms.size(), 0);
  for (const UnrolledOp& op : program(id).ops) {
    if (is_collective(op.kind)) ++calls[op.comm_slot];
  }
  return calls;
}

// The calls that all ranks of one class make of one communicator or at one end of a channel.
std::vector<ReplayEngine::CallRow> ReplayEngine::call_rows() const {
  std::vector<std::uint64_t> ranks(ranks_.size(), 0);
  for (const std::uint32_t id : folding_.class_of) ++ranks[id];
  std::vector<CallRow> rows;
  for (std::uint32_t id = 0; id < ranks_.size(); ++id) {
    const std::vector<std::uint64_t> calls = calls_by_slot(id);
    for (std::size_t slot = 0; slot < calls.size(); ++slot) {
      rows.push_back({ranks[id], calls[slot], comm_base(ranks_[id].slots + slot)});
    }
    const std::size_t first = rows.size();
    for (std::size_t e = 0; e < program(id).endpoints.size(); ++e) {
      rows.push_back({ranks[id], 0, channel_base(ranks_[id].endpoints + e)});
    }
    for (const UnrolledOp& op : program(id).ops) {
      if (is_p2p(op.kind)) ++rows[first + op.endpoint].calls;
    }
  }
  return rows;
}

std::optional<std::uint64_t> ReplayEngine::window_of(const ReplayResult& result) const {
  std::uint64_t all = 0;
  for (const std::uint32_t id : folding_.class_of) all += program(id).ops.size();
  if (all <= options_.snapshot_ops) return std::nullopt;
  const std::vector<CallRow> rows = call_rows();
  const auto held = [&rows](std::uint64_t window) {
    std::uint64_t total = 0;
    for (const CallRow& row : rows) {
      const std::uint64_t from = row.base - std::min(row.base, window), to = std::min(row.base + window, row.calls);
      total += to > from ? row.ranks * (to - from) : 0;
    }
    return total;
  };
  std::uint64_t window = result.outcome == ReplayResult::Outcome::completes ? kFewWanted : kMostWanted;
  while (window > kFewest && held(window) > options_.snapshot_ops) window /= 2;
  return window;
}

bool ReplayEngine::keeps(std::uint32_t id, std::uint32_t at, std::uint64_t window) const {
  const UnrolledOp& op = program(id).ops[at];
  const Rank& rank = ranks_[id];
  const auto near = [window](std::uint64_t number, std::uint64_t base) {
    return number + window >= base && number < base + window;
  };
  if (op.kind == OpKind::stop || state({id, at}) == OpState::started) return true;
  if (is_collective(op.kind)) return near(op.seq - 1, comm_base(rank.slots + op.comm_slot));
  return is_p2p(op.kind) && near(op.order, channel_base(rank.endpoints + op.endpoint));
}

// Whether what the two are bound to stands at the same calls.
bool ReplayEngine::same_bases(std::uint32_t a, std::uint32_t b) const {
  const Rank &one = ranks_[a], &other = ranks_[b];
  if (record(a).comms.size() != record(b).comms.size()) return false;
  for (std::size_t slot = 0; slot < record(a).comms.size(); ++slot) {
    if (comm_base(one.slots + slot) != comm_base(other.slots + slot)) return false;
  }
  for (std::size_t e = 0; e < program(a).endpoints.size(); ++e) {
    if (channel_base(one.endpoints + e) != channel_base(other.endpoints + e)) return false;
  }
  return true;
}

}  // namespace ddx::sim
