// Max-min fair sharing of links: no flow can get more unless one that has no more than it gets less. Found by
// progressive filling (Bertsekas, Gallager: Data networks, 1992, section 6.5.2): all rates rise alike until a link is
// full or a flow at its cap, those stop, the others go on.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <queue>
#include <span>
#include <vector>

#include "sim/engine/picos.h"

namespace ddx::sim {

__extension__ using Wide = unsigned __int128;

// units / parts of 1/2^32 bytes a second: a third of a link is a third.
struct Rate {
  Wide units = 0;
  std::uint64_t parts = 1;
  bool operator==(const Rate&) const = default;
};
// What a flow moves: units of a Rate x picoseconds.
using Amount = Wide;

constexpr unsigned kRateBits = 32;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 54;  // of one flow, so that an Amount holds it
constexpr std::uint64_t kMostRate = std::uint64_t{1} << 52;   // of a link, bytes a second
constexpr std::uint64_t kNoCap = std::numeric_limits<std::uint64_t>::max();

constexpr Rate rate_of(std::uint64_t bytes_per_second) { return {Wide{bytes_per_second} << kRateBits, 1}; }
constexpr double bytes_per_second(const Rate& rate) {
  return static_cast<double>(rate.units) / static_cast<double>(rate.parts) / static_cast<double>(Wide{1} << kRateBits);
}
// Moved in `time` at this rate, rounded down; less than 2^127.
constexpr Amount moved(const Rate& rate, Picos time) {
  const Wide picos = static_cast<std::uint64_t>(time);
  return rate.units / rate.parts * picos + rate.units % rate.parts * picos / rate.parts;
}
// `bytes` is at most kMostBytes.
constexpr Amount amount_of(std::uint64_t bytes) { return (Amount{bytes} * kPicosPerSecond) << kRateBits; }

// A flow takes `weight` times its rate from the link; weight is more than 0, each link stands at most once in a flow.
struct LinkUse {
  std::uint32_t link = 0;
  std::uint32_t weight = 1;
};
// Of all flows of one call.
constexpr Wide kMostWeight = Wide{1} << 40;

struct FlowDemand {
  std::span<const LinkUse> uses;
  std::uint64_t cap = kNoCap;  // bytes a second
};

// One rate a flow; a flow with neither a link nor a cap gets rate_of(kNoCap). `capacities` is in bytes a
// second by link, at most kMostRate. No link's shares exceed it; what is left over by rounding is a unit a flow. The
// answer for a flow does not depend on the order of the flows.
std::vector<Rate> fair_rates(std::span<const std::uint64_t> capacities, std::span<const FlowDemand> flows);

// Flows that come and go. Rates are found again only among flows that share links, directly or through others, with
// one that came or went; several changes at one time cost one round.
class FlowSet {
 public:
  using FlowId = std::uint32_t;

  explicit FlowSet(std::vector<std::uint64_t> capacities);

  // `now` never decreases over all calls. At most kMostBytes remain to be moved.
  FlowId add(Picos now, Amount remaining, std::span<const LinkUse> uses, std::uint64_t cap = kNoCap);
  // Before its end; says what was left to move.
  Amount remove(Picos now, FlowId flow);

  bool empty() const { return live_ == 0; }
  // When the next flow ends if none comes or goes before; kForever where every rate is 0; nullopt without flows.
  std::optional<Picos> next_finish();
  // Removes the flows that end at `now`, which is next_finish(), and gives them in ascending order of their ids. An id
  // is given again to a later flow.
  void take_finished(Picos now, std::vector<FlowId>& finished);

  Rate rate(FlowId flow);

 private:
  struct Flow {
    Amount remaining = 0;  // at `since`
    Rate rate;
    Picos since = 0;
    Picos finish = kForever;
    std::uint64_t cap = kNoCap;
    std::vector<LinkUse> uses;
    std::uint32_t version = 0;  // of its entry in finishes_
    std::uint64_t mark = 0;
    bool live = false;
  };
  struct Link {
    std::uint64_t capacity = 0;
    std::vector<FlowId> flows;
    std::uint64_t mark = 0;
  };
  struct Finish {
    Picos time;
    FlowId flow;
    std::uint32_t version;
    bool operator>(const Finish& other) const { return time != other.time ? time > other.time : flow > other.flow; }
  };

  void settle();
  void collect_component(std::uint32_t link);
  void share_component();
  void set_rate(FlowId flow, const Rate& rate);
  void erase(FlowId flow);
  Amount left_of(const Flow& flow) const;  // at now_

  std::vector<Flow> flows_;
  std::vector<FlowId> free_;
  std::vector<Link> links_;
  std::vector<std::uint32_t> changed_links_;
  std::vector<FlowId> changed_flows_;  // without links
  std::priority_queue<Finish, std::vector<Finish>, std::greater<>> finishes_;
  Picos now_ = 0;
  std::size_t live_ = 0;
  std::uint64_t round_ = 0;  // marks what this settle() has seen
  std::vector<FlowId> component_flows_;
  std::vector<std::uint32_t> component_links_;
};

}  // namespace ddx::sim
