#include "sim/network/fair_share.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/check.h"

namespace ddx::sim {

namespace {

// One problem of progressive filling over links numbered densely. The order of the flows decides nothing: a link is
// chosen by its share and number, and a flow's rate is its link's share or its cap.
class Filling {
 public:
  Filling(std::vector<std::uint64_t> capacities, std::span<const FlowDemand> flows)
      : flows_(flows), rates_(flows.size(), rate_of(kNoCap)), frozen_(flows.size(), false) {
    links_.resize(capacities.size());
    for (std::size_t link = 0; link < links_.size(); ++link) {
      DDX_CHECK(capacities[link] <= kMostRate);
      links_[link].left = rate_of(capacities[link]).units;
    }
    Wide total = 0;
    for (std::uint32_t flow = 0; flow < flows.size(); ++flow) {
      for (const LinkUse& use : flows[flow].uses) {
        links_[use.link].weights += use.weight;
        links_[use.link].flows.push_back(flow);
        total += use.weight;
      }
      if (flows[flow].cap != kNoCap) by_cap_.push_back(flow);
    }
    DDX_CHECK(total < kMostWeight);
  }

  std::vector<Rate> run() {
    std::sort(by_cap_.begin(), by_cap_.end(),
              [this](std::uint32_t a, std::uint32_t b) { return flows_[a].cap < flows_[b].cap; });
    for (std::uint32_t link = 0; link < links_.size(); ++link) {
      if (links_[link].weights > 0) fullest_.push({share(link), link});
    }
    while (!fullest_.empty()) {
      const auto [old_share, link] = fullest_.top();
      // Shares only rise as others stop, so what is on top and up to date is the least.
      if (freeze_caps_up_to(old_share)) continue;
      fullest_.pop();
      if (links_[link].weights == 0) continue;
      const Wide now = share(link);
      if (now > old_share) {
        fullest_.push({now, link});
        continue;
      }
      const Rate rate{links_[link].left, static_cast<std::uint64_t>(links_[link].weights)};
      for (const std::uint32_t flow : links_[link].flows) freeze(flow, rate);
    }
    freeze_caps_up_to(rate_of(kNoCap).units);
    return std::move(rates_);
  }

 private:
  struct Link {
    Wide left = 0;     // units of a Rate
    Wide weights = 0;  // of flows whose rate still rises
    std::vector<std::uint32_t> flows;
  };
  using Share = std::pair<Wide, std::uint32_t>;

  Wide share(std::uint32_t link) const { return links_[link].left / links_[link].weights; }

  bool freeze_caps_up_to(Wide level) {
    bool any = false;
    for (; next_cap_ < by_cap_.size() && rate_of(flows_[by_cap_[next_cap_]].cap).units <= level; ++next_cap_) {
      any |= freeze(by_cap_[next_cap_], rate_of(flows_[by_cap_[next_cap_]].cap));
    }
    return any;
  }

  bool freeze(std::uint32_t flow, const Rate& rate) {
    if (frozen_[flow]) return false;
    frozen_[flow] = true;
    rates_[flow] = rate;
    for (const LinkUse& use : flows_[flow].uses) {
      links_[use.link].left -= std::min(links_[use.link].left, taken(rate, use.weight));
      links_[use.link].weights -= use.weight;
    }
    return true;
  }

  // In whole units, rounded up, so that a link never gives more than it has.
  static Wide taken(const Rate& rate, std::uint32_t weight) {
    const Wide rest = rate.units % rate.parts * weight;
    return rate.units / rate.parts * weight + rest / rate.parts + (rest % rate.parts != 0);
  }

  std::span<const FlowDemand> flows_;
  std::vector<Link> links_;
  std::vector<Rate> rates_;
  std::vector<bool> frozen_;
  std::vector<std::uint32_t> by_cap_;
  std::size_t next_cap_ = 0;
  std::priority_queue<Share, std::vector<Share>, std::greater<>> fullest_;
};

// To the nearest picosecond, halves up, as transfer_time() does; saturates.
Picos time_for(Amount amount, const Rate& rate) {
  const Wide whole = amount / rate.units;
  if (whole > Wide{static_cast<std::uint64_t>(kForever)}) return kForever;
  const Wide rest = amount % rate.units * rate.parts;  // below 2^84 x 2^40
  const Wide time = whole * rate.parts + rest / rate.units + (rest % rate.units >= rate.units - rate.units / 2);
  return static_cast<Picos>(std::min(time, Wide{static_cast<std::uint64_t>(kForever)}));
}

}  // namespace

std::vector<Rate> fair_rates(std::span<const std::uint64_t> capacities, std::span<const FlowDemand> flows) {
  return Filling({capacities.begin(), capacities.end()}, flows).run();
}

FlowSet::FlowSet(std::vector<std::uint64_t> capacities) : links_(capacities.size()) {
  for (std::size_t link = 0; link < links_.size(); ++link) {
    DDX_CHECK(capacities[link] <= kMostRate);
    links_[link].capacity = capacities[link];
  }
}

FlowSet::FlowId FlowSet::add(Picos now, Amount remaining, std::span<const LinkUse> uses, std::uint64_t cap) {
  DDX_CHECK(now >= now_);
  if (now > now_) settle();
  now_ = now;
  if (free_.empty()) {
    free_.push_back(static_cast<FlowId>(flows_.size()));
    flows_.emplace_back();
  }
  const FlowId id = free_.back();
  free_.pop_back();
  Flow& flow = flows_[id];
  flow.remaining = remaining;
  flow.rate = {};
  flow.since = now;
  flow.finish = kForever;
  flow.cap = cap;
  flow.uses.assign(uses.begin(), uses.end());
  flow.live = true;
  ++live_;
  for (const LinkUse& use : uses) {
    links_[use.link].flows.push_back(id);
    changed_links_.push_back(use.link);
  }
  if (uses.empty()) changed_flows_.push_back(id);
  return id;
}

Amount FlowSet::remove(Picos now, FlowId id) {
  DDX_CHECK(now >= now_ && flows_[id].live);
  settle();
  now_ = now;
  const Amount left = left_of(flows_[id]);
  erase(id);
  return left;
}

void FlowSet::erase(FlowId id) {
  Flow& flow = flows_[id];
  for (const LinkUse& use : flow.uses) {
    std::vector<FlowId>& others = links_[use.link].flows;
    *std::find(others.begin(), others.end(), id) = others.back();
    others.pop_back();
    if (!others.empty()) changed_links_.push_back(use.link);
  }
  flow.live = false;
  ++flow.version;
  free_.push_back(id);
  --live_;
}

std::optional<Picos> FlowSet::next_finish() {
  settle();
  while (!finishes_.empty()) {
    const Finish& next = finishes_.top();
    if (flows_[next.flow].live && flows_[next.flow].version == next.version) return next.time;
    finishes_.pop();
  }
  return live_ == 0 ? std::nullopt : std::optional<Picos>(kForever);
}

void FlowSet::take_finished(Picos now, std::vector<FlowId>& finished) {
  finished.clear();
  for (auto next = next_finish(); next && *next <= now && *next != kForever; next = next_finish()) {
    finished.push_back(finishes_.top().flow);
    finishes_.pop();
    ++flows_[finished.back()].version;
  }
  now_ = now;
  for (const FlowId id : finished) erase(id);
}

Rate FlowSet::rate(FlowId flow) {
  settle();
  return flows_[flow].rate;
}

Amount FlowSet::left_of(const Flow& flow) const {
  if (now_ >= flow.finish) return 0;
  return flow.remaining - std::min(flow.remaining, moved(flow.rate, now_ - flow.since));
}

void FlowSet::settle() {
  if (changed_links_.empty() && changed_flows_.empty()) return;
  ++round_;
  for (const FlowId id : changed_flows_) {
    if (flows_[id].live) set_rate(id, rate_of(flows_[id].cap));
  }
  changed_flows_.clear();
  for (const std::uint32_t link : changed_links_) {
    if (links_[link].mark == round_ || links_[link].flows.empty()) continue;
    collect_component(link);
    share_component();
  }
  changed_links_.clear();
}

void FlowSet::collect_component(std::uint32_t start) {
  component_flows_.clear();
  component_links_.assign(1, start);
  links_[start].mark = round_;
  for (std::size_t at = 0; at < component_links_.size(); ++at) {
    for (const FlowId id : links_[component_links_[at]].flows) {
      if (flows_[id].mark == round_) continue;
      flows_[id].mark = round_;
      component_flows_.push_back(id);
      for (const LinkUse& use : flows_[id].uses) {
        if (links_[use.link].mark == round_) continue;
        links_[use.link].mark = round_;
        component_links_.push_back(use.link);
      }
    }
  }
}

void FlowSet::share_component() {
  if (component_flows_.size() == 1) {  // alone: its narrowest link
    const Flow& flow = flows_[component_flows_.front()];
    Rate rate = rate_of(flow.cap);
    for (const LinkUse& use : flow.uses) {
      const Rate all{rate_of(links_[use.link].capacity).units, use.weight};
      if (all.units * rate.parts < rate.units * use.weight) rate = all;
    }
    set_rate(component_flows_.front(), rate);
    return;
  }
  // Links in ascending order, so that ties fall alike whatever was found first.
  std::sort(component_links_.begin(), component_links_.end());
  std::vector<std::uint64_t> capacities;
  for (const std::uint32_t link : component_links_) capacities.push_back(links_[link].capacity);
  std::vector<LinkUse> uses;
  std::vector<std::size_t> ends;
  for (const FlowId id : component_flows_) {
    for (const LinkUse& use : flows_[id].uses) {
      const auto at = std::lower_bound(component_links_.begin(), component_links_.end(), use.link);
      uses.push_back({static_cast<std::uint32_t>(at - component_links_.begin()), use.weight});
    }
    ends.push_back(uses.size());
  }
  std::vector<FlowDemand> demands;
  for (std::size_t flow = 0; flow < ends.size(); ++flow) {
    const std::size_t begin = flow == 0 ? 0 : ends[flow - 1];
    demands.push_back({std::span(uses).subspan(begin, ends[flow] - begin), flows_[component_flows_[flow]].cap});
  }
  const std::vector<Rate> rates = Filling(std::move(capacities), demands).run();
  for (std::size_t flow = 0; flow < rates.size(); ++flow) set_rate(component_flows_[flow], rates[flow]);
}

void FlowSet::set_rate(FlowId id, const Rate& rate) {
  Flow& flow = flows_[id];
  if (rate == flow.rate && flow.finish != kForever) return;  // its end stays where it is, to the picosecond
  flow.remaining = left_of(flow);
  flow.since = now_;
  flow.rate = rate;
  ++flow.version;
  flow.finish = kForever;
  if (flow.remaining == 0) {
    flow.finish = now_;
  } else if (rate.units > 0) {
    const Picos time = time_for(flow.remaining, rate);
    if (time < kForever - now_) flow.finish = now_ + time;
  }
  if (flow.finish != kForever) finishes_.push({flow.finish, id, flow.version});
}

}  // namespace ddx::sim
