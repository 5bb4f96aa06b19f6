// What every rank would have recorded once all came to rest.
#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "base/hash.h"
#include "sim/replay/replay_engine.h"

namespace ddx::sim {
namespace {

// Calls on each side of a window: as many as a judge looks at, as few as still show who is where, and enough of what
// completed.
constexpr std::uint64_t kMostWanted = 8192, kFewest = 4, kFewWanted = 16;

}  // namespace

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

std::uint64_t ReplayEngine::channel_base(std::uint64_t row) const {
  const std::uint32_t channel = folding_.channel[row];
  return channel == kNoOp ? 0 : channels_[channel].pairs.base();
}

std::vector<ReplayEngine::CallRow> ReplayEngine::call_rows() const {
  std::vector<std::uint64_t> ranks(ranks_.size(), 0);
  for (const std::uint32_t id : folding_.class_of) ++ranks[id];
  std::vector<CallRow> rows;
  for (std::uint32_t id = 0; id < ranks_.size(); ++id) {
    const std::size_t comms = record(id).comms.size(), first = rows.size();
    for (std::size_t slot = 0; slot < comms; ++slot) rows.push_back({ranks[id], 0, comm_base(ranks_[id].slots + slot)});
    for (std::size_t e = 0; e < program(id).endpoints.size(); ++e) {
      rows.push_back({ranks[id], 0, channel_base(ranks_[id].endpoints + e)});
    }
    for (const UnrolledOp& op : program(id).ops) {
      if (is_collective(op.kind)) ++rows[first + op.comm_slot].calls;
      if (is_p2p(op.kind)) ++rows[first + comms + op.endpoint].calls;
    }
  }
  return rows;
}

// How many calls before and behind the place where each communicator and channel stands a snapshot can hold; nullopt:
// all that there is.
std::optional<std::uint64_t> ReplayEngine::window_of(const ReplayResult& result) const {
  std::uint64_t all = 0;
  for (const std::uint32_t id : folding_.class_of) all += program(id).ops.size();
  if (all <= options_.snapshot_ops) return std::nullopt;
  const std::vector<CallRow> rows = call_rows();
  const auto kept = [&rows](std::uint64_t window) {
    std::uint64_t total = 0;
    for (const CallRow& row : rows) {
      const std::uint64_t from = row.base - std::min(row.base, window), to = std::min(row.base + window, row.calls);
      total += to > from ? row.ranks * (to - from) : 0;
    }
    return total;
  };
  // Where all is over the last few show what a step looks like.
  std::uint64_t window = result.outcome == ReplayResult::Outcome::completes ? kFewWanted : kMostWanted;
  while (window > kFewest && kept(window) > options_.snapshot_ops) window /= 2;
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

void ReplayEngine::add_snapshot_program(std::uint32_t id, std::optional<std::uint64_t> window, Trace& out) const {
  Program& rows = out.programs.emplace_back();
  const auto& ops = program(id).ops;
  const Program& source = trace_.program(record(id));
  const std::uint64_t base = ranks_[id].base;
  if (!window) rows.reserve(ops.size());
  std::vector<std::uint32_t> handle_of(ops.size(), kNoOp);  // of async ops: which one it is with loops run out
  std::uint32_t handles = 0;
  for (std::uint32_t at = 0; at < ops.size(); ++at) {
    if (window && !keeps(id, at, *window)) continue;
    Op row = source.at(OpId(ops[at].row));
    if (ops[at].async) handle_of[at] = handles++;
    if (ops[at].kind == OpKind::wait && ops[at].target != kNoOp && handle_of[ops[at].target] != kNoOp) {
      Signature wait = out.signature(row.signature);
      wait.handle = handle_of[ops[at].target];
      row.signature = out.intern(std::move(wait));
    }
    row.state = state({id, at});
    row.seq = ops[at].seq == 0 ? std::nullopt : std::optional(ops[at].seq);
    row.group = ops[at].group == kNoOp ? std::nullopt : std::optional(ops[at].group);
    if (timed()) {
      const bool began = row.state == OpState::started || row.state == OpState::completed;
      row.issue.reset();
      row.start = began ? std::optional(to_nanos(times_[base + at].start)) : std::nullopt;
      row.end = row.state == OpState::completed ? std::optional(to_nanos(times_[base + at].end)) : std::nullopt;
    }
    rows.append(row);
  }
}

std::size_t ReplayEngine::run_hash(std::uint32_t id) const {
  const std::size_t size = program(id).ops.size();
  RowHash hash;
  hash.add(ranks_[id].program);
  hash.add(hash_text({reinterpret_cast<const char*>(states_.data() + ranks_[id].base), size}, hash_key()));
  return hash.value();
}

// Whether two classes came the same way, at the same times.
bool ReplayEngine::same_run(std::uint32_t a, std::uint32_t b) const {
  if (ranks_[a].program != ranks_[b].program || ranks_[a].pc != ranks_[b].pc) return false;
  const auto size = static_cast<std::ptrdiff_t>(program(a).ops.size());
  const auto same = [&](const auto& column, auto alike) {
    const auto from = column.begin() + static_cast<std::ptrdiff_t>(ranks_[a].base);
    return std::equal(from, from + size, column.begin() + static_cast<std::ptrdiff_t>(ranks_[b].base), alike);
  };
  const auto same_times = [](const OpTimes& x, const OpTimes& y) { return x.start == y.start && x.end == y.end; };
  return same(states_, std::equal_to<>()) && (!timed() || same(times_, same_times));
}

// Whether what they are bound to stands at the same calls: what a window holds depends on it.
bool ReplayEngine::same_bases(std::uint32_t a, std::uint32_t b) const {
  const Rank &one = ranks_[a], &other = ranks_[b];
  for (std::size_t slot = 0; slot < record(a).comms.size(); ++slot) {
    if (slot >= record(b).comms.size() || comm_base(one.slots + slot) != comm_base(other.slots + slot)) return false;
  }
  for (std::size_t e = 0; e < program(a).endpoints.size(); ++e) {
    if (channel_base(one.endpoints + e) != channel_base(other.endpoints + e)) return false;
  }
  return true;
}

void ReplayEngine::snapshot(ReplayResult& result) const {
  result.window = window_of(result);
  Trace& out = result.snapshot;
  out = trace_;
  out.programs.clear();
  struct Made {
    std::uint32_t rank;  // whose states it holds
    ProgramId program;
  };
  std::unordered_multimap<std::size_t, Made> made;
  std::vector<std::optional<Made>> of_class(ranks_.size());
  std::vector<std::vector<CommProgress>> progress_of(ranks_.size());
  for (std::size_t i = 0; i < trace_.ranks.size(); ++i) {
    const std::uint32_t id = folding_.class_of[i];
    if (!of_class[id]) {
      const std::size_t hash = run_hash(id);
      const auto [begin, end] = made.equal_range(hash);
      const auto same = std::find_if(begin, end, [&](const auto& other) {
        return same_run(id, other.second.rank) && (!result.window || same_bases(id, other.second.rank));
      });
      if (same == end) {
        of_class[id] = made.emplace(hash, Made{id, ProgramId(out.programs.size())})->second;
        add_snapshot_program(id, result.window, out);
        progress_of[id] = progress(id);
      } else {
        of_class[id] = same->second;
      }
    }
    RankRecord& to = out.ranks[i];
    to.program = of_class[id]->program;
    to.progress = progress_of[of_class[id]->rank];
    to.snapshot = true;
    to.whole_program = true;
    to.stream_ordered = ranks_[id].stream_ordered;
    to.timing = true;
  }
}

}  // namespace ddx::sim
