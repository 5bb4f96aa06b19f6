#include "base/units.h"

#include <fmt/format.h>

#include <array>

namespace ddx {
namespace {

struct Unit {
  Nanos size;
  const char* name;
};
constexpr std::array<Unit, 4> kLongUnits{
    {{86400 * kSecond, "d"}, {3600 * kSecond, "h"}, {60 * kSecond, "min"}, {kSecond, "s"}}};

std::string format_short(std::uint64_t magnitude) {
  const auto value = static_cast<double>(magnitude);
  if (magnitude < static_cast<std::uint64_t>(kMicrosecond)) return fmt::format("{} ns", magnitude);
  if (magnitude < static_cast<std::uint64_t>(kMillisecond)) return fmt::format("{:.3g} us", value / 1e3);
  if (magnitude < static_cast<std::uint64_t>(kSecond)) return fmt::format("{:.3g} ms", value / 1e6);
  return fmt::format("{:.3g} s", value / 1e9);
}

}  // namespace

std::string format_duration(Nanos duration) {
  const bool negative = duration < 0;
  const auto magnitude = negative ? ~static_cast<std::uint64_t>(duration) + 1 : static_cast<std::uint64_t>(duration);
  std::string text;
  if (magnitude < static_cast<std::uint64_t>(60 * kSecond)) {
    text = format_short(magnitude);
  } else {
    for (std::size_t i = 0; i + 1 < kLongUnits.size(); ++i) {
      const auto size = static_cast<std::uint64_t>(kLongUnits[i].size);
      if (magnitude < size) continue;
      const auto next = static_cast<std::uint64_t>(kLongUnits[i + 1].size);
      const auto rest = magnitude % size / next;
      text = fmt::format("{} {}", magnitude / size, kLongUnits[i].name);
      if (rest > 0) text += fmt::format(" {} {}", rest, kLongUnits[i + 1].name);
      break;
    }
  }
  return negative ? "-" + text : text;
}

std::string format_count(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

}  // namespace ddx
