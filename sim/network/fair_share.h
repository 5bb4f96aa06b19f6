// Max-min fair sharing of links: no flow can get more unless one that has no more than it gets less. Found by
// progressive filling (Bertsekas, Gallager: Data networks, 1992, section 6.5.2): all rates rise alike until a link is
// full or a flow at its cap, those stop, the others go on.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "sim/network/rate.h"

namespace ddx::sim {

constexpr std::uint64_t kNoCap = std::numeric_limits<std::uint64_t>::max();

// A flow takes `weight` times its rate from the link; weight is more than 0, each link stands at most once in a flow.
// All weights on one link add up to less than 2^40.
struct LinkUse {
  std::uint32_t link = 0;
  std::uint64_t weight = 1;
};

struct FlowDemand {
  std::span<const LinkUse> uses;
  std::uint64_t cap = kNoCap;  // bytes a second
};

// One rate a flow; a flow with neither a link nor a cap gets rate_of(kNoCap). `capacities` is in bytes a second by
// link, at most kMostRate. No link gives more than it has; by rounding, a unit a flow may be left. The answer for a
// flow does not depend on the order of the flows.
std::vector<Rate> fair_rates(std::span<const std::uint64_t> capacities, std::span<const FlowDemand> flows);

// The same again and again, in memory that is kept.
class FairShare {
 public:
  // Holds until the next call.
  std::span<const Rate> rates(std::span<const std::uint64_t> capacities, std::span<const FlowDemand> flows);

 private:
  struct Link {
    Wide left = 0;     // units of a Rate
    Wide weights = 0;  // of flows whose rate still rises
    std::vector<std::uint32_t> flows;
  };
  using Share = std::pair<Wide, std::uint32_t>;  // of a link, rounded down

  void set_up(std::span<const std::uint64_t> capacities);
  Wide share(std::uint32_t link) const { return links_[link].left / links_[link].weights; }
  bool freeze_caps_up_to(Wide level);
  bool freeze(std::uint32_t flow, const Rate& rate);

  std::span<const FlowDemand> flows_;
  std::vector<Link> links_;
  std::vector<Rate> rates_;
  std::vector<bool> frozen_;
  std::vector<std::uint32_t> by_cap_;
  std::size_t next_cap_ = 0;
  std::vector<Share> fullest_;  // a heap, the least share on top
};

}  // namespace ddx::sim
