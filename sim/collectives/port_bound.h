// The least time that any algorithm can take, by what has to go through the ports; and that nothing is told to take
// less.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "sim/collectives/algorithm.h"
#include "sim/network/network.h"

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

// The same between parties that are not alike, with n ranks in all, of which party i has m: all_gather, reduce_scatter
// (n-m)/n S / B, all_to_all m times that, of the party that it takes longest; gather, scatter of the root that it takes
// least; broadcast, reduce, send S, at the least B; all_reduce that as well, and 2(k-1) S over all k ports together,
// unless `switches` reduce. 0 for less than two parties.
Picos port_bound(const Work& work, std::span<const Party> parties, bool switches);

// Where switches reduce: those of nodes (NVLink), those between them (SHARP).
struct Reduction {
  bool in_nodes = false;
  bool between_nodes = false;
};
// By a price's algorithm.
Reduction reduction_of(std::string_view algorithm, const Cluster& cluster);

// Of ranks of a network, each given once: what must leave ranks, and what must leave nodes. Uplinks of leaves are left
// aside.
Picos port_bound(const Work& work, const Network& network, std::span<const std::uint32_t> places,
                 const Reduction& reduction);

// Whether that is more than `rounding` below the bound.
bool is_below_bound(Picos time, Picos bound, Picos rounding);

// Every time of a call comes by here, or is asked of that, before it is told: an Error that names the call, the
// algorithm and both times where it is below the bound.
void refuse_below_bound(const Work& work, std::uint64_t ranks, std::string_view algorithm, Picos time, Picos bound,
                        Picos rounding);

}  // namespace ddx::sim
