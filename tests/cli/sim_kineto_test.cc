// `ddx sim` on sets of Kineto profiles with holes: what a file does not tell is nobody's fault, and no time is
// predicted from it. The job is made here: four steps of a computation and an all_reduce.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/cli/run_ddx.h"
#include "tests/support/scratch_folder.h"

namespace ddx::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kSteps = 4;

// The events of one step, as text that a test may change.
struct Step {
  std::string work_time, work_length = "1000.0";
  std::string size = "1000000";
  bool on_host = true;     // the call is recorded on the host
  bool with_group = true;  // and its kernel has arguments
  std::string call_time, kernel_length = "200.0";
};
using Change = std::function<void(Step&)>;

std::string arguments_of(const Step& step) {
  return fmt::format(
      R"(, "Collective name": "allreduce", "dtype": "Float", "In msg nelems": {0}, "Out msg nelems": {0}, )"
      R"("Group size": 2, "Process Group Name": "0", "Process Group Ranks": "[0, 1]")",
      step.size);
}

std::string profile(int rank, const Change& change = {}) {
  std::string events;
  for (int i = 0; i < kSteps; ++i) {
    Step step;
    step.work_time = fmt::format("{}.0", 1000 + 1200 * i);
    step.call_time = step.work_time;
    if (change) change(step);
    if (i > 0) events += ",\n";
    events +=
        fmt::format(R"({{"ph": "X", "cat": "kernel", "name": "gemm", "ts": {}, "dur": {}, "args": {{"stream": 7}}}})",
                    step.work_time, step.work_length);
    if (step.on_host) {
      events += fmt::format(
          ",\n"
          R"({{"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "ts": {}, "dur": 5, )"
          R"("args": {{"External id": {}{}}}}})",
          step.call_time, i, arguments_of(step));
    }
    events += fmt::format(
        ",\n"
        R"({{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "ts": {}, )"
        R"("dur": {}, "args": {{"stream": 20, "External id": {}{}}}}})",
        step.on_host ? fmt::format("{}.0", 2000 + 1200 * i) : step.call_time, step.kernel_length, i,
        step.with_group ? arguments_of(step) : "");
  }
  return fmt::format(R"({{"schemaVersion": 1, "distributedInfo": {{"backend": "nccl", "rank": {}, "world_size": 2}}, )"
                     R"("traceEvents": [{}]}})",
                     rank, events);
}

class SimKineto : public ::testing::Test {
 protected:
  Answer with(const std::string& of_rank_1, const std::vector<std::string>& options = {}) const {
    folder_.write("set/rank0.json", profile(0));
    folder_.write("set/rank1.json", of_rank_1);
    std::vector<std::string> arguments{"sim", folder_.path("set")};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return ddx(arguments);
  }
  Answer scaled() const { return ddx({"predict", folder_.path("set"), "--scale", "2,4", "--flat", "50GB/s,1us"}); }

 private:
  const ddx::testing::ScratchFolder folder_;
};
const std::vector<std::string> kTimed{"--flat", "50GB/s,1us"};

TEST_F(SimKineto, whole_profiles_run_and_are_timed) {
  EXPECT_EQ(with(profile(1)).status, 0);
  EXPECT_EQ(with(profile(1), kTimed).status, 0);
  EXPECT_EQ(scaled().status, 0);
}

// Wherever the file was cut: behind an event, in one, in a number.
TEST_F(SimKineto, a_cut_file_is_nobodys_fault) {
  const std::string whole = profile(1);
  const std::size_t first = whole.find("},\n") + 1;
  for (std::size_t size = first; size + 2 < whole.size(); size += 37) {
    const Answer answer = with(whole.substr(0, size));
    EXPECT_EQ(answer.status, 3) << size << answer.out;
    EXPECT_THAT(on_one_line(answer.out), HasSubstr("rank1.json: cut or damaged at byte")) << size;
    EXPECT_EQ(with(whole.substr(0, size), kTimed).status, 3) << size;
    EXPECT_EQ(scaled().status, 3) << size;
  }
}

TEST_F(SimKineto, calls_that_are_not_told_are_nobodys_fault) {
  const Answer answer = with(profile(1, [](Step& step) { step.on_host = step.with_group = false; }));
  EXPECT_EQ(answer.status, 3) << answer.out;
  EXPECT_THAT(on_one_line(answer.out), HasSubstr("4 of 8 calls could not be replayed"));
  EXPECT_THAT(on_one_line(answer.out), HasSubstr("whether rank 1 made the calls that others wait for"));
  EXPECT_THAT(answer.out, Not(HasSubstr("ERROR")));
  // A kernel alone says as much, with arguments of its own.
  EXPECT_EQ(with(profile(1, [](Step& step) { step.on_host = false; })).status, 0);
}

// What is known to be wrong stays so, whatever else is not told.
TEST_F(SimKineto, a_known_mismatch_is_told_beside_calls_that_are_not) {
  std::string ops = "world 4\n0-1 pg a = 0-1\n2-3 pg b = 2-3\n0-3 record part\n";
  ops += "0 all_reduce f32 8 a seq=1\n1 all_reduce f32 16 a seq=1\n2 all_reduce f32 8 b seq=1\n";
  ops += "3 unknown f32 8 b name=\"teleport\"\n";
  const ddx::testing::ScratchFolder folder;
  const Answer answer = ddx({"sim", folder.write("job.ops", ops)});
  EXPECT_EQ(answer.status, 1) << answer.out;
  EXPECT_THAT(answer.out, HasSubstr("rank 1"));
  EXPECT_THAT(answer.out, Not(HasSubstr("rank 3 never"))) << answer.out;
}

TEST_F(SimKineto, no_time_is_predicted_from_computations_without_one) {
  for (const char* wrong :
       {"-5", "NaN", "Infinity", "-Infinity", "1e300", "\"soon\"", "null", "99999999999999999999"}) {
    const Answer answer = with(profile(1, [&](Step& step) { step.work_length = wrong; }), kTimed);
    EXPECT_EQ(answer.status, 3) << wrong << answer.out;
    EXPECT_THAT(on_one_line(answer.out), HasSubstr("4 of 4 computations of rank 1 have no length")) << wrong;
    EXPECT_THAT(on_one_line(answer.out), HasSubstr("4 x kineto.bad_event")) << wrong;
    const Answer predicted = scaled();
    EXPECT_EQ(predicted.status, 3) << wrong << predicted.out;
    // Whether it runs does not depend on it.
    EXPECT_EQ(with(profile(1, [&](Step& step) { step.work_length = wrong; })).status, 0) << wrong;
  }
  for (const char* wrong : {"NaN", "Infinity", "1e300", "\"soon\""}) {
    EXPECT_EQ(with(profile(1, [&](Step& step) { step.work_time = wrong; }), kTimed).status, 3) << wrong;
  }
}

TEST_F(SimKineto, calls_of_which_nobody_knows_when_prove_nothing) {
  const Answer answer = with(profile(1, [](Step& step) {
    step.on_host = false;
    step.kernel_length = "-1";
  }));
  EXPECT_EQ(answer.status, 3) << answer.out;
  EXPECT_THAT(on_one_line(answer.out), HasSubstr("4 x kineto.unplaced_call"));
}

TEST_F(SimKineto, sizes_that_cannot_be_are_told) {
  for (const char* wrong : {"-3", "1000000000000000000000000000000", "18446744073709551615", "-1.5e30"}) {
    const Answer answer = with(profile(1, [&](Step& step) { step.size = wrong; }), kTimed);
    EXPECT_EQ(answer.status, 3) << wrong << answer.out;
    EXPECT_THAT(on_one_line(answer.out), HasSubstr("rank1.json: calls of a size that cannot be: In msg nelems"));
    EXPECT_THAT(on_one_line(answer.out), HasSubstr("4 x kineto.bad_number"));
    EXPECT_EQ(scaled().status, 3) << wrong;
  }
}

}  // namespace
}  // namespace ddx::cli
