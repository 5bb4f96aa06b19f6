// `ddx predict --scale`: what it answers, what it refuses, and that it says what it took for granted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "tests/cli/run_ddx.h"
#include "tests/support/scratch_folder.h"

namespace ddx::cli {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::string kProfile = DDX_SOURCE_DIR "/tests/traces/formats/kineto/data/ddp_rank0_of_2.json";

class PredictScale : public ::testing::Test, protected ddx::testing::ScratchFolder {
 protected:
  Answer predict(const std::string& job, const char* scale, std::vector<std::string> options = {}) const {
    std::vector<std::string> arguments{"predict", job, "--scale", scale};
    if (options.empty() || options.front() != "--cluster") arguments.insert(arguments.end(), {"--flat", "1GB/s,1us"});
    arguments.insert(arguments.end(), options.begin(), options.end());
    return ddx(arguments);
  }
  json table(const std::string& job, const char* scale, std::vector<std::string> options = {}) const {
    options.insert(options.end(), {"--format", "json"});
    const Answer answer = predict(job, scale, std::move(options));
    EXPECT_EQ(answer.status, 0) << answer.err;
    return json::parse(answer.out, nullptr, false);
  }
  static std::string content(const std::string& file) {
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    return text.str();
  }
};

// The step of what is cut is not the step; and files that hold nothing say why, as everywhere.
TEST_F(PredictScale, NothingIsPredictedFromAPartOfAJob) {
  const std::string whole = content(kProfile);
  ASSERT_GT(whole.size(), 12'000U);
  struct Case {
    std::string file;
    const char* said;
  };
  const Case cases[] = {
      {write("cut.json", whole.substr(0, 12'000)), "cut or damaged at byte"},
      {write("cut.ops", "world 1\n0 record tail_lost\n0 compute 1ms\n"), "rank 0 is cut"},
      {write("empty.json", ""), "the file is empty"},
      {write("wrong.json", "{\"a\": 1}"), "nothing in it speaks of a job"},
      {write("bad.ops", "world 2\nall all_reduc\n"), "line 2: expected an operation"},
      {path("absent.json"), "cannot be found"},
  };
  for (const Case& c : cases) {
    const Answer answer = predict(c.file, "2", {"--format", "json"});
    EXPECT_EQ(answer.status, 3) << c.file;
    EXPECT_THAT(answer.err, HasSubstr(c.said)) << c.file;
    EXPECT_EQ(answer.out, "") << c.file;
  }
  EXPECT_EQ(predict(kProfile, "2").status, 0) << "a window of a run is whole in itself";
  const Answer sim = ddx({"sim", path("cut.json"), "--world-size", "2"});
  EXPECT_EQ(sim.status, 3) << "the same file, the same answer";
  EXPECT_THAT(on_one_line(sim.out), HasSubstr("cut or damaged at byte"));
}

TEST_F(PredictScale, WhatWasLeftOutIsTold) {
  const std::string job = write("job.ops", "world 2\nall compute 1ms\nall all_reduce f32 8\n");
  const Answer answer = ddx({"predict", job, path("absent.ops"), "--scale", "2,4", "--flat", "1GB/s,1us"});
  EXPECT_EQ(answer.status, 0) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("absent.ops"));
}

// Calls between the stages of a replica tie no replicas, whoever else is in their group.
TEST_F(PredictScale, ReplicasThatNothingTiesHaveNoScaling) {
  const std::string inner[] = {
      write("pipe.ops", "world 2\nall compute 1ms\n0 send f32 8 to 1\n1 recv f32 8 from 0\n"),
      write("tp.ops", "world 2\npg tp = 0,1\nall compute 1ms\nall all_reduce f32 8 tp\n"),
      write("none.ops", "world 2\nall compute 1ms\n"),
  };
  for (const std::string& job : inner) {
    const json answer = table(job, "2,4,8", {"--plot", path("plot.svg")});
    EXPECT_FALSE(answer["replicas_tied"].get<bool>()) << job;
    for (const json& row : answer["rows"]) {
      EXPECT_TRUE(row["speedup"].is_null() && row["efficiency"].is_null()) << job;
    }
    const std::string text = predict(job, "2,4,8").out;
    EXPECT_THAT(text, AllOf(StartsWith("Nothing ties the replicas together"), Not(HasSubstr("1.00x")),
                            Not(HasSubstr("of the ideal"))))
        << job;
    EXPECT_THAT(content(path("plot.svg")), AllOf(HasSubstr("Nothing ties"), Not(HasSubstr("polyline")))) << job;
  }
  const std::string tied =
      write("tied.ops", "world 2\nall compute 1ms\n0 send f32 8 to 1\n1 recv f32 8 from 0\nall barrier\n");
  EXPECT_TRUE(table(tied, "2,4")["replicas_tied"].get<bool>());
  EXPECT_DOUBLE_EQ(table(tied, "2,4")["rows"][0]["speedup"].get<double>(), 1);
}

// A step of 100 ms of delay and 1 ms of work scales as delays do.
TEST_F(PredictScale, DelaysOfUnknownCauseAreDoubted) {
  const std::string slow = write("slow.ops", "world 2\nall delay 100ms\nall compute 1ms\nall all_reduce f32 8\n");
  EXPECT_THAT(on_one_line(predict(slow, "2,4").out), HasSubstr("Beware: up to 99.0 % of a step is no work and no call, "
                                                               "but recorded delays, of which nobody knows the cause"));
  EXPECT_THAT(table(slow, "2,4")["doubt"].get<std::string>(), HasSubstr("assumed, not found"));
  EXPECT_THAT(predict(slow, "2,4", {"--quiet"}).out, HasSubstr("Beware"));
  const std::string busy = write("busy.ops", "world 2\nall delay 1ms\nall compute 9ms\nall all_reduce f32 8\n");
  EXPECT_FALSE(table(busy, "2,4").contains("doubt"));
  EXPECT_THAT(predict(busy, "2,4").out, Not(HasSubstr("Beware")));
}

TEST_F(PredictScale, QuietIsTheAnswerAlone) {
  const std::string job = write("job.ops", "world 2\nall compute 1ms\nall all_reduce f32 8\n");
  const std::string quiet = predict(job, "2,4", {"--quiet"}).out;
  EXPECT_EQ(std::count(quiet.begin(), quiet.end(), '\n'), 1);
  EXPECT_THAT(predict(job, "2,4").out, StartsWith(quiet));
}

TEST_F(PredictScale, MoreNodesThanWereNamedAreTold) {
  const std::string job = write("job.ops", "world 8\nall compute 1ms\nall all_reduce f32 8\n");
  const std::string file = write("own.json", R"({"preset": "dgx-h100", "nodes": 4})");
  for (const std::string& cluster : {std::string("dgx-h100:4"), file}) {
    EXPECT_THAT(on_one_line(predict(job, "64", {"--cluster", cluster}).out),
                HasSubstr("64 ranks fill 8 nodes, and --cluster " + cluster + " has 4"));
    EXPECT_THAT(predict(job, "32", {"--cluster", cluster}).out, Not(HasSubstr("fill")));
  }
  EXPECT_THAT(predict(job, "64", {"--cluster", "dgx-h100"}).out, Not(HasSubstr("fill"))) << "nobody said how many";
}

// What nothing takes is not in the heading, and what some take is told kind by kind; by sim as by predict.
TEST_F(PredictScale, AnAlgorithmThatNothingTakesIsTold) {
  const std::string job = write("job.ops", "world 4\nall compute 1ms\nall all_reduce f32 8\n");
  const std::string both = write("both.ops", "world 4\nall compute 1ms\nall all_reduce f32 8\nall all_gather f32 8\n");
  const auto answers = [&](const std::string& ops, const char* algorithm) {
    const std::vector<std::string> options{"--flat", "1GB/s,1us", "--algorithm", algorithm};
    std::vector<std::string> sim{"sim", ops}, scale{"predict", ops, "--scale", "4,8"};
    sim.insert(sim.end(), options.begin(), options.end());
    scale.insert(scale.end(), options.begin(), options.end());
    return std::vector<std::string>{on_one_line(ddx(sim).out), on_one_line(ddx(scale).out)};
  };
  for (const char* algorithm : {"linear", "pat"}) {
    for (const std::string& out : answers(job, algorithm)) {
      EXPECT_THAT(out, AllOf(HasSubstr(std::string("--algorithm ") + algorithm + ": nothing takes it"),
                             Not(HasSubstr(std::string(", algorithm ") + algorithm))));
    }
  }
  for (const std::string& out : answers(both, "pat")) {
    EXPECT_THAT(out, AllOf(HasSubstr("--algorithm pat: all_gather takes it; all_reduce takes what the library"),
                           HasSubstr(", algorithm pat")));
  }
  for (const std::string& out : answers(both, "ring")) EXPECT_THAT(out, Not(HasSubstr("--algorithm")));
  // Powers of two alone: 6 ranks do not take it, 2 x 4 do.
  const std::string six = write("six.ops", "world 6\nall compute 1ms\nall all_reduce f32 8\n");
  EXPECT_THAT(answers(six, "halving-doubling").front(), HasSubstr("nothing takes it"));
  EXPECT_THAT(answers(job, "halving-doubling").front(), Not(HasSubstr("nothing takes it")));
}

// ---- the drawing ------------------------------------------------------------------------------------------------

struct Label {
  double left, right, y;
  std::string text;
};

// As wide as letters of 12 and 11 pixels are drawn.
std::vector<Label> labels(const std::string& svg) {
  static const std::regex kText(
      "<text x=\"([-0-9.]+)\" y=\"([-0-9.]+)\" text-anchor=\"(\\w+)\" class=\"(mark|note|axis)\">([^<]*)</text>");
  std::vector<Label> all;
  for (auto at = std::sregex_iterator(svg.begin(), svg.end(), kText); at != std::sregex_iterator(); ++at) {
    const double x = std::stod((*at)[1]), wide = 6.2 * static_cast<double>((*at)[5].length());
    const double left = (*at)[3] == "end" ? x - wide : (*at)[3] == "middle" ? x - wide / 2 : x;
    all.push_back({left, left + wide, std::stod((*at)[2]), (*at)[5]});
  }
  return all;
}

void expect_legible(const std::string& svg) {
  const std::vector<Label> all = labels(svg);
  EXPECT_GT(all.size(), 10U);
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t k = i + 1; k < all.size(); ++k) {
      const bool apart =
          all[i].right <= all[k].left || all[k].right <= all[i].left || std::abs(all[i].y - all[k].y) > 10;
      EXPECT_TRUE(apart) << all[i].text << " and " << all[k].text;
    }
  }
}

std::vector<std::pair<double, double>> points_of(const std::string& svg) {
  std::smatch line;
  EXPECT_TRUE(std::regex_search(svg, line, std::regex("<polyline points=\"([^\"]*)\"")));
  std::vector<std::pair<double, double>> points;
  std::istringstream in(line[1]);
  char comma = 0;
  for (double x = 0, y = 0; in >> x >> comma >> y;) points.emplace_back(x, y);
  return points;
}

TEST_F(PredictScale, ADrawingIsLegibleAndTrueWhereverTheSpeedUpIs) {
  // Communication alone, of a batch that stays: every rank more makes it slower.
  const std::string worse = write("worse.ops", "world 4\nall compute 1us\nall all_reduce f32 1000000\n");
  const std::string better = write("better.ops", "world 4\nall compute 100ms\nall all_reduce f32 1000\n");
  const char* many = "4,8,16,32,64,128,256,512,1024,2048,4096,8192";
  struct Case {
    std::string job;
    const char* scale;
    bool falls;
  };
  for (const Case& c :
       {Case{worse, many, true}, {worse, "4,8", true}, {better, many, false}, {better, "4,8,12", false}}) {
    const Answer answer = predict(c.job, c.scale, {"--cluster", "dgx-a100", "--strong", "--format", "svg"});
    ASSERT_EQ(answer.status, 0) << answer.err;
    expect_legible(answer.out);
    const auto points = points_of(answer.out);
    ASSERT_EQ(points.size(), static_cast<std::size_t>(std::count(c.scale, c.scale + std::strlen(c.scale), ',')) + 1);
    for (std::size_t i = 0; i < points.size(); ++i) {
      EXPECT_LE(points[i].second, 350.05) << "below the axis";
      EXPECT_GE(points[i].second, 80) << "in the title";
      if (i == 0) continue;
      EXPECT_EQ(points[i].second > points[i - 1].second, c.falls) << "no two at one height";
    }
  }
}

}  // namespace
}  // namespace ddx::cli
