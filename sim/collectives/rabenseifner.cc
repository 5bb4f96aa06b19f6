// Rabenseifner's all-reduce: halving and doubling over the largest power of two, the other ranks folded into it
// (Rabenseifner: Optimization of collective reduction operations, ICCS 2004).
#include "sim/collectives/power_of_two.h"
#include "sim/collectives/registry.h"

namespace ddx::sim {

namespace {

constexpr OpKind kKinds[] = {OpKind::all_reduce};

std::unique_ptr<Schedule> schedule(const Work& work, const Members& members) {
  const PowerOfTwo core(members.ranks);
  const std::uint32_t rounds = core.rounds();
  const std::uint64_t piece = block(work.bytes, core.core);
  return exchanges(members.ranks, core.steps(2 * rounds),
                   [core, rounds, piece, bytes = work.bytes](std::uint32_t rank, std::uint32_t step) {
                     return core.at(
                         rank, step, 2 * rounds, bytes, [rounds, piece](std::uint32_t number, std::uint32_t round) {
                           const std::uint32_t bit = round < rounds ? rounds - 1 - round : round - rounds;
                           const std::uint32_t distance = std::uint32_t{1} << bit;
                           return Exchange{.to = number ^ distance, .bytes = times(piece, distance), .receives = true};
                         });
                   });
}

Price price(const Work& work, const Members& members, const LinkSpec& port) {
  const PowerOfTwo core(members.ranks);
  FlatTime time("rabenseifner", port);
  for (std::uint32_t bit = 0; bit < core.rounds(); ++bit)
    time.messages(2, times(block(work.bytes, core.core), std::uint64_t{1} << bit));
  if (core.extra > 0) time.messages(2, work.bytes);
  return time.price();
}

std::uint64_t bytes_sent(const Work& work, const Members& members) {
  const PowerOfTwo core(members.ranks);
  const std::uint64_t inner = times(block(work.bytes, core.core), 2 * (core.core - 1));
  return plus(inner, core.extra > 0 ? work.bytes : 0);
}

}  // namespace

Algorithm rabenseifner() { return {"rabenseifner", kKinds, nullptr, schedule, price, bytes_sent, {}}; }

}  // namespace ddx::sim
