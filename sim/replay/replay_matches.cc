// Collectives that arrive, sends and receives that meet.
#include <algorithm>
#include <map>

#include "sim/replay/replay_engine.h"

namespace ddx::sim {
namespace {

void sort_variants(ReplayMismatch& mismatch) {
  std::sort(mismatch.variants.begin(), mismatch.variants.end(),
            [](const auto& a, const auto& b) { return a.ranks.values().front() < b.ranks.values().front(); });
}

}  // namespace

std::optional<std::int32_t> ReplayEngine::root_of(OpRef ref) const {
  return is_rooted(op_of(ref).kind) ? trace_.peer(record(ref.rank), signature_of(ref)) : std::nullopt;
}

RankId ReplayEngine::partner_of(const RankRecord& record, OpRef call) const {
  const auto& members = trace_.communicator(record.comms[op_of(call).comm_slot]).members;
  const auto peer = trace_.peer(record, signature_of(call)).value_or(-1);
  const bool known = peer >= 0 && static_cast<std::size_t>(peer) < members.size();
  return known ? members[static_cast<std::size_t>(peer)] : RankId(peer);
}

void ReplayEngine::arrive(std::uint32_t id, std::uint32_t at) {
  const OpRef call{id, at};
  const UnrolledOp& op = op_of(call);
  const std::uint64_t row = slot_row(call);
  CommState& state = comms_[folding_.comm[row]];
  // Who is no member is waited for by nobody, and waits for ever.
  if (position_of(call) >= state.size) return;
  Instance& instance = state.instances.at(op.seq - 1);
  if (!instance.arrived.empty()) {
    const OpRef first = instance.arrived.front();
    const bool alike = classes_.of(signature_id(first)) == classes_.of(signature_id(call)) &&
                       (!is_rooted(op.kind) || root_of(first) == root_of(call));
    instance.mixed = instance.mixed || !alike;
    instance.unlike = instance.unlike || signature_id(first) != signature_id(call);
  }
  instance.unlike = instance.unlike || (op.kind == OpKind::all_to_all && !signature_of(call).split_in.empty());
  instance.arrived.push_back(call);
  instance.members += folding_.weight[row];
  instance.latest = std::max(instance.latest, start_of(call));
  if (by_steps()) return arrive_by_steps(call, folding_.comm[row], instance);
  if (instance.members == state.size) meet(folding_.comm[row], op.seq, instance);
}

// All members are there.
void ReplayEngine::meet(std::uint32_t comm, std::uint32_t seq, Instance& instance) {
  const bool agrees = (!instance.mixed || instance_agrees(instance)) && splits_agree(instance);
  if (!agrees) note_mismatch(comm, seq, false, instance.arrived);
  if (!agrees && options_.mismatch_blocks) return;
  if (notes_unlike_ && instance.unlike) {
    unlike_work_[{folding_.comm_representative[comm].value, seq}] = work_of_unlike(instance);
  }
  if (!timed()) return complete_instance(comm, seq, 0);
  const Cost& cost = cost_of(instance);
  if (!shares()) return complete_instance(comm, seq, later(instance.latest, cost.price.total()));
  send_off({false, comm, seq, &cost}, instance.latest);
}

void ReplayEngine::complete_instance(std::uint32_t comm, std::uint32_t seq, Picos end) {
  auto& ring = comms_[comm].instances;
  Instance& instance = ring.at(seq - 1);
  instance.done = true;
  for (const OpRef call : instance.arrived) complete(call, end, instance.latest);
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

// A class whose programs have split lists is in one place of its communicators; of others the place does not matter,
// and stays empty here.
bool ReplayEngine::splits_agree(const Instance& instance) const {
  const OpRef first = instance.arrived.front();
  if (op_of(first).kind != OpKind::all_to_all) return true;
  const std::size_t size = comms_[folding_.comm[slot_row(first)]].size;
  std::vector<const Signature*> by_position(size, nullptr);
  for (const OpRef call : instance.arrived) by_position[position_of(call)] = &signature_of(call);
  for (std::size_t from = 0; from < size; ++from) {
    if (by_position[from] == nullptr || by_position[from]->split_in.empty()) continue;
    const auto& sends = by_position[from]->split_in;
    if (sends.size() != size) return false;
    for (std::size_t to = 0; to < size; ++to) {
      if (by_position[to] == nullptr) continue;
      const auto& receives = by_position[to]->split_out;
      if (receives.size() == size && receives[from] != sends[to]) return false;
    }
  }
  return true;
}

bool ReplayEngine::is_eager(OpRef send) const {
  if (!options_.eager_up_to) return false;
  const auto bytes = bytes_of(signature_of(send));
  return *options_.eager_up_to == UINT64_MAX || (bytes && *bytes <= *options_.eager_up_to);
}

void ReplayEngine::post(std::uint32_t id, std::uint32_t at) {
  const OpRef call{id, at};
  const UnrolledOp& op = op_of(call);
  const std::uint32_t channel = channel_of(call);
  if (channel == kNoOp) return;
  Pair& pair = channels_[channel].pairs.at(op.order);
  const bool sends = op.kind == OpKind::send;
  (sends ? pair.send : pair.recv) = call;
  if (pair.send.rank != kNoOp && pair.recv.rank != kNoOp) {
    pair_up(channel, op.order);
  } else if (sends && is_eager(call)) {
    complete(call, start_of(call), start_of(call));
  }
}

// Both are there.
void ReplayEngine::pair_up(std::uint32_t channel, std::uint64_t order) {
  Pair& pair = channels_[channel].pairs.at(order);
  const bool agrees = pair_agrees(signature_of(pair.send), signature_of(pair.recv));
  if (!agrees) note_mismatch(kNoOp, op_of(pair.send).seq, true, {pair.send, pair.recv});
  const bool meets = agrees || !options_.mismatch_blocks;
  const bool grouped = op_of(pair.send).group != kNoOp || op_of(pair.recv).group != kNoOp;
  if (options_.strict_groups && meets && grouped) {
    met_.push_back({channel, order});
  } else if (meets) {
    finish_pair({channel, order});
  } else if (is_eager(pair.send) && state(pair.send) != OpState::completed) {
    complete(pair.send, start_of(pair.send), start_of(pair.send));
  }
}

void ReplayEngine::finish_pair(const Met& met) {
  const Pair& pair = channels_[met.channel].pairs.at(met.order);
  if (!timed()) return complete_pair(met, 0, 0);
  const Picos sent = start_of(pair.send), both = std::max(sent, start_of(pair.recv));
  if (by_steps() && !is_eager(pair.send)) return send_by_steps(met);
  const Cost& cost = cost_of(pair.send);
  if (is_eager(pair.send)) {
    // What was sent early has arrived, or is under way. It is not held up by others: nobody knew of it.
    complete_pair(met, sent, std::max(start_of(pair.recv), later(sent, cost.price.total())));
  } else if (!shares()) {
    complete_pair(met, later(both, cost.price.total()), later(both, cost.price.total()));
  } else {
    send_off({true, met.channel, met.order, &cost}, both);
  }
}

void ReplayEngine::complete_pair(const Met& met, Picos send_end, Picos recv_end) {
  auto& pairs = channels_[met.channel].pairs;
  Pair& pair = pairs.at(met.order);
  const Picos ready = std::max(start_of(pair.send), start_of(pair.recv));
  if (state(pair.send) != OpState::completed) complete(pair.send, send_end, std::min(ready, send_end));
  complete(pair.recv, recv_end, ready);
  pair.done = true;
  while (pairs.size() > 0 && pairs.front().done) pairs.pop();
}

// `comm`: class of communicators; of no meaning for p2p.
void ReplayEngine::note_mismatch(std::uint32_t comm, std::uint32_t seq, bool p2p, const std::vector<OpRef>& calls) {
  if (p2p) {
    note_pair_mismatch(seq, calls.front(), calls.back());
    return;
  }
  // Calls that differ in their split lists only are of one class.
  const bool by_signature = std::all_of(calls.begin(), calls.end(), [&](OpRef call) {
    return classes_.of(signature_id(call)) == classes_.of(signature_id(calls.front())) &&
           root_of(call) == root_of(calls.front());
  });
  using Key = std::pair<std::uint32_t, std::optional<std::int32_t>>;
  std::map<std::uint64_t, std::pair<OpRef, Key>> by_row;  // by class of ranks and slot: its call
  for (const OpRef call : calls) {
    const SignatureId id = signature_id(call);
    by_row.try_emplace(slot_row(call), call, Key{by_signature ? id.value : classes_.of(id), root_of(call)});
  }
  std::map<CommId, std::map<Key, std::pair<OpRef, std::vector<RankId>>>> mismatches;
  for (std::uint32_t i = 0; i < trace_.ranks.size(); ++i) {
    const std::uint64_t base = ranks_[folding_.class_of[i]].slots;
    for (std::size_t slot = 0; slot < trace_.ranks[i].comms.size(); ++slot) {
      const auto at = by_row.find(base + slot);
      if (at == by_row.end() || folding_.comm[base + slot] != comm) continue;
      auto& variants = mismatches[trace_.ranks[i].comms[slot]];
      const auto& [call, key] = at->second;
      variants.try_emplace(key, call, std::vector<RankId>()).first->second.second.push_back(*trace_.ranks[i].rank);
    }
  }
  for (auto& [id, variants] : mismatches) {
    ReplayMismatch& mismatch = mismatches_.emplace_back();
    mismatch.comm = id;
    mismatch.seq = seq;
    for (auto& [key, variant] : variants) {
      mismatch.variants.push_back({signature_id(variant.first), key.second, RankSet(std::move(variant.second))});
    }
    sort_variants(mismatch);
  }
}

// One for each pair of ranks of the two classes.
void ReplayEngine::note_pair_mismatch(std::uint32_t seq, OpRef send, OpRef recv) {
  for (std::uint32_t i = 0; i < trace_.ranks.size(); ++i) {
    if (folding_.class_of[i] != send.rank) continue;
    ReplayMismatch& mismatch = mismatches_.emplace_back();
    mismatch.comm = trace_.ranks[i].comms[op_of(send).comm_slot];
    mismatch.seq = seq;
    mismatch.p2p = true;
    mismatch.variants.push_back({signature_id(send), std::nullopt, {*trace_.ranks[i].rank}});
    mismatch.variants.push_back({signature_id(recv), std::nullopt, {partner_of(trace_.ranks[i], send)}});
    sort_variants(mismatch);
  }
}

}  // namespace ddx::sim
