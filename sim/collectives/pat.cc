// PAT, parallel aggregated trees (NCCL 2.23; Jeaugey: PAT: a new algorithm for all-gather and reduce-scatter operations
// at scale, 2025): one binomial tree a block, all at once, the farthest distance first, so that messages grow as they
// come near. Here with as much aggregation as there is to be had; NCCL cuts large messages by its buffer.
// reduce_scatter goes the same way backwards.
#include "sim/collectives/exchange.h"
#include "sim/collectives/flat_time.h"
#include "sim/collectives/registry.h"

namespace ddx::sim {

namespace {

constexpr OpKind kKinds[] = {OpKind::all_gather, OpKind::reduce_scatter};

// Before the step of that distance, a rank of an all_gather has the blocks of those behind it by multiples of twice the
// distance; it sends those that the next rank at that distance is still to get.
std::uint64_t blocks_over(std::uint32_t ranks, std::uint32_t distance) {
  return block(ranks - distance, 2 * std::uint64_t{distance});
}

std::unique_ptr<Schedule> schedule(const Work& work, const Members& members) {
  const std::uint32_t rounds = log2_up(members.ranks);
  return exchanges(members.ranks, rounds,
                   [rounds, gathers = work.kind == OpKind::all_gather, ranks = members.ranks,
                    piece = block(work.bytes, members.ranks)](std::uint32_t rank, std::uint32_t step) {
                     const std::uint32_t distance = std::uint32_t{1} << (gathers ? rounds - 1 - step : step);
                     return Exchange{.to = gathers ? ahead(rank, distance, ranks) : behind(rank, distance, ranks),
                                     .bytes = times(piece, blocks_over(ranks, distance)),
                                     .receives = true};
                   });
}

Price price(const Work& work, const Members& members, const LinkSpec& port) {
  FlatTime time("pat", port);
  for (std::uint32_t round = 0; round < log2_up(members.ranks); ++round)
    time.messages(1, times(block(work.bytes, members.ranks), blocks_over(members.ranks, std::uint32_t{1} << round)));
  return time.price();
}

std::uint64_t bytes_sent(const Work& work, const Members& members) {
  return times(block(work.bytes, members.ranks), members.ranks - 1);
}

}  // namespace

Algorithm pat() { return {"pat", kKinds, nullptr, schedule, price, bytes_sent, {}}; }

}  // namespace ddx::sim
