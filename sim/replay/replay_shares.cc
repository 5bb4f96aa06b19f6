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

// What overlaps counts once, in the order of the lists.
TimeShares ReplayEngine::shares_of(std::uint32_t id, Picos run_end) const {
  const Rank& rank = ranks_[id];
  const auto& ops = program(id).ops;
  std::array<Intervals, 5> intervals;
  auto& [compute, communication, waiting, bubble, delays] = intervals;
  bool computes = false;
  for (std::uint32_t at = 0; at < ops.size(); ++at) {
    const OpTimes& times = times_[rank.base + at];
    if (times.end == kNoTime) continue;
    if (ops[at].kind == OpKind::compute) {
      computes = true;
      add(compute, times.start, times.end);
    } else if (ops[at].kind == OpKind::delay) {
      add(delays, times.start, times.end);
    } else if (ops[at].streamed) {
      const Picos ready = std::clamp(times.ready, times.start, times.end);
      add(is_p2p(ops[at].kind) ? bubble : waiting, times.start, ready);
      add(communication, ready, times.end);
    }
  }
  for (Intervals& kind : intervals) order(kind);
  if (!program(id).endpoints.empty()) add(bubble, rank.last_end, run_end);
  // What a rank did that computes is known, but for nothing.
  if (computes) delays.clear();
  const auto up_to = [&](std::size_t kinds) { return covered(intervals, kinds); };
  const Picos computing = up_to(1), served = up_to(2), calling = up_to(3), waited = up_to(4), all = up_to(5);
  // What is in both lists is what their lengths have more than both together.
  const std::array<Intervals, 2> calls{std::move(communication), std::move(waiting)};
  const Picos overlapped = computing + covered(calls, 2) - calling;
  return {computing, calling - computing, waited - calling, run_end - all, all - waited, calling - served, overlapped};
}

}  // namespace ddx::sim
