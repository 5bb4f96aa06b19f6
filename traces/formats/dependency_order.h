// An order in which the nodes of a dependency graph can run.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/hash.h"

namespace ddx::formats {

struct GraphNode {
  std::uint64_t id = 0;
  std::span<const std::uint64_t> deps;  // ids
  // Ids of those that only should run before: given up where they close a circle.
  std::span<const std::uint64_t> soft_deps;
  bool ends_later = false;  // runs beside the others; who depends on it must wait for its end
};

struct OrderStep {
  enum class Kind : std::uint8_t { run, wait } kind;
  std::uint32_t node;  // index
};

// What is wrong with a graph; the first few of each kind by id.
struct GraphFaults {
  std::vector<std::uint64_t> duplicates;                          // ids of later nodes with an id that is taken
  std::vector<std::pair<std::uint64_t, std::uint64_t>> dangling;  // node, and the id that no node has
  std::uint64_t duplicate_count = 0, dangling_count = 0;
  struct Cycle {
    std::vector<std::uint64_t> ids;  // each depends on the next and the last on the first; the first 32
    bool soft = false;               // some step is a soft dependency
  };
  std::vector<Cycle> cycles;
  std::uint64_t cuts = 0, soft_cuts = 0;  // nodes that ran before one that they depend on
};

// Every node once, behind those that it depends on: the least id among those that can run, first those that need not
// wait for anything, so that nothing stands behind a wait that could be under way. A wait comes once for each node that
// ends later, before the first that depends on it. A circle is cut at a soft dependency if it has one, else at its
// least id. Time: n log n.
std::vector<OrderStep> dependency_order(const std::vector<GraphNode>& nodes, GraphFaults& faults);

}  // namespace ddx::formats
