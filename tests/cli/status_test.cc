// One mistake has one status, whichever command it is made in: 2 for what was typed, 3 for a file or evidence that does
// not suffice. And it is told in the same words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/run_ddx.h"
#include "tests/support/scratch_folder.h"

namespace ddx::cli {
namespace {

using ::testing::HasSubstr;

class Status : public ::testing::Test, protected ddx::testing::ScratchFolder {
 protected:
  // Every command that may be told so: `sim` and `predict --scale` with the same options, and how many ranks.
  struct Mistake {
    std::vector<std::string> options;
    int status;
    const char* said;
    std::string ranks = "8";
    bool in_predict = true;
  };
  void expect(const std::string& job, const Mistake& mistake) const {
    std::vector<std::vector<std::string>> commands{{"sim", job, "--world-size", mistake.ranks}};
    if (mistake.in_predict) commands.push_back({"predict", job, "--scale", mistake.ranks});
    for (std::vector<std::string>& arguments : commands) {
      arguments.insert(arguments.end(), mistake.options.begin(), mistake.options.end());
      const Answer answer = ddx(arguments);
      EXPECT_EQ(answer.status, mistake.status) << ::testing::PrintToString(arguments) << '\n' << answer.err;
      EXPECT_THAT(on_one_line(answer.err), HasSubstr(mistake.said)) << ::testing::PrintToString(arguments);
      EXPECT_EQ(answer.out, "") << ::testing::PrintToString(arguments);
    }
  }
};

TEST_F(Status, OfOneMistakeIsTheSameInEveryCommand) {
  const std::string job = write("job.ops", "world 4\npg dp = all\nall compute 1ms\nall all_reduce f32 8 dp\n");
  const std::string broken = write("broken.json", R"({"preset": "dgx-h100", "nodes": )");
  const std::string unknown = write("unknown.json", R"({"preset": "dgx-h100", "nodse": 2})");
  const std::string no_arch = write("no_arch.json", R"({"gpu": {"name": "own"}})");
  const std::vector<std::string> flat{"--flat", "1GB/s,1us"};
  const Mistake mistakes[] = {
      // Typed.
      {flat, 2, "6 ranks cannot be made of replicas of 4", "6"},
      {{"--cluster", "nonsense"}, 2, "nonsense: no such file, and no preset of that name"},
      {{"--cluster", path("absent.json")}, 2, "no such file, and no preset of that name"},
      {{"--cluster", "dgx-h100:many"}, 2, "a whole number of nodes"},
      {{"--cluster", "flat:1GB/s"}, 2, "expected a rate and a latency"},
      {{"--flat", "1GB/s"}, 2, "expected a rate and a latency"},
      {{"--flat", "fast,1us"}, 2, "'fast' is no rate"},
      {{"--flat", "1GB/s,soon"}, 2, "'soon' is no time"},
      {{"--flat", "1GB/s,1us", "--cluster", "dgx-h100"}, 2, "give one"},
      {{"--flat", "1GB/s,1us", "--algorithm", "star"}, 2, "Expected one of ring"},
      {{"--cluster", "dgx-h100:2", "--algorithm", "bruck"}, 2, "NCCL has no algorithm bruck"},
      {{"--flat", "1GB/s,1us", "--map", "dp=fast"}, 2, "there is no role 'fast'; expected GROUP=data"},
      {{"--flat", "1GB/s,1us", "--map", "dq=data"}, 2, "there is no group 'dq'; groups are dp. Did you mean: dp"},
      {{"--cluster", "dgx-h100", "--recorded-on", "K80"}, 2, "expected one of V100"},
      {{"--cluster", "mi300x", "--detail", "steps"}, 2, "leave --detail out", "8", false},
      {{"--flat", "1GB/s,1us", "--inject", "skip@99:0"}, 2, "there is no rank 99", "8", false},
      {{"--flat", "1GB/s,1us", "--inject", "skip@1:7"}, 2, "rank 1 has 2 operations", "8", false},
      {{"--flat", "1GB/s,1us", "--inject", "skip@1:dp/7"}, 2, "makes no collective 7", "8", false},
      // Files.
      {{"--cluster", broken}, 3, "broken.json"},
      {{"--cluster", unknown}, 3, "unknown.json: 'nodse'"},
      {{"--cluster", no_arch}, 3, "'gpu.arch': missing"},
      {{"--cluster", "dgx-h100", "--recorded-on", broken}, 3, "broken.json"},
  };
  for (const Mistake& mistake : mistakes) expect(job, mistake);
}

// The trace does not tell: --map says it.
TEST_F(Status, OfEvidenceThatDoesNotSuffice) {
  const std::string nameless = write("a.ops", "world 4\n0,1 pg x7 = 0,1\nall compute 1ms\n0,1 all_reduce f32 8 x7\n");
  expect(nameless, {{"--flat", "1GB/s,1us"}, 3, "what is group x7 for?"});
  const std::string staged = write("b.ops", "world 2\nabsent 1\n0 compute 1us\n0 send f32 8 to 1\n");
  expect(staged, {{"--flat", "1GB/s,1us"}, 3, "no recorded rank can stand for it"});
}

// What cannot be read is the answer, whatever was to be made of it.
TEST_F(Status, OfFilesThatCannotBeRead) {
  const std::string broken = write("broken.ops", "wrld 2\n0 barrier\n");
  for (const char* option : {"--world-size=8", "--inject=skip@0:0", "--streams", "--flat=1GB/s,1us"}) {
    const Answer answer = ddx({"sim", broken, option});
    EXPECT_EQ(answer.status, 3) << option;
    EXPECT_THAT(on_one_line(answer.out + answer.err), HasSubstr("line 1: expected 'world N'")) << option;
  }
}

TEST_F(Status, OfAClusterThatIsOnlyDescribed) {
  EXPECT_EQ(ddx({"sim", "--describe-cluster", "dgx-h100:2"}).status, 0);
  EXPECT_EQ(ddx({"sim", "--describe-cluster", "nonsense"}).status, 2);
  EXPECT_EQ(ddx({"sim", "--describe-cluster", "dgx-h100:0"}).status, 2);
  EXPECT_EQ(ddx({"sim", "--describe-cluster", write("broken.json", "{")}).status, 3);
}

}  // namespace
}  // namespace ddx::cli
