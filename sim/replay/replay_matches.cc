// Collectives that arrive, sends and receives that meet.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/replay/replay_engine.h"

namespace ddx::sim {

std::optional<std::int32_t> ReplayEngine::root_of(OpRef ref) const {
  return is_rooted(op_of(ref).kind) ? trace_.peer(record(ref.rank), signature_of(ref)) : std::nullopt;
}

void ReplayEngine::arrive(std::uint32_t id, std::uint32_t at) {
  const OpRef call{id, at};
  const UnrolledOp& op = op_of(call);
  const CommId comm = comm_of(call);
  CommState& state = comms_[comm.value];
  // Who is no member is waited for by nobody, and waits for ever.
  if (position_of(call) >= state.size) return;
  Instance& instance = state.instances.at(op.seq - 1);
  if (!instance.arrived.empty()) {
    const OpRef first = instance.arrived.front();
    const bool alike = classes_.of(signature_id(first)) == classes_.of(signature_id(call)) &&
                       (!is_rooted(op.kind) || root_of(first) == root_of(call));
    instance.mixed = instance.mixed || !alike;
  }
  instance.arrived.push_back(call);
  if (instance.arrived.size() == state.size) meet(comm, op.seq, instance);
}

// All members are there.
void ReplayEngine::meet(CommId comm, std::uint32_t seq, Instance& instance) {
  const bool agrees = (!instance.mixed || instance_agrees(instance)) && splits_agree(instance);
  if (!agrees) note_mismatch(comm, seq, false, instance.arrived);
  if (!agrees && options_.mismatch_blocks) return;
  instance.done = true;
  for (const OpRef call : instance.arrived) complete(call);
  auto& ring = comms_[comm.value].instances;
  while (ring.size() > 0 && ring.front().done) ring.pop();
}

// Every two distinct calls are compared, since "agrees" is not transitive where something is unknown: the verdict must
// not depend on who came first.
bool ReplayEngine::instance_agrees(const Instance& instance) const {
  std::map<std::pair<std::uint32_t, std::optional<std::int32_t>>, OpRef> distinct;
  for (const OpRef call : instance.arrived) {
    distinct.try_emplace({classes_.of(signature_id(call)), root_of(call)}, call);
  }
  // Beyond some dozen kinds of call the pairs would cost more than they could tell.
  if (distinct.size() > 64) return false;
  for (auto a = distinct.begin(); a != distinct.end(); ++a) {
    for (auto b = std::next(a); b != distinct.end(); ++b) {
      if (!collectives_agree(signature_of(a->second), signature_of(b->second))) return false;
      if (a->first.second && b->first.second && a->first.second != b->first.second) return false;
    }
  }
  return true;
}

bool ReplayEngine::splits_agree(const Instance& instance) const {
  if (op_of(instance.arrived.front()).kind != OpKind::all_to_all) return true;
  const std::size_t size = instance.arrived.size();
  std::vector<const Signature*> by_position(size, nullptr);
  for (const OpRef call : instance.arrived) by_position[position_of(call)] = &signature_of(call);
  for (std::size_t from = 0; from < size; ++from) {
    const auto& sends = by_position[from]->split_in;
    if (sends.empty()) continue;
    if (sends.size() != size) return false;
    for (std::size_t to = 0; to < size; ++to) {
      const auto& receives = by_position[to]->split_out;
      if (receives.size() == size && receives[from] != sends[to]) return false;
    }
  }
  return true;
}

std::uint32_t ReplayEngine::channel_of(std::uint32_t id, const UnrolledOp& op, std::int32_t peer) {
  const bool sends = op.kind == OpKind::send;
  const std::uint32_t slot = *trace_.signature(trace_.program(record(id)).signature(op.row)).peer_slot;
  std::uint32_t& cached = channels_of_[ranks_[id].peers + 2 * std::uint64_t{slot} + (sends ? 0 : 1)];
  const CommId comm = record(id).comms[op.comm_slot];
  if (cached != kNoOp && channels_[cached].comm == comm) return cached;
  const auto own = static_cast<std::int32_t>(record(id).comm_rank[op.comm_slot]);
  const std::int32_t from = sends ? own : peer;
  const std::int32_t to = sends ? peer : own;
  const auto [at, fresh] = channel_index_.try_emplace(fmt::format("{} {} {}", comm.value, from, to),
                                                      static_cast<std::uint32_t>(channels_.size()));
  if (fresh) {
    Channel& channel = channels_.emplace_back();
    channel.comm = comm;
    channel.from = from;
    channel.to = to;
  }
  cached = at->second;
  std::uint32_t& named_by = sends ? channels_[cached].send_slot : channels_[cached].recv_slot;
  if (named_by != kNoOp && named_by != slot) {
    refuse(fmt::format("rank {} names one peer by two slots", record(id).rank->value));
  }
  named_by = slot;
  return cached;
}

void ReplayEngine::post(std::uint32_t id, std::uint32_t at) {
  const OpRef call{id, at};
  const UnrolledOp& op = op_of(call);
  const auto peer = trace_.peer(record(id), signature_of(call));
  const std::uint32_t size = comms_[comm_of(call).value].size;
  const bool sends = op.kind == OpKind::send;
  const bool leaves = sends && options_.eager_sends;
  if (!peer || *peer < 0 || static_cast<std::uint32_t>(*peer) >= size || position_of(call) >= size) return;
  Channel& channel = channels_[channel_of(id, op, *peer)];
  if (!refusal_.empty()) return;
  Pair& pair = channel.pairs.at(op.order);
  (sends ? pair.send : pair.recv) = call;
  if (pair.send.rank == kNoOp || pair.recv.rank == kNoOp) {
    if (leaves) complete(call);
    return;
  }
  const bool agrees = pair_agrees(signature_of(pair.send), signature_of(pair.recv));
  if (!agrees) note_mismatch(channel.comm, op_of(pair.send).seq, true, {pair.send, pair.recv});
  const bool meets = agrees || !options_.mismatch_blocks;
  const bool grouped = op_of(pair.send).group != kNoOp || op_of(pair.recv).group != kNoOp;
  if (options_.strict_groups && meets && grouped) {
    met_.push_back({static_cast<std::uint32_t>(&channel - channels_.data()), op.order});
    return;
  }
  if ((meets || leaves) && state(pair.send) != OpState::completed) complete(pair.send);
  if (!meets) return;
  complete(pair.recv);
  pair.done = true;
  while (channel.pairs.size() > 0 && channel.pairs.front().done) channel.pairs.pop();
}

void ReplayEngine::note_mismatch(CommId comm, std::uint32_t seq, bool p2p, const std::vector<OpRef>& calls) {
  using Key = std::pair<std::uint64_t, std::optional<std::int32_t>>;
  std::map<Key, std::pair<OpRef, std::vector<RankId>>> variants;
  const auto collect = [&](auto key_of) {
    variants.clear();
    for (const OpRef call : calls) {
      auto& variant = variants.try_emplace({key_of(call), root_of(call)}, call, std::vector<RankId>()).first->second;
      variant.second.push_back(*record(call.rank).rank);
    }
  };
  collect([this](OpRef call) { return std::uint64_t{classes_.of(signature_id(call))}; });
  // Calls that differ in their split lists only are of one class.
  if (variants.size() == 1) collect([this](OpRef call) { return std::uint64_t{signature_id(call).value}; });
  ReplayMismatch& mismatch = mismatches_.emplace_back();
  mismatch.comm = comm;
  mismatch.seq = seq;
  mismatch.p2p = p2p;
  for (auto& [key, variant] : variants) {
    mismatch.variants.push_back({signature_id(variant.first), key.second, RankSet(std::move(variant.second))});
  }
  std::sort(mismatch.variants.begin(), mismatch.variants.end(),
            [](const auto& a, const auto& b) { return a.ranks.values().front() < b.ranks.values().front(); });
}

}  // namespace ddx::sim
