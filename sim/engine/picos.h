// Picos: simulated time. Integers throughout, so that the same input gives the same bytes on every machine.
#pragma once

#include <cstdint>
#include <limits>

#include "base/units.h"

namespace ddx::sim {

using Picos = std::int64_t;  // up to 106 days

constexpr Picos kPicosPerNano = 1'000;
constexpr Picos kPicosPerSecond = 1'000'000'000'000;
constexpr Picos kForever = std::numeric_limits<Picos>::max();

// To the nearest nanosecond, halves up; `time` is not negative.
constexpr Nanos to_nanos(Picos time) { return time / kPicosPerNano + (time % kPicosPerNano >= kPicosPerNano / 2); }
// Saturates at kForever.
constexpr Picos from_nanos(Nanos time) { return time > kForever / kPicosPerNano ? kForever : time * kPicosPerNano; }

// Neither is negative; saturates at kForever.
constexpr Picos later(Picos time, Picos by) { return by > kForever - time ? kForever : time + by; }

// How long `bytes` take at a rate of more than 0 bytes a second, to the nearest picosecond, halves up; saturates at
// kForever.
constexpr Picos transfer_time(std::uint64_t bytes, std::uint64_t bytes_per_second) {
  __extension__ using Wide = unsigned __int128;
  const Wide time = (Wide{bytes} * kPicosPerSecond + bytes_per_second / 2) / bytes_per_second;
  return time > Wide{static_cast<std::uint64_t>(kForever)} ? kForever : static_cast<Picos>(time);
}

}  // namespace ddx::sim
