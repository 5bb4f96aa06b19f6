#include "sim/compute/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"

namespace ddx::sim {
namespace {

constexpr std::array<std::string_view, 4> kNames{"bf16", "fp8", "tf32", "fp32"};

struct Peaks {
  double flops = 0;
  double memory = 0;  // bytes a second
};

Peaks peaks_of(const Gpu& gpu, MathType type) {
  const auto flops = peak_of(gpu, type);
  const std::string name = gpu.name.empty() ? "the cluster's GPU" : gpu.name;
  if (!flops) {
    throw Error(fmt::format("no peak of {} is known of {}: expected gpu.{} in a cluster file", name_of(type), name,
                            name_of(type)));
  }
  if (!gpu.memory_bytes_per_second) {
    throw Error(fmt::format(
        "no memory rate is known of {}: expected gpu.memory in a cluster file, such as \"3.35TB/s\"", name));
  }
  return {*flops, *gpu.memory_bytes_per_second};
}

}  // namespace

std::string_view name_of(MathType type) { return kNames[static_cast<std::size_t>(type)]; }

std::optional<MathType> math_type_from(std::string_view name) {
  const auto at = std::find(kNames.begin(), kNames.end(), name);
  if (at == kNames.end()) return std::nullopt;
  return static_cast<MathType>(at - kNames.begin());
}

std::optional<double> peak_of(const Gpu& gpu, MathType type) {
  switch (type) {
    case MathType::bf16: return gpu.bf16_flops;
    case MathType::fp8: return gpu.fp8_flops;
    case MathType::tf32: return gpu.tf32_flops;
    case MathType::fp32: return gpu.fp32_flops;
  }
  return std::nullopt;
}

RooflineFactors roofline_factors(const Gpu& from, const Gpu& to, MathType type) {
  const Peaks old = peaks_of(from, type), now = peaks_of(to, type);
  return {old.flops / now.flops, old.memory / now.memory};
}

double roofline_factor(const Gpu& from, const Gpu& to, MathType type, double operations_per_byte) {
  const Peaks old = peaks_of(from, type), now = peaks_of(to, type);
  // Of a kernel that moves one byte.
  const auto time = [&](const Peaks& peaks) { return std::max(operations_per_byte / peaks.flops, 1 / peaks.memory); };
  return time(now) / time(old);
}

}  // namespace ddx::sim
