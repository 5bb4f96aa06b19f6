// Bruck: any number of ranks in ceil(log2 n) steps (Bruck, Ho, Kipnis, Upfal, Weathersby: Efficient algorithms for
// all-to-all communications in multiport message-passing systems, 1997). all_gather: each rank sends all it has to the
// one at distance 1, 2, 4 ...; all_to_all: the blocks that still have that distance to go, in binary, go on together.
#include "sim/collectives/exchange.h"
#include "sim/collectives/flat_time.h"
#include "sim/collectives/registry.h"

namespace ddx::sim {

namespace {

constexpr OpKind kKinds[] = {OpKind::all_gather, OpKind::all_to_all};

// How many of the numbers below `count` have this bit.
std::uint64_t with_bit(std::uint64_t count, std::uint32_t bit) {
  const std::uint64_t half = std::uint64_t{1} << bit;
  const std::uint64_t rest = count % (2 * half);
  return count / (2 * half) * half + (rest > half ? rest - half : 0);
}

std::uint64_t blocks_sent(OpKind kind, std::uint32_t ranks, std::uint32_t step) {
  const std::uint64_t distance = std::uint64_t{1} << step;
  return kind == OpKind::all_gather ? std::min<std::uint64_t>(distance, ranks - distance) : with_bit(ranks, step);
}

std::unique_ptr<Schedule> schedule(const Work& work, const Members& members) {
  return exchanges(members.ranks, log2_up(members.ranks),
                   [kind = work.kind, ranks = members.ranks, piece = block(work.bytes, members.ranks)](
                       std::uint32_t rank, std::uint32_t step) {
                     return Exchange{.to = ahead(rank, std::uint32_t{1} << step, ranks),
                                     .bytes = times(piece, blocks_sent(kind, ranks, step)),
                                     .receives = true};
                   });
}

Price price(const Work& work, const Members& members, const LinkSpec& port) {
  FlatTime time("bruck", port);
  for (std::uint32_t step = 0; step < log2_up(members.ranks); ++step)
    time.messages(1, times(block(work.bytes, members.ranks), blocks_sent(work.kind, members.ranks, step)));
  return time.price();
}

std::uint64_t bytes_sent(const Work& work, const Members& members) {
  std::uint64_t blocks = 0;
  for (std::uint32_t step = 0; step < log2_up(members.ranks); ++step)
    blocks += blocks_sent(work.kind, members.ranks, step);
  return times(block(work.bytes, members.ranks), blocks);
}

}  // namespace

Algorithm bruck() { return {"bruck", kKinds, nullptr, schedule, price, bytes_sent, {}}; }

}  // namespace ddx::sim
