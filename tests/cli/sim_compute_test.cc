// `--recorded-on`: a trace of one GPU on a cluster of another. Right values: the roofline of published peaks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/run_ddx.h"
#include "tests/support/scratch_folder.h"

namespace ddx::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class RecordedOn : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const { return folder_.write(name, text); }
  // One rank that computes for 100 ms.
  Answer sim(std::vector<std::string> options, const std::string& record = "") const {
    options.insert(options.begin(), {"sim", write("job.ops", "world 1\n" + record + "0 compute 100ms\n")});
    return ddx(options);
  }
  static std::int64_t nanos(const Answer& answer) {
    EXPECT_EQ(answer.status, 0) << answer.err;
    return json::parse(answer.out)["predicted_ns"].get<std::int64_t>();
  }

 private:
  const ddx::testing::ScratchFolder folder_;
};

// A100 to H100: 312 / 989 of the time by bf16, 2.0 / 3.35 by memory, which is longer.
TEST_F(RecordedOn, ScalesByTheRoofline) {
  const std::vector<std::string> base{"--cluster", "dgx-h100", "--format", "json", "--recorded-on"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), base.begin(), base.end());
    return nanos(sim(more));
  };
  EXPECT_EQ(with({"A100"}), 59'701'493);
  EXPECT_EQ(with({"dgx-a100"}), 59'701'493) << "the GPU of a cluster";
  EXPECT_EQ(with({"A100", "--intensity", "10000"}), 31'547'017);
  EXPECT_EQ(with({"A100", "--intensity", "0"}), 59'701'493);
  EXPECT_EQ(with({"A100", "--intensity", "0", "--compute-scale", "2"}), 119'402'985);
  EXPECT_EQ(with({"H100"}), 100'000'000);
  EXPECT_EQ(with({"A100", "--arithmetic", "fp32", "--intensity", "1000"}), 29'104'478);  // 19.5 / 67
}

TEST_F(RecordedOn, TheTraceMaySayIt) {
  const std::string a100 = "0 record whole device=\"NVIDIA A100-SXM4-80GB\"\n";
  EXPECT_EQ(nanos(sim({"--cluster", "dgx-h100", "--format", "json"}, a100)), 59'701'493);
  EXPECT_EQ(nanos(sim({"--cluster", "dgx-a100", "--format", "json"}, a100)), 100'000'000);
  EXPECT_EQ(nanos(sim({"--flat", "1GB/s,1us", "--format", "json"}, a100)), 100'000'000);
  const Answer text = sim({"--cluster", "dgx-h100"}, a100);
  EXPECT_THAT(text.out, HasSubstr("recorded on A100 (312 TFLOP/s bf16, 2 TB/s)"));
  EXPECT_THAT(text.out, HasSubstr("0.597"));
  const Answer unknown = sim({"--cluster", "dgx-h100"}, "0 record whole device=\"RTX 9\"\n");
  EXPECT_THAT(unknown.out, HasSubstr("recorded on RTX 9, whose peaks are not known"));
}

TEST_F(RecordedOn, SaysWhatItLacks) {
  const auto error = [&](const std::vector<std::string>& options) {
    const Answer answer = sim(options);
    EXPECT_EQ(answer.status, 2) << answer.out;
    return answer.err;
  };
  EXPECT_THAT(error({"--flat", "1GB/s,1us", "--recorded-on", "A100"}), HasSubstr("needs a cluster with a GPU"));
  EXPECT_THAT(error({"--cluster", "dgx-h100", "--recorded-on", "K80"}), HasSubstr("expected one of V100, A100"));
  EXPECT_THAT(error({"--cluster", "dgx-h100", "--intensity", "3"}), HasSubstr("--recorded-on"));
  EXPECT_THAT(error({"--cluster", "dgx-h100", "--recorded-on", "A100", "--arithmetic", "fp8"}),
              HasSubstr("no peak of fp8 is known of A100"));
  const std::string own = write("own.json", R"({"gpu": {"name": "own", "arch": "hopper"}, "library": "nccl"})");
  EXPECT_THAT(error({"--cluster", own, "--recorded-on", "A100"}), HasSubstr("no peak of bf16 is known of own"));
}

TEST_F(RecordedOn, TheBorderOfANodeNeedsItsNetwork) {
  const std::string node = write("node.json", R"({"gpu": "H100", "ranks_per_node": 8})");
  const std::string job = write("job.ops", "world 8\nall all_reduce f32 1024\n");
  EXPECT_EQ(ddx({"predict", job, "--scale", "8", "--cluster", node}).status, 0);
  const Answer answer = ddx({"predict", job, "--scale", "8,16", "--cluster", node});
  EXPECT_EQ(answer.status, 3);
  EXPECT_THAT(answer.err, HasSubstr("16 ranks need 2 nodes"));
  const std::string fast = write("fast.json", R"({"preset": "dgx-h100", "local": {"rate": "900GB/s"}})");
  EXPECT_THAT(ddx({"predict", job, "--scale", "8", "--cluster", fast}).err, HasSubstr("local.rate"));
}

}  // namespace
}  // namespace ddx::cli
