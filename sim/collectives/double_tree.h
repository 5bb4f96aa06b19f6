// NCCL's binary trees (src/graph/trees.cc, github.com/NVIDIA/nccl; Sanders, Speck, Träff: Two-tree algorithms for full
// bandwidth broadcast, reduction and scan, 2009): rank 0 has one child, below it is a binary tree in which the number
// of trailing zeros is the height. The second tree is the first mirrored, for odd numbers shifted by one, so that who
// is inside one is a leaf of the other.
#pragma once

#include <bit>
#include <cstdint>

#include "sim/collectives/exchange.h"

namespace ddx::sim {

// kNobody for rank 0.
inline std::uint32_t tree_parent(std::uint32_t rank, std::uint32_t ranks) {
  if (rank == 0) return kNobody;
  const std::uint32_t bit = rank & (~rank + 1);
  const std::uint32_t up = (rank ^ bit) | (bit << 1);
  return up < ranks ? up : rank ^ bit;
}

// Who plays `role` of the first tree in the second one, and the other way round for even numbers.
inline std::uint32_t second_tree_rank(std::uint32_t role, std::uint32_t ranks) {
  return ranks % 2 == 0 ? ranks - 1 - role : (role + 1) % ranks;
}

// Edges between rank 0 and the farthest one.
constexpr std::uint32_t tree_height(std::uint32_t ranks) {
  return static_cast<std::uint32_t>(std::bit_width(ranks - 1));
}
// The most edges of one rank.
constexpr std::uint32_t tree_degree(std::uint32_t ranks) { return ranks < 4 ? ranks - 1 : 3; }

}  // namespace ddx::sim
