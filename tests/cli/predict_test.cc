#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/run_ddx.h"

namespace ddx::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::string kRuns = DDX_SOURCE_DIR "/tests/data/validation/nccl_tests.json";

std::string scratch(const std::string& text) {
  std::string path = testing::TempDir() + "/ddx_predict_" + std::to_string(::getpid()) + ".json";
  std::ofstream(path) << text;
  return path;
}

json predicted(const std::string& path) {
  const Answer answer = ddx({"predict", "--collectives", path, "--format", "json"});
  EXPECT_EQ(answer.status, 0) << answer.err;
  return json::parse(answer.out);
}

TEST(Predict, AnswersEveryRowOfEveryRun) {
  std::ifstream file(kRuns);
  const json given = json::parse(file);
  const json answer = predicted(kRuns);
  ASSERT_EQ(answer.at("runs").size(), given.at("runs").size());
  for (std::size_t i = 0; i < given.at("runs").size(); ++i) {
    const json& run = given["runs"][i];
    const json& times = answer["runs"][i].at("predicted_time_us");
    EXPECT_EQ(answer["runs"][i].at("id"), run.at("id"));
    ASSERT_EQ(times.size(), run.at("rows").size());
    for (std::size_t k = 0; k < times.size(); ++k) {
      const bool known = !run["rows"][k][0].is_null() && !run["gpu"].is_null();
      EXPECT_EQ(times[k].is_number(), known) << run.at("id") << ' ' << k;
      if (known) {
        EXPECT_GT(times[k].get<double>(), 0);
      }
    }
  }
}

// The file with its measurements gone, or replaced, gets the same answer.
TEST(Predict, DoesNotLookAtWhatWasMeasured) {
  std::ifstream file(kRuns);
  json stripped = json::parse(file);
  for (json& run : stripped["runs"]) {
    run.erase("rows_in_place");
    run.erase("notes");
    run.erase("trust");
    run.erase("source");
    for (json& row : run["rows"]) row = json::array({row[0], 1, 2, 3});
  }
  const std::string path = scratch(stripped.dump());
  EXPECT_EQ(predicted(path), predicted(kRuns));
  std::filesystem::remove(path);
}

TEST(Predict, TextTellsRunsAndRows) {
  const std::string path = scratch(R"({"runs": [
    {"id": "a", "gpu": "H200", "gpus_per_node": 8, "nodes": 1, "collective": "all_reduce", "columns": ["bytes"], "rows": [[1048576], [2097152]]},
    {"id": "b", "gpu": null, "gpus_per_node": 8, "nodes": 1, "collective": "all_reduce", "columns": ["bytes"], "rows": [[8]]}]})");
  const std::string text = ddx({"predict", "--collectives", path}).out;
  EXPECT_THAT(text, HasSubstr("a: all_reduce on 8 H200, 1 node"));
  EXPECT_THAT(text, HasSubstr("Ring/LL"));
  EXPECT_THAT(text, HasSubstr("NVLS/Simple"));
  EXPECT_THAT(text, HasSubstr("nothing can be said: the GPU is not stated"));
  const std::string detail = ddx({"predict", "--collectives", path, "--verbose"}).out;
  EXPECT_THAT(detail, HasSubstr("Tree/LL128"));
  EXPECT_THAT(detail, HasSubstr("- the network does not reduce"));
  const std::string quiet = ddx({"predict", "--collectives", path, "--quiet"}).out;
  EXPECT_EQ(std::count(quiet.begin(), quiet.end(), '\n'), 4);
  std::filesystem::remove(path);
}

TEST(Predict, ErrorsNameFileAndKey) {
  const std::string path = scratch(R"({"runs": [{"id": "a", "rows": 3}]})");
  const Answer answer = ddx({"predict", "--collectives", path});
  EXPECT_EQ(answer.status, 0);
  EXPECT_THAT(answer.out, HasSubstr("nothing can be said"));
  EXPECT_THAT(answer.out, HasSubstr("runs[0].rows"));
  EXPECT_THAT(answer.out, HasSubstr(path));
  std::filesystem::remove(path);
  EXPECT_EQ(ddx({"predict"}).status, 2);
  EXPECT_NE(ddx({"predict", "--collectives", "/no/such/file"}).status, 0);
}

}  // namespace
}  // namespace ddx::cli
