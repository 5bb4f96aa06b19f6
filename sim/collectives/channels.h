// A call in several channels side by side, each with its part of the bytes. On nodes each has other ranks of every node
// in front, as NCCL lays its rings and trees, so that each leaves nodes over a NIC of its own.
#pragma once

#include <cstdint>
#include <memory>

#include "sim/collectives/algorithm.h"

namespace ddx::sim {

// `channels`: 1 or more, at most members.per_node.
std::unique_ptr<Schedule> in_channels(const Algorithm& algorithm, const Work& work, const Members& members,
                                      std::uint32_t channels);

}  // namespace ddx::sim
