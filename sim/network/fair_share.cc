#include "sim/network/fair_share.h"

#include <algorithm>
#include <functional>

#include "base/check.h"

namespace ddx::sim {

namespace {

// In whole units, rounded up, so that a link never gives more than it has.
Wide taken(const Rate& rate, std::uint64_t weight) {
  if (rate.parts == 1) return rate.units * weight;
  const Wide whole = rate.units / rate.parts;
  return whole * weight + ((rate.units - whole * rate.parts) * weight + rate.parts - 1) / rate.parts;
}

}  // namespace

std::vector<Rate> fair_rates(std::span<const std::uint64_t> capacities, std::span<const FlowDemand> flows) {
  FairShare share;
  const auto rates = share.rates(capacities, flows);
  return {rates.begin(), rates.end()};
}

// The order of the flows decides nothing: a link is chosen by its share and number, and a flow's rate is its link's
// share or its cap.
std::span<const Rate> FairShare::rates(std::span<const std::uint64_t> capacities, std::span<const FlowDemand> flows) {
  flows_ = flows;
  set_up(capacities);
  const auto later = std::greater<>();
  while (!fullest_.empty()) {
    const auto [old_share, link] = fullest_.front();
    // Shares only rise as others stop, so what is on top and up to date is the least.
    if (freeze_caps_up_to(old_share)) continue;
    std::pop_heap(fullest_.begin(), fullest_.end(), later);
    fullest_.pop_back();
    if (links_[link].weights == 0) continue;
    const Wide now = share(link);
    if (now > old_share) {
      fullest_.emplace_back(now, link);
      std::push_heap(fullest_.begin(), fullest_.end(), later);
      continue;
    }
    const Rate rate{links_[link].left, static_cast<std::uint64_t>(links_[link].weights)};
    for (const std::uint32_t flow : links_[link].flows) freeze(flow, rate);
  }
  freeze_caps_up_to(rate_of(kNoCap).units);
  return rates_;
}

void FairShare::set_up(std::span<const std::uint64_t> capacities) {
  if (links_.size() < capacities.size()) links_.resize(capacities.size());
  for (std::size_t link = 0; link < capacities.size(); ++link) {
    DDX_CHECK(capacities[link] <= kMostRate);
    links_[link].left = rate_of(capacities[link]).units;
    links_[link].weights = 0;
    links_[link].flows.clear();
  }
  rates_.assign(flows_.size(), rate_of(kNoCap));
  frozen_.assign(flows_.size(), false);
  by_cap_.clear();
  next_cap_ = 0;
  for (std::uint32_t flow = 0; flow < flows_.size(); ++flow) {
    for (const LinkUse& use : flows_[flow].uses) {
      links_[use.link].weights += use.weight;
      links_[use.link].flows.push_back(flow);
    }
    if (flows_[flow].cap != kNoCap) by_cap_.push_back(flow);
  }
  std::sort(by_cap_.begin(), by_cap_.end(),
            [this](std::uint32_t a, std::uint32_t b) { return flows_[a].cap < flows_[b].cap; });
  fullest_.clear();
  for (std::uint32_t link = 0; link < capacities.size(); ++link) {
    DDX_CHECK(links_[link].weights < Wide{1} << 40);
    if (links_[link].weights > 0) fullest_.emplace_back(share(link), link);
  }
  std::make_heap(fullest_.begin(), fullest_.end(), std::greater<>());
}

bool FairShare::freeze_caps_up_to(Wide level) {
  bool any = false;
  for (; next_cap_ < by_cap_.size(); ++next_cap_) {
    const Rate cap = rate_of(flows_[by_cap_[next_cap_]].cap);
    if (cap.units > level) break;
    any |= freeze(by_cap_[next_cap_], cap);
  }
  return any;
}

bool FairShare::freeze(std::uint32_t flow, const Rate& rate) {
  if (frozen_[flow]) return false;
  frozen_[flow] = true;
  rates_[flow] = rate;
  for (const LinkUse& use : flows_[flow].uses) {
    Link& link = links_[use.link];
    link.left -= std::min(link.left, taken(rate, use.weight));
    link.weights -= use.weight;
  }
  return true;
}

}  // namespace ddx::sim
