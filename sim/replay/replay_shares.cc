// Where the time of a rank goes.
#include <algorithm>
#include <array>

#include "sim/replay/replay_engine.h"

namespace ddx::sim {
namespace {

struct Interval {
  Picos from = 0, to = 0;
};
using Intervals = std::vector<Interval>;

void add(Intervals& intervals, Picos from, Picos to) {
  if (to > from) intervals.push_back({from, to});
}

// What one stream does is in order as it is, so mostly there is nothing to sort.
void order(Intervals& intervals) {
  const auto earlier = [](const Interval& a, const Interval& b) { return a.from < b.from; };
  if (!std::is_sorted(intervals.begin(), intervals.end(), earlier)) {
    std::sort(intervals.begin(), intervals.end(), earlier);
  }
}

// The length of all that at least one interval of the first `kinds` lists covers; each list is in order.
template <std::size_t kLists>
Picos covered(const std::array<Intervals, kLists>& lists, std::size_t kinds) {
  std::array<std::size_t, kLists> next{};
  Picos length = 0, until = 0;
  while (true) {
    std::size_t first = kinds;
    for (std::size_t kind = 0; kind < kinds; ++kind) {
      if (next[kind] == lists[kind].size()) continue;
      if (first == kinds || lists[kind][next[kind]].from < lists[first][next[first]].from) first = kind;
    }
    if (first == kinds) return length;
    const Interval& interval = lists[first][next[first]++];
    if (interval.to > until) {
      length += interval.to - std::max(until, interval.from);
      until = interval.to;
    }
  }
}

}  // namespace

// What overlaps counts once: as computation before communication before waiting.
TimeShares ReplayEngine::shares_of(std::uint32_t id, Picos run_end) const {
  const Rank& rank = ranks_[id];
  const auto& ops = program(id).ops;
  std::array<Intervals, 3> intervals;
  auto& [compute, communication, waiting] = intervals;
  for (std::uint32_t at = 0; at < ops.size(); ++at) {
    const OpTimes& times = times_[rank.base + at];
    if (times.end == kNoTime) continue;
    if (ops[at].kind == OpKind::compute) {
      add(compute, times.start, times.end);
    } else if (ops[at].streamed) {
      const Picos ready = std::clamp(times.ready, times.start, times.end);
      add(waiting, times.start, ready);
      add(communication, ready, times.end);
    }
  }
  for (Intervals& kind : intervals) order(kind);
  const Picos computing = covered(intervals, 1), active = covered(intervals, 2), all = covered(intervals, 3);
  TimeShares shares;
  shares.compute = computing;
  shares.communication = active - computing;
  shares.waiting = all - active;
  shares.idle = run_end - all;
  return shares;
}

}  // namespace ddx::sim
