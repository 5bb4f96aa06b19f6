// What computations recorded on one GPU take on another, by the roofline (Williams, Waterman, Patterson: Roofline, CACM
// 52(4), 2009): a kernel of F operations that moves M bytes takes max(F / peak, M / memory rate). Both GPUs are taken
// to come as near to their rooflines.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/cluster/cluster.h"

namespace ddx::sim {

// In which kind of arithmetic most operations are done: decides which peak counts.
enum class MathType : std::uint8_t { bf16, fp8, tf32, fp32 };

std::string_view name_of(MathType type);
std::optional<MathType> math_type_from(std::string_view name);

// The dense peak, in operations a second; nullopt: not known.
std::optional<double> peak_of(const Gpu& gpu, MathType type);

// Time on the other GPU over time as recorded, more than 0: of kernels that the peak limits on both, and of those that
// memory limits on both. Any other kernel is between the two.
struct RooflineFactors {
  double arithmetic = 1;
  double memory = 1;
  double slowest() const { return arithmetic > memory ? arithmetic : memory; }
};

// Throws Error that names the GPU and the figure that it lacks.
RooflineFactors roofline_factors(const Gpu& from, const Gpu& to, MathType type);

// Of kernels of that many operations a byte, 0 or more. Throws Error as above.
double roofline_factor(const Gpu& from, const Gpu& to, MathType type, double operations_per_byte);

}  // namespace ddx::sim
