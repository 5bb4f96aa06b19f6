// Nanos: a point on one clock or a length of time, always integer nanoseconds.
#pragma once

#include <cstdint>
#include <string>

namespace ddx {

using Nanos = std::int64_t;

constexpr Nanos kMicrosecond = 1'000;
constexpr Nanos kMillisecond = 1'000'000;
constexpr Nanos kSecond = 1'000'000'000;

// "1.5 ms", "30 min", "2 h 5 min": the two leading units, for people.
std::string format_duration(Nanos duration);
// 16384000 -> "16,384,000".
std::string format_count(std::uint64_t count);

}  // namespace ddx
