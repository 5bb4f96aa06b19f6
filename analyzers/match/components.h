// Strongly connected components of a graph, by Tarjan's algorithm without recursion.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace ddx::analyzers {

template <class Next>
class Components {
 public:
  Components(std::size_t nodes, const Next& next, std::optional<std::uint32_t> removed)
      : next_(next), removed_(removed), index_(nodes, kUnvisited), low_(nodes, 0), on_stack_(nodes, false) {}

  std::vector<std::vector<std::uint32_t>> run() {
    for (std::uint32_t root = 0; root < index_.size(); ++root) {
      if (index_[root] == kUnvisited && root != removed_) visit_from(root);
    }
    return std::move(found_);
  }

 private:
  static constexpr std::uint32_t kUnvisited = 0xffffffff;

  void visit_from(std::uint32_t root) {
    std::vector<std::pair<std::uint32_t, std::size_t>> path{{root, 0}};
    open(root);
    while (!path.empty()) {
      auto& [node, edge] = path.back();
      if (const std::optional<std::uint32_t> to = next_(node, edge++)) {
        if (to == removed_) continue;
        if (index_[*to] == kUnvisited) {
          open(*to);
          path.emplace_back(*to, 0);
        } else if (on_stack_[*to]) {
          low_[node] = std::min(low_[node], index_[*to]);
        }
        continue;
      }
      const std::uint32_t done = node;
      path.pop_back();
      if (!path.empty()) low_[path.back().first] = std::min(low_[path.back().first], low_[done]);
      if (low_[done] == index_[done]) close(done);
    }
  }

  void open(std::uint32_t node) {
    index_[node] = low_[node] = counter_++;
    stack_.push_back(node);
    on_stack_[node] = true;
  }

  void close(std::uint32_t root) {
    std::vector<std::uint32_t> nodes;
    do {
      nodes.push_back(stack_.back());
      on_stack_[stack_.back()] = false;
      stack_.pop_back();
    } while (nodes.back() != root);
    std::sort(nodes.begin(), nodes.end());
    found_.push_back(std::move(nodes));
  }

  const Next& next_;
  std::optional<std::uint32_t> removed_;
  std::vector<std::uint32_t> index_, low_, stack_;
  std::vector<bool> on_stack_;
  std::uint32_t counter_ = 0;
  std::vector<std::vector<std::uint32_t>> found_;
};

// Sets of nodes that can all reach each other, each ascending; a node by itself is one too. `next(node, i)` is where
// the i-th edge of a node goes, nullopt behind the last; `removed` is left out.
template <class Next>
std::vector<std::vector<std::uint32_t>> components(std::size_t nodes, const Next& next,
                                                   std::optional<std::uint32_t> removed = std::nullopt) {
  return Components<Next>(nodes, next, removed).run();
}

}  // namespace ddx::analyzers
