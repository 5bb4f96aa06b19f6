// Schedules through which chunks of one buffer flow along fixed edges, one behind another: chains, trees, reductions in
// switches. An agent passes a chunk on when it has come from all that feed the agent.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/collectives/schedule.h"

namespace ddx::sim {

struct Chunks {
  std::uint32_t count = 1;
  std::uint64_t bytes = 0;
};
// Like chunks of at most `most` bytes (more where that would make more than 65,536 of them).
Chunks cut(std::uint64_t bytes, std::uint64_t most);

class Pipeline final : public Schedule {
 public:
  // `slot_bytes`: what goes through the busiest port for each chunk, so that everybody has his part of it.
  Pipeline(std::uint32_t chunks, std::uint64_t slot_bytes) : chunks_(chunks), slot_bytes_(slot_bytes) {}

  // An agent of that member; returns its number, from 0 on.
  std::uint32_t add(std::uint32_t member);
  void connect(std::uint32_t from, std::uint32_t to, std::uint64_t bytes);

  std::uint32_t agents() const override { return static_cast<std::uint32_t>(nodes_.size()); }
  std::uint32_t member_of(std::uint32_t agent) const override { return nodes_[agent].member; }
  std::uint32_t steps(std::uint32_t agent) const override;
  void step(std::uint32_t agent, std::uint32_t index, Step& step) const override;

 private:
  struct Edge {
    std::uint32_t to;
    std::uint64_t bytes;
  };
  struct Node {
    std::uint32_t member = 0;
    std::uint32_t fed_by = 0;
    std::vector<Edge> out;
  };

  std::uint32_t chunks_;
  std::uint64_t slot_bytes_;
  std::vector<Node> nodes_;
};

}  // namespace ddx::sim
