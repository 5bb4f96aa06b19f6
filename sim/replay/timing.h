// What the operations of a replay take. CostModel is the extension point: closed forms of a cluster, a flat network.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/collectives/work.h"
#include "sim/engine/picos.h"
#include "traces/model/trace.h"

namespace ddx::sim {

class CostModel {
 public:
  virtual ~CostModel() = default;
  // Communicators of one mark cost alike for all work, and so do pairs of ranks: what of the hardware folding has to
  // tell apart.
  virtual std::uint64_t mark(const Communicator& communicator) const = 0;
  virtual std::uint64_t mark(RankId from, RankId to) const = 0;
  // nullopt: the model has no price for it.
  virtual std::optional<Price> collective(const Communicator& communicator, const Work& work) const = 0;
  virtual std::optional<Price> transfer(RankId from, RankId to, std::uint64_t bytes) const = 0;
};

struct Timing {
  const CostModel* costs = nullptr;  // absent: no times; must outlive the replay
  std::vector<std::uint32_t>
      compute_ppm;  // by record: a computation takes so many millionths of its length; empty: all
};

// What a call moves, as cost models count it; `members` of its communicator. nullopt: its counts or type are not known.
std::optional<Work> work_of(const Signature& signature, std::uint32_t members);
// Of a send or receive.
std::optional<std::uint64_t> bytes_of(const Signature& signature);

}  // namespace ddx::sim
