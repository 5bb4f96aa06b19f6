// The least time that any algorithm can take, by what has to go through the ports.
#pragma once

#include <cstdint>

#include "sim/collectives/algorithm.h"

namespace ddx::sim {

// For `ranks` ranks with full-duplex ports of more than 0 bytes a second; to the picosecond below. A simulated time may
// be under it by half a picosecond a message, by rounding, and by nothing else.
// - all_reduce 2(n-1)/n S / B: each rank must get rid of what it does not sum itself, and of its sum to all others.
// - reduce_scatter, all_gather, all_to_all, gather, scatter (n-1)/n S / B; broadcast, reduce, send S / B; barrier 0.
Picos port_bound(const Work& work, std::uint32_t ranks, std::uint64_t bytes_per_second);

// Where switches reduce and copy: all_reduce S / B (each rank must give what it has and get the sum), the others as
// above.
Picos port_bound_with_switches(const Work& work, std::uint32_t ranks, std::uint64_t bytes_per_second);

// Of this algorithm.
Picos port_bound(const Work& work, std::uint32_t ranks, std::uint64_t bytes_per_second, const Algorithm& algorithm);

}  // namespace ddx::sim
