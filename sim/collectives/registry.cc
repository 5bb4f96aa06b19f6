#include "sim/collectives/registry.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace ddx::sim {

std::span<const Algorithm> algorithms() {
  static const std::array kAll = {
      ring(),         tree(),           halving_doubling(),  recursive_doubling(),
      rabenseifner(), gloo_ring(),      gloo_ring_chunked(), bcube(),
      binomial(),     linear(),         pairwise(),          bruck(),
      pat(),          dissemination(),  point_to_point(),    nvls(),
      nvlstree(),     collnet_direct(), collnet_chain(),
  };
  return kAll;
}

bool Algorithm::runs(OpKind kind, const Members& members) const {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end() && (fits == nullptr || fits(members));
}

const Algorithm* find_algorithm(std::string_view name) {
  for (const Algorithm& each : algorithms()) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

std::vector<const Algorithm*> algorithms_for(OpKind kind) {
  std::vector<const Algorithm*> found;
  for (const Algorithm& each : algorithms()) {
    if (std::find(each.kinds.begin(), each.kinds.end(), kind) != each.kinds.end()) found.push_back(&each);
  }
  return found;
}

Members flat_members(std::uint32_t ranks) {
  constexpr std::uint32_t kPerNode = 8;
  return {ranks, ranks % kPerNode == 0 ? kPerNode : ranks, true};
}

Price flat_price(const Work& work, std::uint32_t ranks, const LinkSpec& port, const Algorithm& algorithm) {
  const Members members = flat_members(ranks);
  if (ranks == 0 || !algorithm.runs(work.kind, members))
    throw Error(std::string(algorithm.name) + ": no " + std::string(name_of(work.kind)) + " of " +
                std::to_string(ranks) + " ranks");
  if (port.bytes_per_second == 0 || port.latency < 0)
    throw Error("network: expected a rate of more than 0, and a latency");
  return algorithm.price(work, members, port);
}

}  // namespace ddx::sim
