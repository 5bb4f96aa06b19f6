// A predicted trace, fed back: every command reads it like a recorded one, and it runs as it did.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/run_ddx.h"
#include "tests/support/chakra_bytes.h"
#include "tests/support/random_program.h"
#include "tests/support/scratch_folder.h"

namespace ddx::cli {
namespace {

using ddx::testing::chakra::collective;
using ddx::testing::chakra::kHead;
using ddx::testing::chakra::micros;
using ddx::testing::chakra::node;
using ddx::testing::chakra::on;
using nlohmann::json;
using ::testing::HasSubstr;

class PredictedTrace : public ::testing::Test {
 protected:
  // Runs `from` and writes what it came to.
  json run(const std::string& from, const std::string& to, std::vector<std::string> network) const {
    network.insert(network.begin(), {"sim", from, "-o", to, "--format", "json"});
    const Answer answer = ddx(network);
    EXPECT_TRUE(answer.err.empty()) << answer.err << std::ifstream(from).rdbuf();
    return json::parse(answer.out);
  }
  std::string path(const std::string& name) const { return folder_.path(name); }
  std::string write(const std::string& name, const std::string& text) const { return folder_.write(name, text); }

 private:
  const ddx::testing::ScratchFolder folder_;
};

const std::vector<std::string> kNetwork{"--flat", "1GB/s,1us"};

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Its lines without times.
std::string order_of(const std::string& path) {
  std::istringstream lines(text_of(path));
  std::string order, word;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    while (words >> word) {
      if (!word.starts_with("start=") && !word.starts_with("end=")) order += word + " ";
    }
    order += "\n";
  }
  return order;
}

std::vector<std::string> codes(const json& report) {
  std::vector<std::string> all;
  for (const json& finding : report.at("findings")) {
    if (finding.at("code") != "p2p-hazard") all.push_back(finding.at("code"));  // of programs, not of what they did
  }
  return all;
}

TEST_F(PredictedTrace, runs_as_it_did) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    ddx::testing::ProgramOptions options;
    options.seed = seed;
    const std::string job = write("job.ops", ops_text_of(random_program(options)));
    const json first = run(job, path("once.ops"), kNetwork),
               second = run(path("once.ops"), path("twice.ops"), kNetwork);
    EXPECT_EQ(first.at("predicted_ns"), second.at("predicted_ns")) << seed;
    EXPECT_EQ(first.at("rank_totals"), second.at("rank_totals")) << seed;
    EXPECT_EQ(text_of(path("once.ops")), text_of(path("twice.ops"))) << seed;
  }
}

TEST_F(PredictedTrace, keeps_its_order_where_links_take_nothing) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    ddx::testing::ProgramOptions options;
    options.seed = seed;
    const std::string job = write("job.ops", ops_text_of(random_program(options)));
    run(job, path("once.ops"), kNetwork);
    run(path("once.ops"), path("free.ops"), {"--flat", "1000000GB/s,0us"});
    EXPECT_EQ(order_of(path("once.ops")), order_of(path("free.ops"))) << seed;
    EXPECT_THAT(text_of(path("free.ops")), HasSubstr("start=")) << seed;
  }
}

// Computations on streams, as graphs and profiles have them, and the lengths that they were given.
TEST_F(PredictedTrace, keeps_what_runs_beside_what_and_how_long_it_took) {
  for (int rank = 0; rank < 4; ++rank) {
    write(fmt::format("set/job.{}.et", rank), kHead + node(0, 4, micros(100)) + collective(1, 0, 4000, on(0)) +
                                                  node(2, 4, micros(300) + on(0)) +
                                                  collective(3, 2, 4000, on(1) + on(2)));
  }
  std::vector<std::string> slowed = kNetwork;
  slowed.insert(slowed.end(), {"--algorithm", "ring", "--slow", "2=1.5"});
  const json first = run(path("set"), path("once.ops"), slowed),
             second = run(path("once.ops"), path("twice.ops"), {"--flat", "1GB/s,1us", "--algorithm", "ring"});
  EXPECT_EQ(first.at("predicted_ns"), second.at("predicted_ns"));
  EXPECT_EQ(first.at("rank_totals"), second.at("rank_totals"));
  // 1.5 x (100 + 300) us of computation and one all_gather behind it: 3 x (1 + 4) us.
  EXPECT_EQ(first.at("predicted_ns"), 615'000);
}

TEST_F(PredictedTrace, is_judged_like_a_recorded_one) {
  std::string ops = "world 4\nrepeat 30\nall compute 1ms\nall all_reduce f32 1000\nend\n";
  std::vector<std::string> slowed = kNetwork;
  slowed.insert(slowed.end(), {"--slow", "3=1.4"});
  const json first = run(write("job.ops", ops), path("once.ops"), slowed);
  EXPECT_EQ(codes(first), std::vector<std::string>{"slow-rank"});
  const Answer analyzed = ddx({"analyze", path("once.ops"), "--format", "json"});
  EXPECT_EQ(codes(json::parse(analyzed.out)), std::vector<std::string>{"slow-rank"});
  EXPECT_THAT(ddx({"info", path("once.ops")}).out, HasSubstr("Where the time goes"));
  EXPECT_EQ(ddx({"convert", path("once.ops"), "-o", path("once.perfetto.json")}).status, 0);
  EXPECT_EQ(ddx({"predict", path("once.ops"), "--scale", "4,8", "--flat", "1GB/s,1us"}).status, 0);
}

TEST_F(PredictedTrace, of_programs_that_hang_hangs) {
  for (const char* ops : {"world 2\n0 recv f32 8 from 1\n0 send f32 8 to 1\n1 recv f32 8 from 0\n1 send f32 8 to 0\n",
                          "world 3\nrepeat 5\nall barrier\nend\n0-1 all_reduce f32 8\n2 compute 1ms\n",
                          "world 3\nall all_reduce f32 8\n0-1 all_reduce f32 8\n2 all_reduce f32 9\nall barrier\n"}) {
    const json first = run(write("job.ops", ops), path("once.ops"), {}),
               second = run(path("once.ops"), path("twice.ops"), {});
    EXPECT_EQ(first.at("verdict"), "error");
    EXPECT_EQ(codes(first), codes(second)) << ops;
    EXPECT_EQ(codes(first), codes(json::parse(ddx({"analyze", path("once.ops"), "--format", "json"}).out))) << ops;
    EXPECT_EQ(text_of(path("once.ops")), text_of(path("twice.ops"))) << ops;
  }
}

TEST_F(PredictedTrace, is_none_where_nothing_was_run) {
  const std::string whole = kHead + collective(0, 0, 4000) + collective(1, 0, 4000);
  write("set/job.0.et", whole);
  write("set/job.1.et", whole.substr(0, whole.size() - 3));
  const Answer answer = ddx({"sim", path("set"), "-o", path("once.ops")});
  EXPECT_EQ(answer.status, 3) << answer.out;
  EXPECT_THAT(answer.err, HasSubstr("nothing was run"));
  EXPECT_FALSE(std::ifstream(path("once.ops")).good());
}

// Nodes of four.
TEST_F(PredictedTrace, names_the_nodes_of_its_cluster) {
  const std::string cluster = write("nodes.json", R"({"preset": "dgx-h100", "nodes": 4, "ranks_per_node": 4})");
  const std::string job = write("job.ops", "world 16\nrepeat 40\nall compute 3ms\nall all_reduce bf16 4194304\nend\n");
  std::vector<std::string> slowed{"--cluster", cluster};
  for (const char* slow : {"8=1.4", "9=1.4", "10=1.4", "11=1.4"}) slowed.insert(slowed.end(), {"--slow", slow});
  const json first = run(job, path("once.ops"), slowed);
  EXPECT_EQ(codes(first), std::vector<std::string>{"slow-node"});
  EXPECT_EQ(first.at("findings").at(0).at("ranks"), json({8, 9, 10, 11}));
  EXPECT_EQ(codes(json::parse(ddx({"analyze", path("once.ops"), "--format", "json"}).out)),
            std::vector<std::string>{"slow-node"});
  // Four ranks of four nodes have none in common but the job.
  std::vector<std::string> apart{"--cluster", cluster};
  for (const char* slow : {"3=1.4", "4=1.4", "9=1.4", "14=1.4"}) apart.insert(apart.end(), {"--slow", slow});
  EXPECT_EQ(codes(run(job, path("once.ops"), apart)), std::vector<std::string>(4, "slow-rank"));
}

}  // namespace
}  // namespace ddx::cli
