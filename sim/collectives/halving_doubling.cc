// Halving and doubling: partners at distances 1, 2, 4 ... exchange halves of what they are still to reduce, then the
// same in reverse with what is reduced (Thakur, Rabenseifner, Gropp: Optimization of collective communication
// operations in MPICH, 2005). For powers of two; `rabenseifner` is the same for any number.
#include "sim/collectives/exchange.h"
#include "sim/collectives/flat_time.h"
#include "sim/collectives/registry.h"

namespace ddx::sim {

namespace {

constexpr OpKind kKinds[] = {OpKind::all_reduce, OpKind::reduce_scatter, OpKind::all_gather};

bool fits(const Members& members) { return std::has_single_bit(members.ranks); }

std::unique_ptr<Schedule> schedule(const Work& work, const Members& members) {
  const std::uint32_t rounds = log2_up(members.ranks);
  const std::uint32_t halving = work.kind == OpKind::all_gather ? 0 : rounds;
  const std::uint32_t steps = work.kind == OpKind::all_reduce ? 2 * rounds : rounds;
  return exchanges(members.ranks, steps,
                   [rounds, halving, piece = block(work.bytes, members.ranks)](std::uint32_t rank, std::uint32_t step) {
                     const std::uint32_t bit = step < halving ? rounds - 1 - step : step - halving;
                     const std::uint32_t distance = std::uint32_t{1} << bit;
                     return Exchange{.to = rank ^ distance, .bytes = times(piece, distance), .receives = true};
                   });
}

Price price(const Work& work, const Members& members, const LinkSpec& port) {
  FlatTime time("halving-doubling", port);
  const std::uint64_t phases = work.kind == OpKind::all_reduce ? 2 : 1;
  for (std::uint32_t bit = 0; bit < log2_up(members.ranks); ++bit)
    time.messages(phases, times(block(work.bytes, members.ranks), std::uint64_t{1} << bit));
  return time.price();
}

std::uint64_t bytes_sent(const Work& work, const Members& members) {
  return times(block(work.bytes, members.ranks), (work.kind == OpKind::all_reduce ? 2U : 1U) * (members.ranks - 1));
}

}  // namespace

Algorithm halving_doubling() { return {"halving-doubling", kKinds, fits, schedule, price, bytes_sent, {}}; }

}  // namespace ddx::sim
