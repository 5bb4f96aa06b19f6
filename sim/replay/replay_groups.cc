// The strict model of groups: sends and receives that are posted together start together, and only once every partner
// of theirs can start as well.
#include <algorithm>
#include <unordered_map>

#include "base/hash.h"
#include "sim/replay/replay_engine.h"

namespace ddx::sim {
namespace {

// What one rank posted together, or a single send or receive that has met a part of somebody's group.
struct Batch {
  OpRef first;  // one of its parts
  std::uint32_t met = 0, parts = 0;
  // Its partners' batches, and the call of those that meets one of its own.
  std::vector<std::pair<std::uint32_t, OpRef>> partners;
  bool held = false;
  OpRef awaiting;  // held: of its calls, the one whose partner it waits for, the first found
};

// Whoever has a partner in a batch that is held is held too. `held` grows by those.
void hold_partners(std::vector<Batch>& batches, std::vector<std::uint32_t>& held) {
  for (std::size_t next = 0; next < held.size(); ++next) {
    for (const auto& [partner, call] : batches[held[next]].partners) {
      if (batches[partner].held) continue;
      batches[partner].held = true;
      batches[partner].awaiting = call;
      held.push_back(partner);
    }
  }
}

}  // namespace

// Parts of the group of `call` that are sends or receives and have not completed; the first one whose peer is not there
// goes to `lonely`. A peer that has come to one of its calls with the group is there: that connection is up, and what
// else goes over it waits for nobody.
std::uint32_t ReplayEngine::open_parts(OpRef call, std::optional<OpRef>& lonely) {
  const auto& ops = program(call.rank).ops;
  const std::uint32_t group = ops[call.op].group;
  if (group == kNoOp) return 1;
  std::uint32_t begin = call.op, end = call.op + 1;
  while (begin > 0 && ops[begin - 1].group == group) --begin;
  while (end < ops.size() && ops[end].group == group) ++end;
  std::vector<RankId> there;
  for (std::uint32_t at = begin; at < end; ++at) {
    const OpRef part{call.rank, at};
    if (is_p2p(ops[at].kind) && (state(part) == OpState::completed || has_met(part))) {
      there.push_back(partner_of(record(call.rank), part));
    }
  }
  std::sort(there.begin(), there.end());
  std::uint32_t parts = 0;
  for (std::uint32_t at = begin; at < end; ++at) {
    const OpRef part{call.rank, at};
    if (!is_p2p(ops[at].kind) || state(part) == OpState::completed) continue;
    ++parts;
    if (lonely || has_met(part)) continue;
    if (!std::binary_search(there.begin(), there.end(), partner_of(record(call.rank), part))) lonely = part;
  }
  return parts;
}

bool ReplayEngine::has_met(OpRef call) {
  const std::uint32_t channel = channel_of(call);
  if (channel == kNoOp) return false;
  const Pair& pair = channels_[channel].pairs.at(op_of(call).order);
  return pair.send.rank != kNoOp && pair.recv.rank != kNoOp;
}

// Completes what has met and is held by nothing. False: nothing was; held_ then says who waits for whom.
bool ReplayEngine::release_groups() {
  std::vector<Batch> batches;
  std::unordered_map<std::uint64_t, std::uint32_t, KeyedHash> index;
  const auto batch_of = [&](OpRef call) {
    const std::uint32_t group = op_of(call).group;
    const std::uint64_t key =
        std::uint64_t{call.rank} << 33 | (group == kNoOp ? std::uint64_t{1} << 32 | call.op : group);
    const auto [at, fresh] = index.try_emplace(key, static_cast<std::uint32_t>(batches.size()));
    if (fresh) batches.push_back({call, 0, 0, {}, false, {}});
    return at->second;
  };
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ends;  // of met_, as batches
  for (const Met& met : met_) {
    const Pair& pair = channels_[met.channel].pairs.at(met.order);
    const std::uint32_t a = batch_of(pair.send), b = batch_of(pair.recv);
    ends.emplace_back(a, b);
    ++batches[a].met;
    ++batches[b].met;
    batches[a].partners.emplace_back(b, pair.recv);
    batches[b].partners.emplace_back(a, pair.send);
  }
  std::vector<std::uint32_t> held;
  for (std::uint32_t i = 0; i < batches.size(); ++i) {
    std::optional<OpRef> lonely;
    batches[i].parts = open_parts(batches[i].first, lonely);
    if (batches[i].met >= batches[i].parts || !lonely) continue;
    batches[i].held = true;
    batches[i].awaiting = *lonely;
    held.push_back(i);
  }
  hold_partners(batches, held);
  const std::size_t before = met_.size();
  std::size_t kept = 0;
  for (std::size_t i = 0; i < before; ++i) {
    if (batches[ends[i].first].held || batches[ends[i].second].held) {
      met_[kept++] = met_[i];
    } else {
      finish_pair(met_[i]);
    }
  }
  met_.resize(kept);
  if (kept < before) return true;
  held_.clear();
  for (const std::uint32_t i : held) held_.push_back(batches[i].awaiting);
  return false;
}

}  // namespace ddx::sim
