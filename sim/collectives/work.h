// What the simulator prices: one operation of a communicator, where its members sit, and the answer.
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/engine/picos.h"
#include "traces/model/op.h"

namespace ddx::sim {

struct Work {
  OpKind kind = OpKind::all_reduce;
  // all_gather: the gathered total; reduce_scatter, all_to_all: the whole input of one rank; gather, scatter: the
  // root's buffer; else the buffer (as nccl-tests counts).
  std::uint64_t bytes = 0;
  DataType type = DataType::unknown;
  RedOp redop = RedOp::unknown;
};

// Where the members of a communicator sit.
struct Placement {
  std::uint32_t ranks = 1;
  std::uint32_t nodes = 1;
  std::uint32_t most_per_node = 1;
  std::uint32_t fewest_per_node = 1;
  std::uint32_t leaves = 1;             // switches below the spine that its nodes hang on
  std::uint32_t fewest_per_domain = 0;  // ranks of one NVLink domain, at the least; 0: all have as many
  bool operator==(const Placement&) const = default;
};

// How long it takes when nothing else is under way: latency + transfer. Only `transfer` stretches where links are
// shared. Names as NCCL writes them ("Ring", "LL128"), or of the library's algorithm; protocol: empty where it has
// none.
struct Price {
  Picos latency = 0;
  Picos transfer = 0;
  std::string_view algorithm;
  std::string_view protocol;
  Picos rounding = 0;  // by as much at most is it less than it is exactly
  Picos total() const { return later(latency, transfer); }
};

}  // namespace ddx::sim
