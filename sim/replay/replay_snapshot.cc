// What every rank would have recorded once all came to rest.
#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "base/hash.h"
#include "sim/replay/replay_engine.h"

namespace ddx::sim {
std::vector<CommProgress> ReplayEngine::progress(std::uint32_t id) const {
  std::vector<CommProgress> progress(record(id).comms.size(), CommProgress{0, 0, 0, {}, {}});
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

// How many calls there are besides those that the snapshot holds.
void ReplayEngine::tell_lengths(std::uint32_t id, std::vector<CommProgress>& progress) const {
  const std::vector<std::uint64_t> calls = calls_by_slot(id);
  for (std::size_t slot = 0; slot < calls.size(); ++slot) progress[slot].in_program = calls[slot];
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
        if (result.window) tell_lengths(id, progress_of[id]);
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
