// FlowSet: flows that come and go on links that they share max-min fairly.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/network/fair_share.h"

namespace ddx::sim {

// Rates are found again only among flows that share links, directly or through others, with one that came or went;
// several changes at one time cost one round. A flow that shares nothing costs no round at all.
class FlowSet {
 public:
  using FlowId = std::uint32_t;

  // Bytes a second by link, at most kMostRate.
  explicit FlowSet(std::vector<std::uint64_t> capacities);

  // `now` never decreases over all calls, and does not pass next_finish(). At most amount_of(kMostBytes) remains; `cap`
  // is in bytes a second.
  FlowId add(Picos now, Amount remaining, std::span<const LinkUse> uses, std::uint64_t cap = kNoCap);
  // Before its end; says what was left to move.
  Amount remove(Picos now, FlowId flow);

  bool empty() const { return by_finish_.empty(); }
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
    std::uint64_t mark = 0;
    std::uint32_t place = 0;  // in by_finish_
    bool live = false;
  };
  struct Link {
    std::uint64_t capacity = 0;
    std::vector<FlowId> flows;
    std::uint64_t mark = 0;
  };

  void settle();
  void collect_component(std::uint32_t link);
  void share_component();
  Rate rate_alone(const Flow& flow) const;
  void set_rate(FlowId flow, const Rate& rate);
  Amount left_of(const Flow& flow) const;  // at now_
  void erase(FlowId flow);
  // by_finish_ is a heap, the first to end on top, of two the lower id.
  bool ends_before(FlowId a, FlowId b) const;
  void set_finish(FlowId flow, Picos finish);
  void put(std::size_t place, FlowId flow);
  void sift_up(std::size_t place);
  void sift_down(std::size_t place);

  std::vector<Flow> flows_;
  std::vector<FlowId> free_;
  std::vector<FlowId> by_finish_;
  std::vector<Link> links_;
  std::vector<std::uint32_t> changed_links_;
  std::vector<FlowId> changed_flows_;  // without links
  Picos now_ = 0;
  std::uint64_t round_ = 0;  // marks what this settle() has seen
  // Kept for their memory.
  std::vector<FlowId> component_flows_;
  std::vector<std::uint32_t> component_links_;
  std::vector<std::uint64_t> capacities_;
  std::vector<LinkUse> uses_;
  std::vector<FlowDemand> demands_;
  FairShare share_;
};

}  // namespace ddx::sim
