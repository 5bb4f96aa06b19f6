#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "sim/calibrate/nccl_fit.h"
#include "sim/cluster/cluster_file.h"

namespace ddx::sim {
namespace {

NcclTimes known_times() {
  std::vector<double> known;
  for (const NcclConstant& constant : nccl_constants()) known.push_back(constant.known);
  return times_of(known);
}

// What runs on eight A100 would have measured, were `times` the truth.
std::vector<MeasuredCall> measured_by(const NcclTimes& times) {
  const Cluster a100 = read_cluster("dgx-a100");
  std::vector<MeasuredCall> calls;
  for (const std::uint32_t ranks : {2U, 4U, 8U}) {
    for (std::uint64_t bytes = 1024; bytes <= std::uint64_t{1} << 34; bytes *= 2) {
      const NcclCall call = nccl_call(a100, {ranks, 1, ranks, ranks}, {OpKind::all_reduce, bytes});
      calls.push_back({call, nccl_micros(call, times).total(), 1});
    }
  }
  return calls;
}

TEST(Fit, FindsWhatTheRunsWereMadeWith) {
  NcclTimes truth = known_times();
  truth.launch[1] = 22;
  truth.ring_share[1] = .97;
  truth.ring_fill[1] = 4;
  truth.ring_power = .22;
  const NcclTimes found = fit(measured_by(truth));
  EXPECT_NEAR(found.launch[1] / 22, 1, .02);
  EXPECT_NEAR(found.ring_share[1] / .97, 1, .02);
  for (const MeasuredCall& call : measured_by(truth)) {
    EXPECT_NEAR(nccl_micros(call.call, found).total() / call.micros, 1, .02);
  }
}

TEST(Fit, WithoutRunsKeepsWhatIsKnown) {
  const std::vector<double> found = constants_of(fit({}));
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i] / nccl_constants()[i].known, 1, 1e-6) << nccl_constants()[i].name;
  }
}

TEST(Fit, OneWildPointMovesLittle) {
  std::vector<MeasuredCall> calls = measured_by(known_times());
  calls[20].micros *= 10;
  const NcclTimes found = fit(calls);
  EXPECT_NEAR(found.ring_share[1] / known_times().ring_share[1], 1, .02);
}

// Eight A100 send 1.75 GB of a gigabyte each over 300 GB/s: 5,833 us, or 5,401 with 8 % of tolerance.
TEST(Fit, WhatIsFasterThanItsLinksIsRefused) {
  CollectiveRun run;
  run.id = "too-fast";
  run.cluster = read_cluster("dgx-a100");
  run.placement = {8, 1, 8, 8};
  run.work.kind = OpKind::all_reduce;
  run.bytes = {1000, 1'000'000'000};
  EXPECT_EQ(calls_of(run, {30, 5'402}).size(), 2U);
  try {
    calls_of(run, {30, 5'400});
    ADD_FAILURE() << "nothing was said";
  } catch (const Error& error) {
    const std::string said = error.what();
    for (const char* part : {"too-fast", "row 1", "1000000000 bytes", "5400 us", "5833 us"}) {
      EXPECT_NE(said.find(part), std::string::npos) << part << ": " << said;
    }
  }
}

TEST(Constants, GoThereAndBack) {
  std::vector<double> numbers;
  for (std::size_t i = 0; i < nccl_constants().size(); ++i) numbers.push_back(1 + static_cast<double>(i));
  EXPECT_EQ(constants_of(times_of(numbers)), numbers);
  // Every member of NcclTimes is one of them: nothing can be pasted beside the fit.
  EXPECT_EQ(sizeof(NcclTimes), numbers.size() * sizeof(double));
}

}  // namespace
}  // namespace ddx::sim
