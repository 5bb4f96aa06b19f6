#include "sim/cluster/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include "base/error.h"
#include "base/printable.h"

namespace ddx::sim {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr double kMaxRate = 1e18;  // far above any link, far below what overflows
constexpr double kMaxTime = 1e6 * static_cast<double>(kPicosPerSecond);

constexpr std::array kRates{
    Unit{"B/s", 1},         Unit{"kB/s", 1e3},     Unit{"MB/s", 1e6},      Unit{"GB/s", 1e9},
    Unit{"TB/s", 1e12},     Unit{"KiB/s", 1024},   Unit{"MiB/s", 1048576}, Unit{"GiB/s", 1073741824},
    Unit{"b/s", 1. / 8},    Unit{"kb/s", 1e3 / 8}, Unit{"Mb/s", 1e6 / 8},  Unit{"Gb/s", 1e9 / 8},
    Unit{"Tb/s", 1e12 / 8}, Unit{"Mbps", 1e6 / 8}, Unit{"Gbps", 1e9 / 8},  Unit{"TiB/s", 1099511627776.},
};
constexpr std::array kTimes{Unit{"ps", 1}, Unit{"ns", 1e3}, Unit{"us", 1e6}, Unit{"ms", 1e9}, Unit{"s", 1e12}};
constexpr std::array kFlops{Unit{"GFLOP/s", 1e9}, Unit{"TFLOP/s", 1e12}, Unit{"PFLOP/s", 1e15}};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// The value in base units, or -1 where `text` is no number with one of `units` behind it.
double value_of(std::string_view text, std::span<const Unit> units) {
  text = trimmed(text);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(number) || number < 0) return -1;
  const std::string_view unit = trimmed(text.substr(static_cast<std::size_t>(end - text.data())));
  for (const Unit& known : units) {
    if (unit == known.name) return number * known.factor;
  }
  return -1;
}

// In the largest of `units` (ascending) in which at most three decimals say it exactly.
std::string exact_text(std::uint64_t value, std::span<const Unit> units) {
  for (std::size_t i = units.size(); i-- > 0;) {
    const auto factor = static_cast<std::uint64_t>(units[i].factor);
    if (value < factor || (factor >= 1000 && value % (factor / 1000) != 0)) continue;
    if (factor < 1000) return fmt::format("{}{}", value, units[i].name);
    std::string text = fmt::format("{}.{:03}", value / factor, value % factor / (factor / 1000));
    text.erase(text.find_last_not_of('0') + 1);
    if (text.ends_with('.')) text.pop_back();
    return text + std::string(units[i].name);
  }
  return fmt::format("{}{}", value, units.front().name);
}

}  // namespace

std::uint64_t parse_rate(std::string_view text) {
  const double rate = value_of(text, kRates);
  if (rate < 1 || rate > kMaxRate) {
    throw RequestError(fmt::format("'{}' is no rate; expected a number with its unit, such as 50GB/s or 400Gb/s",
                                   printable_text(text, 60)));
  }
  return static_cast<std::uint64_t>(std::llround(rate));
}

Picos parse_time(std::string_view text) {
  const double time = value_of(text, kTimes);
  if (time < 0 || time > kMaxTime) {
    throw RequestError(fmt::format("'{}' is no time; expected a number with its unit, such as 1us or 500ns",
                                   printable_text(text, 60)));
  }
  return std::llround(time);
}

double parse_flops(std::string_view text) {
  const double flops = value_of(text, kFlops);
  if (flops <= 0 || flops > 1e24) {
    throw RequestError(fmt::format("'{}' is no rate of operations; expected a number with its unit, such as 989TFLOP/s",
                                   printable_text(text, 60)));
  }
  return flops;
}

std::string format_rate(std::uint64_t bytes_per_second) {
  return exact_text(bytes_per_second, std::span(kRates).first(5));
}

std::string format_time(Picos time) { return exact_text(static_cast<std::uint64_t>(time), kTimes); }

std::string format_flops(double flops) { return fmt::format("{:.6g}TFLOP/s", flops / 1e12); }

}  // namespace ddx::sim
