// Binomial tree. broadcast: in round i each rank below 2^i that has the buffer sends it on to the one 2^i further;
// reduce: the same backwards, blocking; all_reduce: one after the other (Open MPI's "nonoverlapping"). Member 0 is the
// root.
#include "sim/collectives/exchange.h"
#include "sim/collectives/flat_time.h"
#include "sim/collectives/registry.h"

namespace ddx::sim {

namespace {

constexpr OpKind kKinds[] = {OpKind::broadcast, OpKind::reduce, OpKind::all_reduce};

Exchange broadcast_round(std::uint32_t rank, std::uint32_t round, std::uint32_t ranks, std::uint64_t bytes) {
  const std::uint32_t distance = std::uint32_t{1} << round;
  if (rank < distance && distance < ranks - rank) return {.to = rank + distance, .bytes = bytes};
  return {.receives = rank >= distance && rank < 2 * distance};
}

Exchange reduce_round(std::uint32_t rank, std::uint32_t distance, std::uint32_t ranks, std::uint64_t bytes) {
  // Blocking: a rank takes its children one by one, so a child waits for its turn.
  if (rank >= distance && rank < 2 * distance) return {.to = rank - distance, .bytes = bytes, .awaits_receiver = true};
  return {.receives = rank < distance && distance < ranks - rank};
}

std::unique_ptr<Schedule> schedule(const Work& work, const Members& members) {
  const std::uint32_t rounds = log2_up(members.ranks);
  const std::uint32_t reducing = work.kind == OpKind::broadcast ? 0 : rounds;
  const std::uint32_t steps = work.kind == OpKind::all_reduce ? 2 * rounds : rounds;
  return exchanges(
      members.ranks, steps,
      [rounds, reducing, ranks = members.ranks, bytes = work.bytes](std::uint32_t rank, std::uint32_t step) {
        if (step >= reducing) return broadcast_round(rank, step - reducing, ranks, bytes);
        return reduce_round(rank, std::uint32_t{1} << (rounds - 1 - step), ranks, bytes);
      });
}

// The most bits set in any number from 2^(k - 1) to `most`, which has k bits.
std::uint32_t most_bits(std::uint32_t most) {
  const std::uint32_t top = std::bit_floor(most);
  std::uint32_t best = static_cast<std::uint32_t>(std::popcount(most));
  std::uint32_t above = 0;
  for (std::uint32_t bit = top; bit > 0; bit >>= 1) {
    if ((most & bit) == 0) continue;
    // This bit cleared and all below it set; not the highest.
    if (bit != top) best = std::max(best, above + static_cast<std::uint32_t>(std::popcount(bit - 1)));
    ++above;
  }
  return best;
}

// A rank sends its messages back to back. So one whose number has its highest bit in place p (from 1) and m bits set
// has the buffer after p messages' time and m latencies: the last is one with p = k, or 2^(k - 1) - 1 where latency
// counts most.
void add_broadcast(FlatTime& time, std::uint32_t ranks, std::uint64_t bytes, const LinkSpec& port) {
  const std::uint32_t rounds = log2_up(ranks);
  if (rounds == 0) return;
  const std::uint32_t hops = most_bits(ranks - 1);
  const std::uint64_t more_hops = rounds - 1 > hops ? rounds - 1 - hops : 0;
  const auto latency = times(more_hops, static_cast<std::uint64_t>(port.latency));
  if (latency > static_cast<std::uint64_t>(transfer_time(bytes, port.bytes_per_second))) {
    time.messages(rounds - 1, bytes);
  } else {
    time.transfers(rounds, bytes).hops(hops);
  }
}

Price price(const Work& work, const Members& members, const LinkSpec& port) {
  FlatTime time("binomial", port);
  if (work.kind != OpKind::broadcast) time.messages(log2_up(members.ranks), work.bytes);
  if (work.kind != OpKind::reduce) add_broadcast(time, members.ranks, work.bytes, port);
  return time.price();
}

std::uint64_t bytes_sent(const Work& work, const Members& members) {
  const std::uint64_t rounds = log2_up(members.ranks);
  if (members.ranks == 1) return 0;
  return times(work.kind == OpKind::reduce ? 1 : rounds, work.bytes);
}

}  // namespace

Algorithm binomial() { return {"binomial", kKinds, nullptr, schedule, price, bytes_sent, {}}; }

}  // namespace ddx::sim
