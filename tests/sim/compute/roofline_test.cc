// Right values: the roofline model's own formula, worked out by hand.
#include "sim/compute/roofline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "sim/cluster/hardware.h"

namespace ddx::sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Gpu gpu(double bf16, double memory) {
  Gpu made;
  made.name = "made";
  made.bf16_flops = bf16;
  made.memory_bytes_per_second = memory;
  return made;
}

// Ridges at 100 and 200 operations a byte.
const Gpu kOld = gpu(100e12, 1e12);
const Gpu kNew = gpu(400e12, 2e12);

TEST(Roofline, the_two_ends) {
  const RooflineFactors factors = roofline_factors(kOld, kNew, MathType::bf16);
  EXPECT_DOUBLE_EQ(factors.arithmetic, 0.25);
  EXPECT_DOUBLE_EQ(factors.memory, 0.5);
  EXPECT_DOUBLE_EQ(factors.slowest(), 0.5);
}

TEST(Roofline, by_intensity) {
  struct Row {
    double intensity, factor;
  };
  // 150: on the old GPU 1.5 ps a byte (arithmetic), on the new one 0.5 (memory).
  for (const Row& row : {Row{0, 0.5}, Row{50, 0.5}, Row{100, 0.5}, Row{150, 1. / 3}, Row{200, 0.25}, Row{1e6, 0.25}}) {
    EXPECT_DOUBLE_EQ(roofline_factor(kOld, kNew, MathType::bf16, row.intensity), row.factor) << row.intensity;
    EXPECT_DOUBLE_EQ(roofline_factor(kNew, kOld, MathType::bf16, row.intensity), 1 / row.factor) << row.intensity;
  }
}

TEST(Roofline, every_intensity_is_between_the_two_ends) {
  for (const GpuModel& a : gpu_models()) {
    for (const GpuModel& b : gpu_models()) {
      const Gpu from = gpu_of(a), to = gpu_of(b);
      const RooflineFactors ends = roofline_factors(from, to, MathType::bf16);
      for (double intensity = 0.5; intensity < 1e4; intensity *= 1.5) {
        const double factor = roofline_factor(from, to, MathType::bf16, intensity);
        EXPECT_GE(factor, std::min(ends.arithmetic, ends.memory) * (1 - 1e-12)) << a.name << " to " << b.name;
        EXPECT_LE(factor, ends.slowest() * (1 + 1e-12)) << a.name << " to " << b.name;
      }
    }
  }
}

// An A100 to an H100: 312 to 989 TFLOP/s, 2.0 to 3.35 TB/s, as their data sheets have them.
TEST(Roofline, published_gpus) {
  const Gpu a100 = gpu_of(*find_gpu_model("NVIDIA A100-SXM4-80GB")), h100 = gpu_of(*find_gpu_model("H100"));
  const RooflineFactors factors = roofline_factors(a100, h100, MathType::bf16);
  EXPECT_NEAR(factors.arithmetic, 0.31547, 1e-5);
  EXPECT_NEAR(factors.memory, 0.59701, 1e-5);
  EXPECT_NEAR(roofline_factors(a100, h100, MathType::tf32).arithmetic, 156 / 494.5, 1e-12);
}

TEST(Roofline, says_which_figure_is_missing) {
  const Gpu a100 = gpu_of(*find_gpu_model("A100"));
  const auto error_of = [&](const Gpu& to, MathType type) -> std::string {
    try {
      roofline_factors(a100, to, type);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(error_of(kNew, MathType::fp8), AllOf(HasSubstr("A100"), HasSubstr("gpu.fp8")));
  EXPECT_THAT(error_of(kNew, MathType::tf32), AllOf(HasSubstr("made"), HasSubstr("gpu.tf32")));
  Gpu without = kNew;
  without.memory_bytes_per_second.reset();
  EXPECT_THAT(error_of(without, MathType::bf16), AllOf(HasSubstr("made"), HasSubstr("gpu.memory")));
}

TEST(Roofline, names_of_arithmetic) {
  for (const char* name : {"bf16", "fp8", "tf32", "fp32"}) EXPECT_EQ(name_of(*math_type_from(name)), name);
  EXPECT_FALSE(math_type_from("fp12"));
}

}  // namespace
}  // namespace ddx::sim
