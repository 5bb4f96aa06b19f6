// Right values: closed forms of ring collectives and messages on a flat network of 1 GB/s without latency, where 1,000
// bytes take a microsecond.
#include "sim/predict/scaling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "sim/replay/flat_costs.h"
#include "tests/support/ops_text.h"

namespace ddx::sim {
namespace {

using ddx::testing::trace_of;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr LinkSpec kPort{1'000'000'000, 0};
constexpr Picos kMicro = 1'000'000;

ScalingTable scaled(const std::string& ops, bool strong, std::vector<std::uint32_t> ranks, double factor = 1) {
  ScalingOptions options;
  options.ranks = std::move(ranks);
  options.strong = strong;
  options.compute_factor = factor;
  options.costs = [](std::uint32_t) { return flat_costs({kPort, find_algorithm("ring"), Library::nccl}); };
  return predict_scaling(trace_of(ops), options);
}

Picos time_of(const std::string& ops, bool strong, std::uint32_t ranks, double factor = 1) {
  return scaled(ops, strong, {ranks}, factor).rows.at(0).time;
}

// Two ranks of a tensor parallel group: all_reduce of S bytes on n ranks takes 2 (n-1)/n S.
TEST(Scaling, activations_of_tensor_groups_shrink_with_the_batch) {
  const std::string ops = "world 2\npg tp = 0,1\nall compute 80us\nall all_reduce i8 16000 tp\n";
  EXPECT_EQ(time_of(ops, true, 2), 96 * kMicro);
  EXPECT_EQ(time_of(ops, true, 16), 12 * kMicro);   // an eighth of both
  EXPECT_EQ(time_of(ops, false, 16), 96 * kMicro);  // each replica does as recorded
  const ScalingTable table = scaled(ops, true, {2, 16});
  EXPECT_THAT(table.assumed, Contains(HasSubstr("each is 8 times smaller")));
  EXPECT_DOUBLE_EQ(table.rows.at(1).efficiency, 1);
}

TEST(Scaling, gradients_do_not_shrink) {
  // Ring over n ranks: 2 (n-1)/n x 16,000 bytes.
  const std::string ops = "world 2\npg dp = 0,1\nall compute 80us\nall all_reduce i8 16000 dp\n";
  EXPECT_EQ(time_of(ops, true, 2), (80 + 16) * kMicro);
  EXPECT_EQ(time_of(ops, true, 16), (10 + 30) * kMicro);
}

TEST(Scaling, what_stages_send_shrinks) {
  const std::string ops =
      "world 2\npg pp = 0,1\n0 compute 8us\n0 send i8 8000 to 1 pp\n1 recv i8 8000 from 0 pp\n1 compute 8us\n";
  EXPECT_EQ(time_of(ops, true, 2), 24 * kMicro);
  EXPECT_EQ(time_of(ops, true, 8), 6 * kMicro);
  EXPECT_EQ(time_of(ops, true, 32), 1'500'000);
}

TEST(Scaling, what_experts_exchange_shrinks_split_by_split) {
  // Pairwise: each of two ranks sends the other one what it has for it, 4,000 and 6,000 of its 10,000 bytes.
  const std::string ops =
      "world 2\npg ep = 0,1\n"
      "0 all_to_all i8 10000 ep in_splits=6000,4000 out_splits=6000,6000\n"
      "1 all_to_all i8 10000 ep in_splits=6000,4000 out_splits=4000,4000\n";
  ScalingTable strong;
  ASSERT_NO_THROW(strong = scaled(ops, true, {2, 6, 14}));
  for (const ScalingRow& row : strong.rows) EXPECT_GT(row.time, 0);
  EXPECT_LT(strong.rows.at(1).time * 29, strong.rows.at(0).time * 10);  // 3 times smaller, but for rounding
}

// One element is as little as there is.
TEST(Scaling, nothing_shrinks_below_one_element) {
  const std::string ops = "world 2\npg tp = 0,1\nall all_reduce i8 3 tp\n";
  EXPECT_EQ(time_of(ops, true, 2), 2 * 2000);  // two steps of ceil(3/2) bytes
  EXPECT_EQ(time_of(ops, true, 64), 2 * 1000);
}

TEST(Scaling, parts_and_totals_of_what_is_gathered_agree) {
  // A gather of 2 x 5 elements: a third of 5 is 2, and the total of two is 4. Ring: (n-1)/n of it.
  const std::string ops = "world 2\npg tp = 0,1\nall all_gather i8 5 tp\n";
  EXPECT_EQ(time_of(ops, true, 2), 5000);
  EXPECT_EQ(time_of(ops, true, 6), 2000);
}

TEST(Scaling, computations_take_the_factor_of_another_gpu) {
  const std::string ops = "world 2\npg dp = 0,1\nall compute 80us\nall all_reduce i8 16000 dp\n";
  EXPECT_EQ(time_of(ops, false, 2, .25), (20 + 16) * kMicro);
  EXPECT_EQ(time_of(ops, true, 16, .5), (5 + 30) * kMicro);
  EXPECT_THROW(time_of(ops, false, 2, 1e6), Error);
}

}  // namespace
}  // namespace ddx::sim
