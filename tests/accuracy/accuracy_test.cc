// The published figures hold: the constants in the source are the fit's, the page is what is made from them, and the
// errors of runs that were held out stay in their bands.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/accuracy/validation.h"

namespace ddx::sim {
namespace {

constexpr std::uint64_t kMebi = 1U << 20;

class Accuracy : public testing::Test {
 protected:
  static const std::vector<ValidationRun>& runs() {
    static const std::vector<ValidationRun> kRuns = validation_runs();
    return kRuns;
  }
  static std::vector<const ValidationRun*> calibrating() {
    std::vector<const ValidationRun*> found;
    for (const ValidationRun& run : runs()) {
      if (run.calibrates) found.push_back(&run);
    }
    return found;
  }
};

// Nobody can paste numbers: they come from the calibrating runs. Written with four digits.
TEST_F(Accuracy, ConstantsAreWhatTheFitGives) {
  const std::vector<double> fitted = constants_of(fit_runs(calibrating()));
  const std::vector<double> used = constants_of(nccl_times());
  for (std::size_t i = 0; i < fitted.size(); ++i) {
    EXPECT_NEAR(used[i] / fitted[i], 1, .01) << nccl_constants()[i].name;
  }
}

TEST_F(Accuracy, PageIsWhatIsMade) {
  std::ifstream file(DDX_SOURCE_DIR "/docs/accuracy.md");
  std::ostringstream page;
  page << file.rdbuf();
  EXPECT_EQ(page.str(), accuracy_page(runs())) << "make it again: ddx_accuracy > docs/accuracy.md";
}

TEST_F(Accuracy, HeldOutRunsAreInTheirBands) {
  EXPECT_LT(held_out_error(runs(), 256 * kMebi, ~std::uint64_t{0}), 7);  // what NCCL's own model gets
  EXPECT_LT(held_out_error(runs(), kMebi, 256 * kMebi), 14);             // what a + S/B gets at best
}

// With times of twice the length for the runs that calibrate, or for the others.
std::vector<ValidationRun> doubled(std::vector<ValidationRun> runs, bool calibrating) {
  for (ValidationRun& run : runs) {
    for (auto& micros : run.measured) {
      if (micros && run.calibrates == calibrating) *micros *= 2;
    }
  }
  return runs;
}

TEST_F(Accuracy, ErrorsAreThoseOfHeldOutRunsAlone) {
  const double error = held_out_error(runs(), kMebi, ~std::uint64_t{0});
  EXPECT_EQ(held_out_error(doubled(runs(), true), kMebi, ~std::uint64_t{0}), error);
  // Predictions that were about right are about half of what is measured then.
  EXPECT_GT(held_out_error(doubled(runs(), false), kMebi, ~std::uint64_t{0}), error + 20);
}

// No run is listed twice, once on each side, and every kind has one that calibrates before any is held out.
TEST_F(Accuracy, RunsAreSplitWhole) {
  std::set<std::string> ids, kinds;
  std::size_t held = 0;
  for (const ValidationRun& run : runs()) {
    EXPECT_TRUE(ids.insert(run.run.id).second) << run.run.id << " is there twice";
    if (run.calibrates) kinds.insert(run.kind);
    held += run.calibrates ? 0 : 1;
  }
  EXPECT_GE(held * 3, runs().size());
  for (const ValidationRun& run : runs()) EXPECT_TRUE(kinds.contains(run.kind)) << run.kind << ": none calibrates";
}

TEST_F(Accuracy, WhatIsExcludedIsNotCounted) {
  for (const ValidationRun& run : runs()) {
    EXPECT_NE(run.run.id, "azure-gb300-72-allreduce-16GiB");
    if (run.run.id != "dgxc-h100-8-allreduce") continue;
    for (std::size_t i = 0; i < run.measured.size(); ++i)
      EXPECT_EQ(run.measured[i].has_value(), run.run.bytes[i] != 32U);
  }
}

}  // namespace
}  // namespace ddx::sim
