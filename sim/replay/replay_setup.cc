// What of a trace can be replayed, and the arrays that a replay needs.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sim/replay/replay_engine.h"

namespace ddx::sim {

ReplayEngine::ReplayEngine(const Trace& trace, const ReplayOptions& options)
    : trace_(trace), options_(options), classes_(trace), random_(options.visit_seed) {
  set_up();
}

void ReplayEngine::set_up() {
  if (!check_records() || !check_positions() || !unroll_programs()) return;
  lay_out_ranks();
}

bool ReplayEngine::check_records() {
  std::vector<std::int32_t> claimed;
  for (const RankRecord& record : trace_.ranks) {
    if (!record.rank) return refuse("a record does not say of which rank it is");
    claimed.push_back(record.rank->value);
    if (record.snapshot && !record.whole_program) {
      return refuse(fmt::format("rank {} has a recorder's buffer, not its whole program", record.rank->value));
    }
  }
  std::sort(claimed.begin(), claimed.end());
  const auto twice = std::adjacent_find(claimed.begin(), claimed.end());
  if (twice != claimed.end()) return refuse(fmt::format("rank {} has two records", *twice));
  return true;
}

// A communicator's members must each be one rank, or its calls could not be counted.
bool ReplayEngine::check_positions() {
  std::vector<std::uint64_t> held;
  for (const RankRecord& record : trace_.ranks) {
    if (record.comm_rank.size() != record.comms.size()) return refuse("a record does not say its positions");
    std::vector<CommId> comms = record.comms;
    std::sort(comms.begin(), comms.end());
    if (std::adjacent_find(comms.begin(), comms.end()) != comms.end()) {
      return refuse(fmt::format("rank {} names one communicator by two slots", record.rank->value));
    }
    for (std::size_t slot = 0; slot < record.comms.size(); ++slot) {
      if (record.comm_rank[slot] == RankRecord::kNoPosition) continue;
      held.push_back(std::uint64_t{record.comms[slot].value} << 32 | record.comm_rank[slot]);
    }
  }
  std::sort(held.begin(), held.end());
  const auto twice = std::adjacent_find(held.begin(), held.end());
  if (twice == held.end()) return true;
  return refuse(fmt::format("two ranks hold position {} of {}", *twice & 0xffffffff, group_name(CommId(*twice >> 32))));
}

bool ReplayEngine::unroll_programs() {
  std::vector<std::uint64_t> lengths;
  for (const Program& program : trace_.programs) lengths.push_back(length_of(program));
  std::uint64_t total = 0;
  for (const RankRecord& record : trace_.ranks) {
    const std::uint64_t length = lengths[record.program.value];
    if (length > options_.max_ops || total + length > options_.max_ops) {
      return refuse(fmt::format("more than {} operations: raise the bound to replay them", options_.max_ops));
    }
    total += length;
  }
  unrolled_.resize(trace_.programs.size());
  std::vector<bool> done(trace_.programs.size(), false);
  for (const RankRecord& record : trace_.ranks) {
    if (!done[record.program.value]) {
      unrolled_[record.program.value] = unroll(trace_, trace_.program(record), refusal_);
      done[record.program.value] = true;
    }
    if (!refusal_.empty()) return false;
  }
  return true;
}

void ReplayEngine::lay_out_ranks() {
  std::vector<std::uint32_t> slots(unrolled_.size(), 0), peers(unrolled_.size(), 0);
  for (std::size_t i = 0; i < unrolled_.size(); ++i) {
    for (const UnrolledOp& op : unrolled_[i].ops) {
      if (!is_collective(op.kind) && !is_p2p(op.kind)) continue;
      slots[i] = std::max(slots[i], std::uint32_t{op.comm_slot} + 1);
      const Signature& signature = trace_.signature(trace_.programs[i].signature(op.row));
      if (signature.peer_slot) peers[i] = std::max(peers[i], *signature.peer_slot + 1);
    }
  }
  std::uint64_t ops = 0, stream_count = 0, slot_count = 0, peer_count = 0;
  ranks_.resize(trace_.ranks.size());
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const RankRecord& record = trace_.ranks[i];
    Rank& rank = ranks_[i];
    rank.program = record.program.value;
    if (slots[rank.program] > record.comms.size() || peers[rank.program] > record.peers.size()) {
      refuse(fmt::format("rank {} binds fewer slots than its program uses", record.rank->value));
      return;
    }
    rank.base = ops;
    rank.streams = stream_count;
    rank.slots = slot_count;
    rank.peers = peer_count;
    rank.stream_ordered = !options_.blocking && (options_.stream_ordered || record.stream_ordered);
    ops += unrolled_[rank.program].ops.size();
    stream_count += unrolled_[rank.program].streams;
    slot_count += record.comms.size();
    peer_count += 2 * record.peers.size();
  }
  states_.assign(ops, static_cast<std::uint8_t>(OpState::planned));
  streams_.resize(stream_count);
  for (const Rank& rank : ranks_) {
    const UnrolledProgram& program = unrolled_[rank.program];
    for (std::size_t s = 0; s < program.streams; ++s) streams_[rank.streams + s].head = program.first_batch[s];
  }
  collectives_done_.assign(slot_count, 0);
  channels_of_.assign(peer_count, kNoOp);
  comms_.resize(trace_.communicators().size());
  for (std::size_t i = 0; i < comms_.size(); ++i) {
    const Communicator& communicator = trace_.communicators()[i];
    comms_[i].size = communicator.members.empty() ? communicator.declared_size.value_or(0)
                                                  : static_cast<std::uint32_t>(communicator.members.size());
  }
}

}  // namespace ddx::sim
