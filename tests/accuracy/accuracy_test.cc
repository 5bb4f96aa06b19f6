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
  EXPECT_GT(held_out_error(runs(), kMebi, ~std::uint64_t{0}), 0);
}

TEST_F(Accuracy, RunsAreSplitWhole) {
  std::set<std::string> calibrating_ids, held;
  for (const ValidationRun& run : runs()) (run.calibrates ? calibrating_ids : held).insert(run.run.id);
  EXPECT_EQ(calibrating_ids.size() + held.size(), runs().size());
  EXPECT_GE(held.size() * 3, runs().size());
  for (const std::string& id : held) EXPECT_FALSE(calibrating_ids.contains(id)) << id;
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
