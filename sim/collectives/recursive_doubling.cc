// Recursive doubling: partners at distances 1, 2, 4 ... exchange all they have. Few steps and much traffic: for small
// buffers (Thakur, Rabenseifner, Gropp 2005). Numbers of ranks that are no power of two are folded.
#include "sim/collectives/power_of_two.h"
#include "sim/collectives/registry.h"

namespace ddx::sim {

namespace {

constexpr OpKind kKinds[] = {OpKind::all_reduce};

std::unique_ptr<Schedule> schedule(const Work& work, const Members& members) {
  const PowerOfTwo core(members.ranks);
  const std::uint32_t rounds = core.rounds();
  return exchanges(members.ranks, core.steps(rounds),
                   [core, rounds, bytes = work.bytes](std::uint32_t rank, std::uint32_t step) {
                     return core.at(rank, step, rounds, bytes, [bytes](std::uint32_t number, std::uint32_t round) {
                       return Exchange{.to = number ^ (std::uint32_t{1} << round), .bytes = bytes, .receives = true};
                     });
                   });
}

std::uint32_t messages_of(const Members& members) { return PowerOfTwo(members.ranks).steps(log2_down(members.ranks)); }

Price price(const Work& work, const Members& members, const LinkSpec& port) {
  return FlatTime("recursive-doubling", port).messages(messages_of(members), work.bytes).price();
}

// The folded ones get one message instead of sending it.
std::uint64_t bytes_sent(const Work& work, const Members& members) {
  const PowerOfTwo core(members.ranks);
  return times(core.rounds() + (core.extra > 0 ? 1U : 0U), work.bytes);
}

}  // namespace

Algorithm recursive_doubling() { return {"recursive-doubling", kKinds, nullptr, schedule, price, bytes_sent, {}}; }

}  // namespace ddx::sim
