// Any number of ranks on an algorithm for powers of two: where 2^k + r ranks are there, rank 2i + 1 of the first 2r
// ranks first gives what it has to rank 2i, and gets the result back in the end (MPICH's non-power-of-two case).
#pragma once

#include <cstdint>

#include "sim/collectives/exchange.h"
#include "sim/collectives/flat_time.h"

namespace ddx::sim {

struct PowerOfTwo {
  std::uint32_t ranks;
  std::uint32_t core;   // the power of two
  std::uint32_t extra;  // ranks beside it

  explicit PowerOfTwo(std::uint32_t of) : ranks(of), core(std::uint32_t{1} << log2_down(of)), extra(of - core) {}

  std::uint32_t rounds() const { return log2_down(ranks); }
  bool stands_by(std::uint32_t rank) const { return rank < 2 * extra && rank % 2 == 1; }
  // Number in the core of a rank that does not stand by, and back.
  std::uint32_t number_of(std::uint32_t rank) const { return rank < 2 * extra ? rank / 2 : rank - extra; }
  std::uint32_t rank_of(std::uint32_t number) const { return number < extra ? 2 * number : number + extra; }

  // The steps around `inner` steps of the core: one before, one after.
  std::uint32_t steps(std::uint32_t inner) const { return extra == 0 ? inner : inner + 2; }

  // `rule`: (number, step) -> Exchange in numbers of the core.
  template <class Rule>
  Exchange at(std::uint32_t rank, std::uint32_t step, std::uint32_t inner, std::uint64_t bytes,
              const Rule& rule) const {
    if (extra > 0) {
      if (step == 0 || step == inner + 1) {
        const bool gives = stands_by(rank) == (step == 0);
        if (rank >= 2 * extra) return {};
        return gives ? Exchange{.to = rank ^ 1, .bytes = bytes} : Exchange{.receives = true};
      }
      if (stands_by(rank)) return {};
      --step;
    }
    Exchange now = rule(number_of(rank), step);
    now.to = rank_of(now.to);
    if (extra > 0) {
      now.to_step = step + 1;
      // Else those that nobody is folded into would run ahead, into ports that still take a folded one.
      now.awaits_receiver = true;
    }
    return now;
  }
};

}  // namespace ddx::sim
