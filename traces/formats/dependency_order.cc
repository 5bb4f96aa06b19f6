#include "traces/formats/dependency_order.h"

#include <algorithm>

namespace ddx::formats {
namespace {

constexpr std::size_t kMostExamples = 8;
constexpr std::size_t kMostCycles = 16;  // followed; beyond these they are only counted
constexpr std::size_t kLongestCycle = 32;

class Sorter {
 public:
  Sorter(const std::vector<GraphNode>& nodes, GraphFaults& faults) : nodes_(nodes), faults_(faults) {}

  std::vector<OrderStep> sort() {
    index_ids();
    link();
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      if (unmet_[i] == 0) {
        free_.push(key(i));
      } else if (unmet_hard_[i] == 0) {
        soft_.push(key(i));
      }
      by_id_.push_back(i);
    }
    std::sort(by_id_.begin(), by_id_.end(), [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
    while (ran_ < nodes_.size()) step();
    return std::move(order_);
  }

 private:
  struct Edge {
    std::uint32_t node;
    bool soft;
    auto operator<=>(const Edge&) const = default;
  };
  using Key = std::pair<std::uint64_t, std::uint32_t>;  // id, index
  using Heap = std::priority_queue<Key, std::vector<Key>, std::greater<>>;

  Key key(std::uint32_t node) const { return {nodes_[node].id, node}; }

  void index_ids() {
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      if (index_.try_emplace(nodes_[i].id, i).second) continue;
      ++faults_.duplicate_count;
      if (faults_.duplicates.size() < kMostExamples) faults_.duplicates.push_back(nodes_[i].id);
    }
  }

  void add_deps(std::uint32_t node, std::span<const std::uint64_t> ids, bool soft) {
    for (const std::uint64_t id : ids) {
      const auto at = index_.find(id);
      if (at != index_.end()) {
        deps_.push_back({at->second, soft});
        continue;
      }
      ++faults_.dangling_count;
      if (faults_.dangling.size() < kMostExamples) faults_.dangling.emplace_back(nodes_[node].id, id);
    }
  }

  // Dependencies as indices, and the reverse lists.
  void link() {
    const std::size_t n = nodes_.size();
    first_dep_.assign(n + 1, 0);
    first_user_.assign(n + 1, 0);
    unmet_.assign(n, 0);
    unmet_hard_.assign(n, 0);
    unwaited_.assign(n, 0);
    done_.assign(n, 0);
    for (std::uint32_t i = 0; i < n; ++i) {
      const auto begin = static_cast<std::ptrdiff_t>(deps_.size());
      add_deps(i, nodes_[i].deps, false);
      add_deps(i, nodes_[i].soft_deps, true);
      // One that is both is hard.
      std::sort(deps_.begin() + begin, deps_.end());
      deps_.erase(std::unique(deps_.begin() + begin, deps_.end(),
                              [](const Edge& a, const Edge& b) { return a.node == b.node; }),
                  deps_.end());
      first_dep_[i + 1] = static_cast<std::uint32_t>(deps_.size());
      for (const Edge& edge : deps_of(i)) {
        ++unmet_[i];
        if (!edge.soft) ++unmet_hard_[i];
        ++first_user_[edge.node + 1];
      }
    }
    for (std::size_t i = 0; i < n; ++i) first_user_[i + 1] += first_user_[i];
    users_.resize(deps_.size());
    std::vector<std::uint32_t> next(first_user_.begin(), first_user_.end() - 1);
    for (std::uint32_t i = 0; i < n; ++i) {
      for (const Edge& edge : deps_of(i)) users_[next[edge.node]++] = {i, edge.soft};
    }
  }

  std::span<const Edge> deps_of(std::uint32_t node) const {
    return {deps_.data() + first_dep_[node], first_dep_[node + 1] - first_dep_[node]};
  }
  std::span<const Edge> users_of(std::uint32_t node) const {
    return {users_.data() + first_user_[node], first_user_[node + 1] - first_user_[node]};
  }

  void step() {
    if (!free_.empty()) {
      const std::uint32_t node = free_.top().second;
      free_.pop();
      if (!has_run(node)) run(node);
      return;
    }
    while (!held_.empty() && (has_run(held_.top().second) || unwaited_[held_.top().second] == 0)) held_.pop();
    if (held_.empty()) return cut_cycle();
    const std::uint32_t node = held_.top().second;
    held_.pop();
    for (const Edge& edge : deps_of(node)) wait_for(edge.node);
  }

  bool has_run(std::uint32_t node) const { return (done_[node] & kRun) != 0; }

  void run(std::uint32_t node) {
    for (const Edge& edge : deps_of(node)) wait_for(edge.node);  // only behind a cut is anything left to wait for
    order_.push_back({OrderStep::Kind::run, node});
    ++ran_;
    done_[node] |= kRun;
    for (const Edge& user : users_of(node)) {
      if (nodes_[node].ends_later) ++unwaited_[user.node];
      --unmet_[user.node];
      if (!user.soft) --unmet_hard_[user.node];
      if (has_run(user.node)) continue;
      if (unmet_[user.node] == 0) {
        (unwaited_[user.node] == 0 ? free_ : held_).push(key(user.node));
      } else if (!user.soft && unmet_hard_[user.node] == 0) {
        soft_.push(key(user.node));
      }
    }
  }

  void wait_for(std::uint32_t node) {
    if (!nodes_[node].ends_later || !has_run(node) || (done_[node] & kWaited) != 0) return;
    done_[node] |= kWaited;
    order_.push_back({OrderStep::Kind::wait, node});
    for (const Edge& user : users_of(node)) {
      if (--unwaited_[user.node] == 0 && unmet_[user.node] == 0 && !has_run(user.node)) free_.push(key(user.node));
    }
  }

  // Nothing can run: what is left depends on itself.
  void cut_cycle() {
    while (!soft_.empty() && (has_run(soft_.top().second) || unmet_[soft_.top().second] == 0)) soft_.pop();
    const bool soft = !soft_.empty();
    std::uint32_t cut = 0;
    if (soft) {
      cut = soft_.top().second;
      soft_.pop();
      ++faults_.soft_cuts;
      if (faults_.cycles.size() < kMostCycles) follow_cycle(cut);
    } else {
      while (has_run(by_id_[next_by_id_])) ++next_by_id_;
      cut = by_id_[next_by_id_];
      ++faults_.cuts;
      if (faults_.cycles.size() < kMostCycles) cut = follow_cycle(cut);
    }
    run(cut);
  }

  // A dependency that did not run, a hard one if there is one. There is one of all nodes that are left.
  Edge open_dep(std::uint32_t node) const {
    Edge open{node, true};
    for (const Edge& edge : deps_of(node)) {
      if (has_run(edge.node)) continue;
      open = edge;
      if (!edge.soft) break;
    }
    return open;
  }

  // Steps from `node` along dependencies until a node comes twice; returns the least id of the circle.
  std::uint32_t follow_cycle(std::uint32_t node) {
    std::unordered_map<std::uint32_t, std::size_t> seen;
    std::vector<std::uint32_t> trail;
    std::vector<bool> soft;
    while (seen.try_emplace(node, trail.size()).second) {
      const Edge next = open_dep(node);
      trail.push_back(node);
      soft.push_back(next.soft);
      node = next.node;
    }
    const auto begin = static_cast<std::ptrdiff_t>(seen[node]);
    GraphFaults::Cycle cycle;
    cycle.soft = std::find(soft.begin() + begin, soft.end(), true) != soft.end();
    trail.erase(trail.begin(), trail.begin() + begin);
    const auto least =
        std::min_element(trail.begin(), trail.end(), [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
    std::rotate(trail.begin(), least, trail.end());
    for (std::size_t i = 0; i < std::min(trail.size(), kLongestCycle); ++i) cycle.ids.push_back(nodes_[trail[i]].id);
    const bool known = std::any_of(faults_.cycles.begin(), faults_.cycles.end(),
                                   [&](const GraphFaults::Cycle& other) { return other.ids == cycle.ids; });
    if (!known) faults_.cycles.push_back(std::move(cycle));
    return trail.front();
  }

  static constexpr std::uint8_t kRun = 1, kWaited = 2;

  const std::vector<GraphNode>& nodes_;
  GraphFaults& faults_;
  std::unordered_map<std::uint64_t, std::uint32_t, KeyedHash> index_;
  std::vector<Edge> deps_, users_;
  std::vector<std::uint32_t> first_dep_, first_user_;
  std::vector<std::uint32_t> unmet_;       // dependencies that did not run yet
  std::vector<std::uint32_t> unmet_hard_;  // and those of them that are hard
  std::vector<std::uint32_t> unwaited_;    // dependencies that run beside it and were not waited for
  std::vector<std::uint8_t> done_;
  Heap free_, held_;
  Heap soft_;  // only soft dependencies are unmet
  std::vector<std::uint32_t> by_id_;
  std::size_t next_by_id_ = 0;
  std::vector<OrderStep> order_;
  std::size_t ran_ = 0;
};

}  // namespace

std::vector<OrderStep> dependency_order(const std::vector<GraphNode>& nodes, GraphFaults& faults) {
  return Sorter(nodes, faults).sort();
}

}  // namespace ddx::formats
