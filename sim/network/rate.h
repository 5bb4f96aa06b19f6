// Rates and amounts of flows, exact: a third of a link is a third, and what moves in a whole number of picoseconds is a
// whole number.
#pragma once

#include <cstdint>
#include <limits>

#include "sim/engine/picos.h"

namespace ddx::sim {

__extension__ using Wide = unsigned __int128;

// units / parts of 1/2^32 bytes a second.
struct Rate {
  Wide units = 0;
  std::uint64_t parts = 1;
  bool operator==(const Rate&) const = default;
};
// What a flow moves: units of a Rate x picoseconds.
using Amount = Wide;

constexpr unsigned kRateBits = 32;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 54;  // of one flow, so that an Amount holds it
constexpr std::uint64_t kMostRate = std::uint64_t{1} << 52;   // of a link, bytes a second

constexpr Rate rate_of(std::uint64_t bytes_per_second) { return {Wide{bytes_per_second} << kRateBits, 1}; }
constexpr double bytes_per_second(const Rate& rate) {
  return static_cast<double>(rate.units) / static_cast<double>(rate.parts) / static_cast<double>(Wide{1} << kRateBits);
}

// `bytes` is at most kMostBytes.
constexpr Amount amount_of(std::uint64_t bytes) { return (Amount{bytes} * kPicosPerSecond) << kRateBits; }

// Moved in `time` at this rate, rounded down; the answer must be below 2^127.
constexpr Amount moved(const Rate& rate, Picos time) {
  const Wide picos = static_cast<std::uint64_t>(time);
  if (rate.parts == 1) return rate.units * picos;
  return rate.units / rate.parts * picos + rate.units % rate.parts * picos / rate.parts;
}

// How long an amount takes at a rate of more than 0: to the nearest picosecond, halves up, as transfer_time() does;
// saturates at kForever.
constexpr Picos time_for(Amount amount, const Rate& rate) {
  const Wide longest = static_cast<std::uint64_t>(kForever);
  const Wide whole = amount / rate.units;
  if (whole > longest) return kForever;
  const Wide rest = (amount - whole * rate.units) * rate.parts;  // below 2^84 x 2^40, the weight that a Rate can have
  const Wide more = rest / rate.units;
  const Wide time = whole * rate.parts + more + (rest - more * rate.units >= rate.units - rate.units / 2);
  return static_cast<Picos>(time > longest ? longest : time);
}

}  // namespace ddx::sim
