#include "traces/formats/lane_order.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace ddx::formats {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

// Places are those in the given order.
class LaneSorter {
 public:
  LaneSorter(const std::vector<GraphNode>& nodes, std::span<const OrderStep> order, const std::vector<Lane>& lanes)
      : nodes_(nodes), lanes_(lanes) {
    for (const OrderStep& step : order) {
      if (step.kind == OrderStep::Kind::run) node_at_.push_back(step.node);
    }
  }

  std::vector<OrderStep> sort() {
    link();
    for (std::uint32_t place = 0; place < node_at_.size(); ++place) {
      if (unmet_[place] == 0) offer(place);
    }
    while (!timely_.empty() || !held_.empty()) step();
    return std::move(steps_);
  }

 private:
  struct LaneState {
    std::uint64_t free_at = 0;
    std::uint32_t issued = 0, waited = 0;  // computations: the first `waited` of those that were issued have ended
    std::uint32_t last = kNone;            // communication: the place that came last
  };
  using Timely = std::pair<std::uint64_t, std::uint32_t>;  // when it is ready, place
  template <class Key>
  using Heap = std::priority_queue<Key, std::vector<Key>, std::greater<>>;

  const Lane& lane(std::uint32_t place) const { return lanes_[node_at_[place]]; }
  bool computes(std::uint32_t place) const { return lane(place).computes && lane(place).number; }
  bool opens(std::uint32_t place) const { return !lane(place).computes && nodes_[node_at_[place]].ends_later; }
  LaneState& state(std::uint32_t place) { return states_[*lane(place).number]; }

  void link() {
    const auto n = static_cast<std::uint32_t>(node_at_.size());
    std::unordered_map<std::uint64_t, std::uint32_t, KeyedHash> place_of;
    std::vector<std::uint32_t> place_of_node(nodes_.size(), kNone);
    for (std::uint32_t place = 0; place < n; ++place) place_of_node[node_at_[place]] = place;
    for (std::uint32_t node = 0; node < nodes_.size(); ++node)
      place_of.try_emplace(nodes_[node].id, place_of_node[node]);
    unmet_.assign(n, 0);
    unwaited_.assign(n, 0);
    ready_.assign(n, 0);
    number_in_lane_.assign(n, 0);
    done_.assign(n, false);
    waited_.assign(n, false);
    next_on_lane_.assign(n, kNone);
    first_dep_.assign(n + 1, 0);
    first_user_.assign(n + 1, 0);
    for (std::uint32_t place = 0; place < n; ++place) {
      add_deps(place, place_of);
      keep_place_on_lane(place);
    }
    for (std::size_t i = 0; i < n; ++i) first_user_[i + 1] += first_user_[i];
    users_.resize(deps_.size());
    std::vector<std::uint32_t> next(first_user_.begin(), first_user_.end() - 1);
    for (std::uint32_t place = 0; place < n; ++place) {
      for (const std::uint32_t dep : deps_of(place)) users_[next[dep]++] = place;
    }
  }

  // Those that come later in the order were cut from a circle.
  void add_deps(std::uint32_t place, const std::unordered_map<std::uint64_t, std::uint32_t, KeyedHash>& place_of) {
    const auto begin = static_cast<std::ptrdiff_t>(deps_.size());
    const GraphNode& node = nodes_[node_at_[place]];
    for (const std::span<const std::uint64_t> ids : {node.deps, node.soft_deps}) {
      for (const std::uint64_t id : ids) {
        const auto at = place_of.find(id);
        if (at != place_of.end() && at->second < place) deps_.push_back(at->second);
      }
    }
    std::sort(deps_.begin() + begin, deps_.end());
    deps_.erase(std::unique(deps_.begin() + begin, deps_.end()), deps_.end());
    first_dep_[place + 1] = static_cast<std::uint32_t>(deps_.size());
    unmet_[place] += static_cast<std::uint32_t>(deps_of(place).size());
    for (const std::uint32_t dep : deps_of(place)) ++first_user_[dep + 1];
  }

  void keep_place_on_lane(std::uint32_t place) {
    const auto& number = lane(place).number;
    if (!number) return;
    if (*number >= states_.size()) states_.resize(*number + 1);
    if (lane(place).computes) return;
    const std::uint32_t last = std::exchange(states_[*number].last, place);
    if (last == kNone) return;
    next_on_lane_[last] = place;
    ++unmet_[place];
  }

  std::span<const std::uint32_t> deps_of(std::uint32_t place) const {
    return {deps_.data() + first_dep_[place], first_dep_[place + 1] - first_dep_[place]};
  }
  std::span<const std::uint32_t> users_of(std::uint32_t place) const {
    return {users_.data() + first_user_[place], first_user_[place + 1] - first_user_[place]};
  }

  // All that it depends on was issued.
  void offer(std::uint32_t place) {
    if (unwaited_[place] == 0) {
      timely_.emplace(ready_[place], place);
    } else {
      held_.push(place);
    }
  }

  void step() {
    if (!timely_.empty()) {
      const std::uint32_t place = timely_.top().second;
      timely_.pop();
      if (!done_[place]) issue(place);
      return;
    }
    const std::uint32_t place = held_.top();
    held_.pop();
    if (done_[place] || unwaited_[place] == 0) return;
    for (const std::uint32_t dep : deps_of(place)) {
      if (opens(dep) && !waited_[dep]) wait_for_call(dep);
    }
  }

  void wait_for_call(std::uint32_t place) {
    waited_[place] = true;
    steps_.push_back({OrderStep::Kind::wait, node_at_[place]});
    for (const std::uint32_t user : users_of(place)) {
      if (--unwaited_[user] == 0 && unmet_[user] == 0) offer(user);
    }
  }

  // For the last one of each lane that `place` depends on; its lane keeps those before it.
  void wait_for_computations(std::uint32_t place) {
    needed_.clear();
    for (const std::uint32_t dep : deps_of(place)) {
      if (computes(dep) && (!computes(place) || lane(dep).number != lane(place).number)) {
        needed_.emplace_back(*lane(dep).number, number_in_lane_[dep], dep);
      }
    }
    std::sort(needed_.begin(), needed_.end());
    for (std::size_t i = 0; i < needed_.size(); ++i) {
      const auto& [number, in_lane, dep] = needed_[i];
      if (i + 1 < needed_.size() && std::get<0>(needed_[i + 1]) == number) continue;
      if (in_lane < states_[number].waited) continue;
      states_[number].waited = in_lane + 1;
      steps_.push_back({OrderStep::Kind::wait, node_at_[dep]});
    }
  }

  void issue(std::uint32_t place) {
    wait_for_computations(place);
    steps_.push_back({OrderStep::Kind::run, node_at_[place]});
    done_[place] = true;
    std::uint64_t end = ready_[place];
    if (computes(place)) {
      LaneState& on = state(place);
      number_in_lane_[place] = on.issued++;
      end = std::max(end, on.free_at);
      const std::uint64_t most = std::numeric_limits<std::uint64_t>::max() - end;
      end += std::min(lane(place).length, most);
      on.free_at = end;
    }
    for (const std::uint32_t user : users_of(place)) {
      ready_[user] = std::max(ready_[user], end);
      if (opens(place)) ++unwaited_[user];
      if (--unmet_[user] == 0) offer(user);
    }
    if (const std::uint32_t next = next_on_lane_[place]; next != kNone && --unmet_[next] == 0) offer(next);
  }

  const std::vector<GraphNode>& nodes_;
  const std::vector<Lane>& lanes_;
  std::vector<std::uint32_t> node_at_;  // by place
  std::vector<std::uint32_t> deps_, users_, first_dep_, first_user_;
  std::vector<std::uint32_t> unmet_;     // dependencies, and a call before it on its lane, that were not issued
  std::vector<std::uint32_t> unwaited_;  // calls that it depends on, issued and not waited for
  std::vector<std::uint64_t> ready_;
  std::vector<std::uint32_t> number_in_lane_, next_on_lane_;
  std::vector<bool> done_, waited_;
  std::vector<LaneState> states_;
  std::vector<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> needed_;  // lane, number in it, place
  Heap<Timely> timely_;
  Heap<std::uint32_t> held_;
  std::vector<OrderStep> steps_;
};

}  // namespace

std::vector<OrderStep> lane_order(const std::vector<GraphNode>& nodes, std::span<const OrderStep> order,
                                  const std::vector<Lane>& lanes) {
  return LaneSorter(nodes, order, lanes).sort();
}

}  // namespace ddx::formats
