// What a replay came to.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "sim/replay/replay_engine.h"

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
  std::vector<RankId> unfinished, running;
  for (std::uint32_t id = 0; id < ranks_.size(); ++id) {
    Rank& rank = ranks_[id];
    if (rank.wait_row != kNoOp) set_state(id, rank.wait_row, OpState::started);
    if (finished(rank)) continue;
    unfinished.push_back(*record(id).rank);
    if (rank.queued) running.push_back(*record(id).rank);
  }
  for (const OpRef stream : ready_streams_) running.push_back(*record(stream.rank).rank);
  result.unfinished = RankSet(std::move(unfinished));
  result.running = RankSet(std::move(running));
  std::sort(mismatches_.begin(), mismatches_.end(), [](const ReplayMismatch& a, const ReplayMismatch& b) {
    return std::tuple(a.comm, a.p2p, a.seq, a.variants[0].ranks.values()) <
           std::tuple(b.comm, b.p2p, b.seq, b.variants[0].ranks.values());
  });
  if (!mismatches_.empty()) {
    result.outcome = ReplayResult::Outcome::mismatch;
    result.reason = mismatch_text(mismatches_.front());
  } else if (!hosts_.empty() || !ready_streams_.empty()) {
    result.outcome = ReplayResult::Outcome::stopped;
    result.reason = "stopped in mid-run";
  } else if (!result.unfinished.empty()) {
    result.outcome = ReplayResult::Outcome::deadlock;
    result.reason = waits_text();
  } else {
    result.reason = "all ranks run to their end";
  }
  snapshot(result);
  result.mismatches = std::move(mismatches_);
  result.held = std::move(held_);
  std::sort(result.held.begin(), result.held.end(), [](const HeldGroup& a, const HeldGroup& b) {
    return std::tuple(a.rank, a.awaited) < std::tuple(b.rank, b.awaited);
  });
  return result;
}

std::string ReplayEngine::mismatch_text(const ReplayMismatch& mismatch) const {
  std::string text =
      fmt::format("{} {} of {}: ", mismatch.p2p ? "send" : "collective", mismatch.seq, group_name(mismatch.comm));
  for (const auto& variant : mismatch.variants) {
    const Signature& s = trace_.signature(variant.signature);
    if (&variant != &mismatch.variants.front()) text += ", ";
    text += fmt::format("{} on {}", name_of(s.kind), variant.ranks.label());
    if (s.count_in) text += fmt::format(" ({} {})", *s.count_in, name_of(s.type_in));
    if (variant.root) text += fmt::format(" root {}", *variant.root);
  }
  return text;
}

std::string ReplayEngine::instance_text(CommId comm, std::uint32_t seq, const Instance& instance) const {
  std::vector<RankId> here, missing;
  std::vector<bool> came(comms_[comm.value].size, false);
  for (const OpRef call : instance.arrived) {
    here.push_back(*record(call.rank).rank);
    came[position_of(call)] = true;
  }
  const auto& members = trace_.communicator(comm).members;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!came[i]) missing.push_back(members[i]);
  }
  return fmt::format("{} in {} {} of {} for {}", RankSet(std::move(here)).label(4),
                     name_of(op_of(instance.arrived.front()).kind), seq, group_name(comm),
                     members.empty() ? "others" : RankSet(std::move(missing)).label(4));
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
      add([&] { return instance_text(CommId(c), static_cast<std::uint32_t>(number + 1), instance); });
    }
  }
  for (Channel& channel : channels_) {
    for (std::uint64_t i = 0; i < channel.pairs.size(); ++i) {
      const Pair& pair = channel.pairs.at(channel.pairs.base() + i);
      const bool sends = pair.send.rank != kNoOp;
      const OpRef call = sends ? pair.send : pair.recv;
      if (call.rank == kNoOp || state(call) == OpState::completed) continue;
      const auto& members = trace_.communicator(channel.comm).members;
      const auto peer = static_cast<std::size_t>(sends ? channel.to : channel.from);
      add([&] {
        return fmt::format(
            "rank {} in {} of {} for {}", record(call.rank).rank->value, sends ? "send" : "recv",
            group_name(channel.comm),
            members.empty() ? fmt::format("position {}", peer) : fmt::format("rank {}", members[peer].value));
      });
    }
  }
  if (waits.empty()) return "ranks wait for calls that name no member of their communicator";
  std::string text = fmt::format("waiting: {}", fmt::join(waits, "; "));
  return more == 0 ? text : text + fmt::format("; and {} more", more);
}

std::vector<CommProgress> ReplayEngine::progress(std::uint32_t id) const {
  std::vector<CommProgress> progress(record(id).comms.size(), CommProgress{0, 0, 0, {}});
  const auto& ops = program(id).ops;
  for (std::uint32_t at = 0; at < ops.size(); ++at) {
    if (!is_collective(ops[at].kind)) continue;
    CommProgress& of = progress[ops[at].comm_slot];
    const OpState came = state({id, at});
    const std::uint64_t seq = ops[at].seq;
    if (came >= OpState::scheduled) of.last_enqueued = std::max(*of.last_enqueued, seq);
    if (came >= OpState::started) of.last_started = std::max(*of.last_started, seq);
    if (came == OpState::completed) of.last_completed = std::max(*of.last_completed, seq);
  }
  return progress;
}

ProgramId ReplayEngine::snapshot_program(std::uint32_t id, Trace& out) const {
  const ProgramId made(out.programs.size());
  Program& rows = out.programs.emplace_back();
  const auto& ops = program(id).ops;
  const Program& source = trace_.program(record(id));
  rows.reserve(ops.size());
  for (std::uint32_t at = 0; at < ops.size(); ++at) {
    Op row = source.at(OpId(ops[at].row));
    row.state = state({id, at});
    row.seq = ops[at].seq == 0 ? std::nullopt : std::optional(ops[at].seq);
    row.group = ops[at].group == kNoOp ? std::nullopt : std::optional(ops[at].group);
    rows.append(row);
  }
  return made;
}

void ReplayEngine::snapshot(ReplayResult& result) const {
  Trace& out = result.snapshot;
  out = trace_;
  out.programs.clear();
  struct Made {
    std::uint32_t rank;  // whose states it holds
    ProgramId program;
    std::vector<CommProgress> progress;
  };
  std::unordered_multimap<std::string, Made> made;
  for (std::uint32_t id = 0; id < ranks_.size(); ++id) {
    const Rank& rank = ranks_[id];
    const std::size_t size = unrolled_[rank.program].ops.size();
    const std::uint8_t* states = states_.data() + rank.base;
    const std::size_t hash = std::hash<std::string_view>()({reinterpret_cast<const char*>(states), size});
    const std::string key = fmt::format("{} {}", rank.program, hash);
    const Made* same = nullptr;
    const auto [begin, end] = made.equal_range(key);
    for (auto at = begin; at != end && same == nullptr; ++at) {
      const std::uint8_t* others = states_.data() + ranks_[at->second.rank].base;
      if (size == 0 || std::memcmp(states, others, size) == 0) same = &at->second;
    }
    if (same == nullptr) same = &made.emplace(key, Made{id, snapshot_program(id, out), progress(id)})->second;
    RankRecord& to = out.ranks[id];
    to.program = same->program;
    to.progress = same->progress;
    to.snapshot = true;
    to.whole_program = true;
    to.stream_ordered = rank.stream_ordered;
    to.timing = true;
  }
}

}  // namespace ddx::sim
