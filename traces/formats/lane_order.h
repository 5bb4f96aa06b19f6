// When the nodes of a dependency graph are issued by a host that never computes itself: in order of time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "traces/formats/dependency_order.h"

namespace ddx::formats {

// What a node runs on. Nodes of one lane (a thread, a stream, a channel) run one after another, in the order in which
// they are issued; lanes run beside each other.
struct Lane {
  std::optional<std::uint32_t> number;  // absent: takes no time and runs nowhere
  bool computes = false;                // else it communicates: how long that takes is not known
  std::uint64_t length = 0;             // of a computation
};

// The nodes of `order` (dependency_order's; its waits are not looked at) in the order in which they can be issued, and
// the waits that keep their dependencies: a computation that another lane depends on is waited for, one of the own lane
// is not. Whatever waits for computations alone comes in order of the time at which it is ready, so that no wait holds
// up what could run before; what waits for communication comes when nothing else is left, in its place in `order`.
// Communication on one lane keeps the order that it has in `order`, however long computations are: ranks that differ in
// speed alone make their calls in one order. Time: n log n.
std::vector<OrderStep> lane_order(const std::vector<GraphNode>& nodes, std::span<const OrderStep> order,
                                  const std::vector<Lane>& lanes);

}  // namespace ddx::formats
