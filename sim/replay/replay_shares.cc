// Where the time of a rank goes.
#include <algorithm>

#include "sim/replay/replay_engine.h"

namespace ddx::sim {
namespace {

using Kind = std::uint8_t;
constexpr Kind kCompute = 0;
constexpr Kind kCommunication = 1;
constexpr Kind kWaiting = 2;
constexpr std::size_t kKinds = 3;

struct Edge {
  Picos time;
  Kind kind;
  std::int8_t step;  // +1 begins, -1 ends
};

void add(std::vector<Edge>& edges, Kind kind, Picos from, Picos to) {
  if (to <= from) return;
  edges.push_back({from, kind, 1});
  edges.push_back({to, kind, -1});
}

}  // namespace

TimeShares ReplayEngine::shares_of(std::uint32_t id, Picos run_end) const {
  const Rank& rank = ranks_[id];
  const auto& ops = program(id).ops;
  std::vector<Edge> edges;
  for (std::uint32_t at = 0; at < ops.size(); ++at) {
    const std::uint64_t row = rank.base + at;
    if (ends_[row] == kNoTime) continue;
    if (ops[at].kind == OpKind::compute) {
      add(edges, kCompute, starts_[row], ends_[row]);
    } else if (ops[at].streamed) {
      const Picos ready = std::clamp(readies_[row], starts_[row], ends_[row]);
      add(edges, kWaiting, starts_[row], ready);
      add(edges, kCommunication, ready, ends_[row]);
    }
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.time < b.time; });
  TimeShares shares;
  std::int64_t open[kKinds] = {};
  Picos now = 0;
  for (const Edge& edge : edges) {
    const Picos passed = edge.time - now;
    (open[kCompute] > 0         ? shares.compute
     : open[kCommunication] > 0 ? shares.communication
     : open[kWaiting] > 0       ? shares.waiting
                                : shares.idle) += passed;
    open[edge.kind] += edge.step;
    now = edge.time;
  }
  shares.idle += run_end - now;
  return shares;
}

}  // namespace ddx::sim
