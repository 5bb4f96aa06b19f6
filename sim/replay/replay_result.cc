// What a replay came to.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/units.h"
#include "sim/replay/replay_engine.h"
#include "traces/model/group_label.h"

namespace ddx::sim {
namespace {

constexpr std::size_t kMaxWaitsTold = 8;

}  // namespace

bool ReplayEngine::finished(const Rank& rank) const {
  return rank.stopped ||
         (rank.pc == unrolled_[rank.program].ops.size() && rank.in_flight == 0 && rank.wait == HostWait::none);
}

ReplayResult ReplayEngine::result() {
  ReplayResult result;
  if (!refusal_.empty()) {
    result.outcome = ReplayResult::Outcome::refused;
    result.reason = refusal_;
    return result;
  }
  tell_ranks(result);
  result.outcome = outcome(result);
  if (options_.snapshot_ops > 0) snapshot(result);
  result.mismatches = std::move(mismatches_);
  tell_held(result);
  return result;
}

void ReplayEngine::tell_ranks(ReplayResult& result) {
  std::vector<bool> runs(ranks_.size(), false);
  for (std::uint32_t id = 0; id < ranks_.size(); ++id) {
    if (ranks_[id].wait_row != kNoOp) set_state(id, ranks_[id].wait_row, OpState::started);
    runs[id] = ranks_[id].queued && !finished(ranks_[id]);
  }
  for (const OpRef stream : ready_streams_) runs[stream.rank] = true;
  std::vector<RankId> unfinished, running;
  result.classes = static_cast<std::uint32_t>(ranks_.size());
  for (std::size_t i = 0; i < trace_.ranks.size(); ++i) {
    const std::uint32_t id = folding_.class_of[i];
    if (!finished(ranks_[id])) unfinished.push_back(*trace_.ranks[i].rank);
    if (runs[id]) running.push_back(*trace_.ranks[i].rank);
    result.rank_ops += ranks_[id].pc;
    if (timed()) result.rank_end.push_back(ranks_[id].last_end);
  }
  if (timed() && unfinished.empty()) {
    const Picos end = *std::max_element(result.rank_end.begin(), result.rank_end.end());
    std::vector<TimeShares> of_class;
    for (std::uint32_t id = 0; id < ranks_.size(); ++id) of_class.push_back(shares_of(id, end));
    for (const std::uint32_t id : folding_.class_of) result.shares.push_back(of_class[id]);
  }
  result.unfinished = RankSet(std::move(unfinished));
  result.running = RankSet(std::move(running));
}

ReplayResult::Outcome ReplayEngine::outcome(ReplayResult& result) {
  using Outcome = ReplayResult::Outcome;
  std::sort(mismatches_.begin(), mismatches_.end(), [](const ReplayMismatch& a, const ReplayMismatch& b) {
    return std::tuple(a.comm, a.p2p, a.seq, a.variants[0].ranks.values()) <
           std::tuple(b.comm, b.p2p, b.seq, b.variants[0].ranks.values());
  });
  if (!mismatches_.empty()) {
    result.reason = mismatch_text(mismatches_.front());
    return Outcome::mismatch;
  }
  if (!hosts_.empty() || !ready_streams_.empty()) {
    result.reason = "stopped in mid-run";
    return Outcome::stopped;
  }
  if (!result.unfinished.empty()) {
    result.reason = waits_text();
    return Outcome::deadlock;
  }
  result.reason = "all ranks run to their end";
  return Outcome::completes;
}

void ReplayEngine::tell_held(ReplayResult& result) const {
  if (held_.empty()) return;
  std::vector<std::vector<OpRef>> of_class(ranks_.size());
  for (const OpRef call : held_) of_class[call.rank].push_back(call);
  for (std::size_t i = 0; i < trace_.ranks.size(); ++i) {
    const RankRecord& record = trace_.ranks[i];
    for (const OpRef call : of_class[folding_.class_of[i]]) {
      result.held.push_back({*record.rank, partner_of(record, call), record.comms[op_of(call).comm_slot]});
    }
  }
  std::sort(result.held.begin(), result.held.end(), [](const HeldGroup& a, const HeldGroup& b) {
    return std::tuple(a.rank, a.awaited) < std::tuple(b.rank, b.awaited);
  });
}

namespace {

// "all_reduce f32 x 1,000".
std::string call_text(const Signature& signature) {
  std::string text(name_of(signature.kind));
  if (signature.type_in != DataType::unknown && signature.kind != OpKind::barrier) {
    text += fmt::format(" {}", name_of(signature.type_in));
  }
  if (signature.count_in && signature.kind != OpKind::barrier) {
    text += fmt::format(" x {}", format_count(*signature.count_in));
  }
  return text;
}

}  // namespace

std::string ReplayEngine::mismatch_text(const ReplayMismatch& mismatch) const {
  std::string text = fmt::format("{} {} of group {}: ", mismatch.p2p ? "send" : "collective", mismatch.seq,
                                 group_label(trace_, trace_.communicator(mismatch.comm)));
  for (const auto& variant : mismatch.variants) {
    const Signature& s = trace_.signature(variant.signature);
    if (&variant != &mismatch.variants.front()) text += ", ";
    text += fmt::format("{} on {}", call_text(s), variant.ranks.label());
    if (variant.root) text += fmt::format(" root {}", *variant.root);
  }
  return text;
}

std::string ReplayEngine::instance_text(CommId comm, std::uint32_t seq, const Instance& instance) const {
  std::vector<bool> came(folding_.comm.size(), false);  // by slot row
  for (const OpRef call : instance.arrived) came[slot_row(call)] = true;
  std::vector<RankId> here;
  for (std::size_t i = 0; i < trace_.ranks.size(); ++i) {
    const RankRecord& record = trace_.ranks[i];
    for (std::size_t slot = 0; slot < record.comms.size(); ++slot) {
      const bool calls = came[folding_.slot_base[folding_.class_of[i]] + slot];
      if (record.comms[slot] == comm && calls) here.push_back(*record.rank);
    }
  }
  const RankSet present(std::move(here));
  const auto& members = trace_.communicator(comm).members;
  const RankSet missing = RankSet(members).without(present);
  return fmt::format("{} in {} (group {}, seq {}) for {}", present.label(4),
                     call_text(signature_of(instance.arrived.front())), group_label(trace_, trace_.communicator(comm)),
                     seq, members.empty() ? "others" : missing.label(4));
}

std::string ReplayEngine::pair_text(OpRef call) const {
  const RankRecord& from = record(call.rank);
  const bool known = !trace_.communicator(comm_of(call)).members.empty();
  const RankId peer = partner_of(from, call);
  return fmt::format("rank {} in {} (group {}) for {} {}", from.rank->value, call_text(signature_of(call)),
                     group_label(trace_, trace_.communicator(comm_of(call))), known ? "rank" : "position", peer.value);
}

std::string ReplayEngine::waits_text() {
  std::vector<std::string> waits;
  std::size_t more = 0;
  const auto add = [&](auto&& make) { waits.size() < kMaxWaitsTold ? waits.push_back(make()) : void(++more); };
  for (std::size_t c = 0; c < comms_.size(); ++c) {
    auto& ring = comms_[c].instances;
    for (std::uint64_t i = 0; i < ring.size(); ++i) {
      const std::uint64_t number = ring.base() + i;
      const Instance& instance = ring.at(number);
      if (instance.arrived.empty() || instance.done) continue;
      const CommId comm = folding_.comm_representative[c];
      add([&] { return instance_text(comm, static_cast<std::uint32_t>(number + 1), instance); });
    }
  }
  for (Channel& channel : channels_) {
    for (std::uint64_t i = 0; i < channel.pairs.size(); ++i) {
      const Pair& pair = channel.pairs.at(channel.pairs.base() + i);
      const OpRef call = pair.send.rank != kNoOp ? pair.send : pair.recv;
      if (call.rank == kNoOp || state(call) == OpState::completed) continue;
      add([&] { return pair_text(call); });
    }
  }
  if (waits.empty()) return "ranks wait for calls that name no member of their communicator";
  std::string text = fmt::format("waiting: {}", fmt::join(waits, "; "));
  return more == 0 ? text : text + fmt::format("; and {} more", more);
}

}  // namespace ddx::sim
