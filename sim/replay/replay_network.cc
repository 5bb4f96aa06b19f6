// What is under way at the same time shares links, max-min fair.
//
// The network's clock only moves when no rank can go on by itself: then everything that will ever start before its next
// event has been handed to it, since ranks go on only by its events, and never before these. So what it does is exact,
// though ranks are visited in any order and run ahead of each other.
#include <algorithm>

#include "sim/replay/replay_engine.h"

namespace ddx::sim {
namespace {

// A flow's rate is the progress of its operation: this much when it is alone. A resource then offers kWholeResource of
// it in parts of itself, and what an operation takes of it is the sum of what its ranks take: whole numbers, so that it
// comes to the same whether alike ranks are added up one by one or not.
constexpr std::uint64_t kAlone = 1'000'000;
constexpr std::uint64_t kMostWeight = std::uint64_t{1} << 38;

// One entry for each link, by link.
void add_up(std::vector<LinkUse>& loads, std::vector<LinkUse>& uses) {
  std::sort(loads.begin(), loads.end(), [](const auto& a, const auto& b) { return a.link < b.link; });
  uses.clear();
  for (std::size_t i = 0; i < loads.size();) {
    const std::uint32_t link = loads[i].link;
    std::uint64_t sum = 0;
    for (; i < loads.size() && loads[i].link == link; ++i) sum = std::min(kMostWeight, sum + loads[i].weight);
    uses.push_back({link, sum});
  }
}

}  // namespace

void ReplayEngine::send_off(const Transit& transit, Picos start) {
  std::uint32_t at = 0;
  if (free_transits_.empty()) {
    at = static_cast<std::uint32_t>(transits_.size());
    transits_.push_back(transit);
  } else {
    at = free_transits_.back();
    free_transits_.pop_back();
    transits_[at] = transit;
  }
  departures_.push({start, at});
}

bool ReplayEngine::advance_network() {
  if (by_steps()) return advance_steps();
  if (!flows_ && departures_.empty()) return false;
  if (!flows_) flows_.emplace(std::vector<std::uint64_t>(folding_.resources, kAlone * kWholeResource));
  const auto finish = flows_->next_finish();
  if (!finish && departures_.empty()) return false;
  if (!departures_.empty() && (!finish || departures_.top().time <= *finish)) {
    const Picos now = departures_.top().time;
    while (!departures_.empty() && departures_.top().time == now) {
      const std::uint32_t transit = departures_.top().transit;
      departures_.pop();
      enter_network(transit, now);
    }
    return true;
  }
  if (*finish == kForever) return refuse_time();
  finished_.clear();
  flows_->take_finished(*finish, finished_);
  for (const FlowSet::FlowId flow : finished_) {
    const std::uint32_t transit = transit_of_flow_[flow];
    free_transits_.push_back(transit);
    arrive_from_network(transits_[transit], later(*finish, transits_[transit].cost->price.latency));
  }
  return true;
}

// Of one class's ranks: how much of one resource all its ranks together take.
void ReplayEngine::add_loads(std::uint32_t rank, const std::vector<ResourceUse>& uses) {
  const std::size_t kinds = folding_.resource.size() / ranks_.size();
  for (const ResourceUse& use : uses) {
    const std::size_t row = rank * kinds + use.kind;
    if (use.part > 0 && folding_.resource_weight[row] > 0)
      loads_.push_back({folding_.resource[row], std::min(kMostWeight, folding_.resource_weight[row] * use.part)});
  }
}

const std::vector<ResourceUse>& ReplayEngine::uses_of(const Cost& cost, OpRef call, std::uint32_t members) const {
  const auto root = static_cast<std::uint32_t>(root_of(call).value_or(0)), position = position_of(call);
  if (cost.root_uses && position == root) return *cost.root_uses;
  if (cost.last_uses && position == (root == 0 ? members : root) - 1) return *cost.last_uses;
  return cost.uses;
}

// All calls of one communicator come from the same classes of ranks, so what they take only changes with their uses
// and, where roots have their own, with the root.
const std::vector<LinkUse>& ReplayEngine::links_of(const Transit& transit) {
  const Cost& cost = *transit.cost;
  loads_.clear();
  if (transit.pair) {
    const Pair& pair = channels_[transit.at].pairs.at(transit.number);
    add_loads(pair.send.rank, cost.uses);
    add_loads(pair.recv.rank, cost.receiver_uses);
    add_up(loads_, pair_links_);
    return pair_links_;
  }
  CommState& comm = comms_[transit.at];
  if (comm.links.empty() || cost.root_uses || comm.rooted || comm.uses != cost.uses) {
    comm.uses = cost.uses;
    comm.rooted = cost.root_uses.has_value();
    for (const OpRef call : comm.instances.at(transit.number - 1).arrived) {
      add_loads(call.rank, uses_of(cost, call, comm.size));
    }
    add_up(loads_, comm.links);
  }
  return comm.links;
}

void ReplayEngine::enter_network(std::uint32_t at, Picos now) {
  const Transit& transit = transits_[at];
  if (transit.cost->price.transfer == 0) {
    free_transits_.push_back(at);
    arrive_from_network(transit, later(now, transit.cost->price.latency));
    return;
  }
  const Amount amount = moved(rate_of(kAlone), transit.cost->price.transfer);
  const FlowSet::FlowId flow = flows_->add(now, amount, links_of(transit), kAlone);
  if (transit_of_flow_.size() <= flow) transit_of_flow_.resize(flow + std::size_t{1});
  transit_of_flow_[flow] = at;
}

void ReplayEngine::arrive_from_network(const Transit& transit, Picos end) {
  // Copied: what completes may send off others, which may take its place.
  const Transit done = transit;
  if (done.pair) {
    complete_pair({done.at, done.number}, end, end);
  } else {
    complete_instance(done.at, static_cast<std::uint32_t>(done.number), end);
  }
}

}  // namespace ddx::sim
