#include "sim/network/flow_set.h"

#include <algorithm>

#include "base/check.h"

namespace ddx::sim {

FlowSet::FlowSet(std::vector<std::uint64_t> capacities) : links_(capacities.size()) {
  for (std::size_t link = 0; link < links_.size(); ++link) {
    DDX_CHECK(capacities[link] <= kMostRate);
    links_[link].capacity = capacities[link];
  }
}

FlowSet::FlowId FlowSet::add(Picos now, Amount remaining, std::span<const LinkUse> uses, std::uint64_t cap) {
  DDX_CHECK(now >= now_ && remaining <= amount_of(kMostBytes));
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
  by_finish_.push_back(id);
  put(by_finish_.size() - 1, id);
  sift_up(flow.place);
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

std::optional<Picos> FlowSet::next_finish() {
  settle();
  if (by_finish_.empty()) return std::nullopt;
  return flows_[by_finish_.front()].finish;
}

void FlowSet::take_finished(Picos now, std::vector<FlowId>& finished) {
  finished.clear();
  settle();
  now_ = now;
  while (!by_finish_.empty() && now != kForever && flows_[by_finish_.front()].finish <= now) {
    finished.push_back(by_finish_.front());
    erase(finished.back());
  }
}

Rate FlowSet::rate(FlowId flow) {
  settle();
  return flows_[flow].rate;
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
  free_.push_back(id);
  const std::size_t place = flow.place;
  const FlowId last = by_finish_.back();
  by_finish_.pop_back();
  if (last == id) return;
  put(place, last);
  sift_up(place);
  sift_down(flows_[last].place);
}

Amount FlowSet::left_of(const Flow& flow) const {
  if (now_ >= flow.finish) return 0;
  return flow.remaining - std::min(flow.remaining, moved(flow.rate, now_ - flow.since));
}

void FlowSet::settle() {
  if (changed_links_.empty() && changed_flows_.empty()) return;
  ++round_;
  for (const FlowId id : changed_flows_) set_rate(id, rate_of(flows_[id].cap));
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
  if (component_flows_.size() == 1) {
    set_rate(component_flows_.front(), rate_alone(flows_[component_flows_.front()]));
    return;
  }
  // Links in ascending order, so that ties fall alike whatever was found first.
  std::sort(component_links_.begin(), component_links_.end());
  capacities_.clear();
  for (const std::uint32_t link : component_links_) capacities_.push_back(links_[link].capacity);
  uses_.clear();
  for (const FlowId id : component_flows_) {
    for (const LinkUse& use : flows_[id].uses) {
      const auto at = std::lower_bound(component_links_.begin(), component_links_.end(), use.link);
      uses_.push_back({static_cast<std::uint32_t>(at - component_links_.begin()), use.weight});
    }
  }
  demands_.clear();
  std::span<const LinkUse> rest = uses_;
  for (const FlowId id : component_flows_) {
    const std::size_t count = flows_[id].uses.size();
    demands_.push_back({rest.first(count), flows_[id].cap});
    rest = rest.subspan(count);
  }
  const std::span<const Rate> rates = share_.rates(capacities_, demands_);
  for (std::size_t flow = 0; flow < rates.size(); ++flow) set_rate(component_flows_[flow], rates[flow]);
}

// Its cap, or the narrowest of its links.
Rate FlowSet::rate_alone(const Flow& flow) const {
  Rate rate = rate_of(flow.cap);
  for (const LinkUse& use : flow.uses) {
    const Rate all{rate_of(links_[use.link].capacity).units, use.weight};
    if (all.units * rate.parts < rate.units * all.parts) rate = all;
  }
  return rate;
}

void FlowSet::set_rate(FlowId id, const Rate& rate) {
  Flow& flow = flows_[id];
  if (rate == flow.rate && flow.finish != kForever) return;  // its end stays where it is, to the picosecond
  flow.remaining = left_of(flow);
  flow.since = now_;
  flow.rate = rate;
  if (flow.remaining == 0) {
    set_finish(id, now_);
  } else {
    const Picos time = rate.units == 0 ? kForever : time_for(flow.remaining, rate);
    set_finish(id, time < kForever - now_ ? now_ + time : kForever);
  }
}

bool FlowSet::ends_before(FlowId a, FlowId b) const {
  return flows_[a].finish != flows_[b].finish ? flows_[a].finish < flows_[b].finish : a < b;
}

void FlowSet::set_finish(FlowId id, Picos finish) {
  flows_[id].finish = finish;
  sift_up(flows_[id].place);
  sift_down(flows_[id].place);
}

void FlowSet::put(std::size_t place, FlowId id) {
  by_finish_[place] = id;
  flows_[id].place = static_cast<std::uint32_t>(place);
}

void FlowSet::sift_up(std::size_t place) {
  const FlowId id = by_finish_[place];
  while (place > 0 && ends_before(id, by_finish_[(place - 1) / 2])) {
    put(place, by_finish_[(place - 1) / 2]);
    place = (place - 1) / 2;
  }
  put(place, id);
}

void FlowSet::sift_down(std::size_t place) {
  const FlowId id = by_finish_[place];
  for (std::size_t child = 2 * place + 1; child < by_finish_.size(); child = 2 * place + 1) {
    if (child + 1 < by_finish_.size() && ends_before(by_finish_[child + 1], by_finish_[child])) ++child;
    if (!ends_before(by_finish_[child], id)) break;
    put(place, by_finish_[child]);
    place = child;
  }
  put(place, id);
}

}  // namespace ddx::sim
