#include "sim/collectives/pipeline.h"

#include <algorithm>

#include "sim/collectives/flat_time.h"

namespace ddx::sim {

Chunks cut(std::uint64_t bytes, std::uint64_t most) {
  constexpr std::uint64_t kMostChunks = 65'536;
  const std::uint64_t count = std::clamp<std::uint64_t>(block(bytes, most), 1, kMostChunks);
  return {static_cast<std::uint32_t>(count), block(bytes, count)};
}

std::uint32_t Pipeline::add(std::uint32_t member) {
  nodes_.push_back({member, 0, {}});
  return agents() - 1;
}

void Pipeline::connect(std::uint32_t from, std::uint32_t to, std::uint64_t bytes) {
  nodes_[from].out.push_back({to, bytes});
  ++nodes_[to].fed_by;
}

// What is fed gets chunk k in step k and sends it in step k + 1; what feeds itself sends it in step k.
std::uint32_t Pipeline::steps(std::uint32_t agent) const {
  const Node& node = nodes_[agent];
  if (node.out.empty() && node.fed_by == 0) return 0;
  return chunks_ + (node.fed_by > 0 && !node.out.empty() ? 1 : 0);
}

void Pipeline::step(std::uint32_t agent, std::uint32_t index, Step& step) const {
  const Node& node = nodes_[agent];
  if (index < chunks_) step.receives = node.fed_by;
  if (node.fed_by > 0 && index == 0) return;
  const std::uint32_t chunk = node.fed_by > 0 ? index - 1 : index;
  for (const Edge& edge : node.out) step.sends.push_back({edge.to, chunk, edge.bytes, slot_bytes_, false});
}

}  // namespace ddx::sim
