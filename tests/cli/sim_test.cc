// `ddx sim` and `ddx predict --scale` as a user meets them. The broken programs are those on which other simulators
// exit with 0, mostly in silence: a call left out, another size, another kind, ...
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/cli/run_ddx.h"
#include "tests/support/scratch_folder.h"

namespace ddx::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;

class Sim : public ::testing::Test {
 protected:
  std::string file(const std::string& name) const { return folder_.path(name); }
  std::string write(const std::string& text, const std::string& name = "job.ops") const {
    return folder_.write(name, text);
  }
  Answer sim(const std::string& ops, std::vector<std::string> options = {}) const {
    options.insert(options.begin(), {"sim", write(ops)});
    return ddx(options);
  }
  json report(const std::string& ops, std::vector<std::string> options = {}) const {
    options.insert(options.end(), {"--format", "json"});
    return json::parse(sim(ops, options).out);
  }

 private:
  const ddx::testing::ScratchFolder folder_;
};

std::string ring_of(const char* first, const char* second, const char* how = "") {
  std::string text = "world 8\n";
  for (int r = 0; r < 8; ++r) {
    for (const std::string_view half : {first, second}) {
      const int peer = half == "send" ? (r + 1) % 8 : (r + 7) % 8;
      text += std::to_string(r) + (half == "send" ? " send f32 1024 to " : " recv f32 1024 from ") +
              std::to_string(peer) + (half == first ? how : "") + "\n";
    }
  }
  return text;
}

// Every row names the rank, the call and its group, what it differs in, and who waits.
TEST_F(Sim, NamesWhatOtherSimulatorsPassOver) {
  struct Row {
    const char* what;
    std::string ops;
    int status;
    std::vector<const char*> said;
  };
  const Row rows[] = {
      {"a rank misses the only collective",
       "world 8\n0-2,4-7 all_reduce f32 262144\n",
       1,
       {"rank 3 never called all_reduce f32 x 262,144 (group pg0, seq 1): ranks 0-2,4-7 wait for it"}},
      {"a rank misses the last one",
       "world 8\nall broadcast f32 8 root=0\nall all_reduce f32 262144\n0-2,4-7 all_gather f32 2\n",
       1,
       {"rank 3", "all_gather f32 x 2 (group pg0, seq 3)", "ranks 0-2,4-7 wait"}},
      {"half the size",
       "world 8\n0-2,4-7 all_reduce f32 262144\n3 all_reduce f32 131072\n",
       1,
       {"rank 3 and ranks 0-2,4-7 disagree on the size: all_reduce f32 x 131,072 against all_reduce f32 x 262,144 "
        "(group "
        "pg0, seq 1)"}},
      {"64 times the size",
       "world 8\n0-2,4-7 all_reduce f32 262144\n3 all_reduce f32 16777216\n",
       1,
       {"rank 3 and ranks 0-2,4-7", "all_reduce f32 x 16,777,216 against all_reduce f32 x 262,144"}},
      {"another kind",
       "world 8\n0-2,4-7 all_reduce f32 262144\n3 all_gather f32 262144\n",
       1,
       {"rank 3 and ranks 0-2,4-7 disagree on the operation: all_gather f32 x 262,144 against all_reduce f32 x "
        "262,144"}},
      {"a broadcast",
       "world 8\n0-2,4-7 all_reduce f32 262144\n3 broadcast f32 262144 root=0\n",
       1,
       {"rank 3", "broadcast f32 x 262,144 root=0 against all_reduce f32 x 262,144 (group pg0, seq 1)"}},
      {"two in swapped order",
       "world 8\n0-2,4-7 all_reduce f32 262144\n0-2,4-7 all_gather f32 1024\n3 all_gather f32 1024\n"
       "3 all_reduce f32 262144\n",
       1,
       {"rank 3 swapped two operations: all_gather f32 x 1,024 comes before all_reduce f32 x 262,144"}},
      {"swapped over two groups",
       "world 8\npg a = all\npg b = all\n0-2,4-7 all_reduce f32 8 a\n0-2,4-7 all_reduce f32 8 b\n"
       "3 all_reduce f32 8 b\n3 all_reduce f32 8 a\n",
       1,
       {"rank 3 uses its groups in another order", "(group b, seq 1)", "(group a, seq 1)"}},
      {"a send without its receive",
       "world 8\n3 send f32 1024 to 4\n",
       1,
       {"rank 4 never posts the receive that meets send f32 x 1,024 to 4 (group pg0, seq 1): rank 3 waits in it"}},
      {"a receive without its send",
       "world 8\n3 recv f32 1024 from 4\n",
       1,
       {"rank 4 never posts the send that meets recv f32 x 1,024 from 4 (group pg0, seq 1): rank 3 waits in it"}},
      {"all receive first",
       ring_of("recv", "send"),
       1,
       {"ranks 0-7 wait for each other in a circle of sends and receives",
        "rank 0 waits in recv f32 x 1,024 from 7 (group pg0) for rank 7"}},
      {"all send first",
       ring_of("send", "recv"),
       1,
       {"ranks 0-7 wait for each other in a circle of sends and receives",
        "rank 0 waits in send f32 x 1,024 to 1 (group pg0) for rank 1"}},
      {"all send first and return at once",
       ring_of("send", "recv", " async"),
       1,
       {"ranks 0-7 wait for each other in a circle of sends and receives",
        "rank 0 waits in send f32 x 1,024 to 1 (group pg0) for rank 1"}},
      {"sizes of a send and its receive",
       "world 8\n3 send f32 1024 to 4\n4 recv f32 512 from 3\n",
       1,
       {"ranks 3 and 4", "send f32 x 1,024 to 4 against recv f32 x 512 from 3 (group pg0)"}},
      {"tags that never meet",
       "world 8\n3 send f32 1024 to 4 tag=1\n4 recv f32 1024 from 3 tag=2\n",
       1,
       {"rank 4 receives with tag 2 what rank 3 sends with tag 1 (group pg0)"}},
      {"a peer out of range",
       "world 8\n3 send f32 1024 to pos:12\n",
       1,
       {"rank 3 names a root or peer outside the group: send f32 x 1,024 to 12 (group pg0 has 8 members)"}},
      {"a cut file", "world 8\nall all_reduce f3", 3, {"line 2: expected a datatype"}},
      {"an empty file", "", 3, {"the file is empty"}},
      {"garbage", "\x01\x02\xff\xfe not a job", 3, {"line 1: expected 'world N' before anything else"}},
      {"a rank without a record",
       "world 8\nabsent 3\n0-2,4-7 all_reduce f32 262144\n",
       1,
       {"rank 3 has no record in what was given, and ranks 0-2,4-7 wait for it in all_reduce f32 x 262,144 (group "
        "pg0, seq 1)"}},
      {"an unknown group", "world 8\nall all_reduce f32 1024 nosuch\n", 3, {"line 2: group 'nosuch' is unknown here"}},
  };
  for (const Row& row : rows) {
    const Answer answer = sim(row.ops);
    EXPECT_EQ(answer.status, row.status) << row.what << '\n' << answer.out;
    for (const char* said : row.said) EXPECT_THAT(on_one_line(answer.out), HasSubstr(said)) << row.what;
  }
}

// A network without a latency: other simulators stop at an assertion. Ring on two ranks: 2 x 2,000 bytes at 50 GB/s.
TEST_F(Sim, ALatencyOfZeroIsALatency) {
  const std::string ops = "world 2\nall all_reduce f32 1000\n";
  const json flat = report(ops, {"--flat", "50GB/s,0us", "--algorithm", "ring"});
  EXPECT_EQ(flat["verdict"], "clean");
  EXPECT_EQ(flat["predicted_ns"], 80);
  const std::string cluster = write(
      R"({"name": "c", "nodes": 2, "ranks_per_node": 1, "gpu": "H100", "local": {"rate": "50GB/s", "latency": "0us"},
          "network": {"fabric": "roce", "rate": "50GB/s", "latency": "0us"}})",
      "cluster.json");
  const Answer answer = sim(ops, {"--cluster", cluster});
  EXPECT_EQ(answer.status, 0) << answer.out << answer.err;
  EXPECT_THAT(answer.out, ::testing::StartsWith("COMPLETES"));
}

// A model that was asked for is one of several: what would deadlock in the plainer one is told.
TEST_F(Sim, WhatCompletesOnlyInTheModelAskedForIsAHazard) {
  const std::string crossed =
      "world 2\npg a = 0,1\npg b = 0,1\n0 all_reduce f32 8 a\n0 all_reduce f32 8 b\n1 all_reduce f32 8 b\n1 "
      "all_reduce f32 8 a\n";
  EXPECT_EQ(sim(crossed).status, 1);
  const std::string head_to_head =
      "world 2\n0 send f32 8 to 1\n0 recv f32 8 from 1\n1 send f32 8 to 0\n1 recv f32 8 from 0\n";
  EXPECT_EQ(sim(head_to_head).status, 1);
  struct Row {
    std::string ops;
    std::vector<std::string> model;
    const char* named;
  };
  for (const Row& row :
       {Row{crossed, {"--streams"}, "model blocking calls"}, {head_to_head, {"--eager", "100"}, "model rendezvous"}}) {
    const json report_of_it = report(row.ops, row.model);
    ASSERT_EQ(report_of_it["findings"].size(), 1U) << report_of_it;
    const json& finding = report_of_it["findings"][0];
    EXPECT_EQ(finding["code"], "p2p-hazard");
    EXPECT_EQ(finding["severity"], "warning");
    EXPECT_EQ(finding["ranks"], json({0, 1}));
    EXPECT_EQ(finding["subjects"][0], row.named);
  }
  // Programs that complete in both have none.
  EXPECT_TRUE(report("world 2\nall all_reduce f32 8\n", {"--streams", "--eager", "100"})["findings"].empty());
}

// As many operations as cannot all be looked at: what fails behind them is told as in a short program.
TEST_F(Sim, TellsWhatFailsInHugePrograms) {
  const auto job = [](const std::string& faulty, int steps) {
    const std::string loop = "repeat " + std::to_string(steps) + "\nall all_reduce f32 1024\nend\n";
    return "world 1024\n" + loop + faulty + loop;
  };
  struct Row {
    std::string ops;
    const char* code;
    const char* said;
  };
  const Row rows[] = {
      {"0-2,4-1023 all_gather f32 16\n3 all_gather f32 8\n", "mismatch-size",
       "rank 3 and ranks 0-2,4-1023 disagree on the size: all_gather f32 x 8 against all_gather f32 x 16 (group pg0, "
       "seq "
       "17001)"},
      {"3 crash OOM\n", "dead-rank", "rank 3 ended (crash: OOM) before all_reduce f32 x 1,024 (group pg0)"},
      {"3 send f32 8 to 4\n", "p2p-unmatched", "rank 4"},
      {"3 recv f32 8 from 4\n4 recv f32 8 from 3\n3 send f32 8 to 4\n4 send f32 8 to 3\n", "p2p-cycle",
       "ranks 3,4 wait for each other in a circle"},
      {"3 recv f32 8 from 4\n4 recv f32 8 from 3\n", "p2p-unmatched", "never posts the send"},
  };
  for (const Row& row : rows) {
    const json told = report(job(row.ops, 17'000));
    const json of_short = report(job(row.ops, 70));
    ASSERT_FALSE(told["findings"].empty()) << row.code;
    const json& finding = told["findings"][0];
    EXPECT_EQ(finding["code"], row.code);
    EXPECT_THAT(finding["summary"].get<std::string>(), HasSubstr(row.said)) << row.code;
    EXPECT_EQ(told["findings"].size(), 1U) << told["findings"];
    for (const char* key : {"code", "confidence", "ranks", "victims"}) {
      EXPECT_EQ(finding[key], of_short["findings"][0][key]) << row.code << ' ' << key;
    }
  }
  const json last = report("world 1024\nrepeat 17000\nall all_reduce f32 1024\nend\n0-2,4-1023 barrier\n");
  EXPECT_EQ(last["findings"][0]["code"], "missing-ranks");
  EXPECT_EQ(last["findings"][0]["confidence"], "high");
  EXPECT_EQ(last["findings"][0]["summary"],
            "rank 3 never called barrier (group pg0, seq 17001): ranks 0-2,4-1023 wait for it");
}

constexpr const char* kTraining =
    "world 4\n0,1 pg tp = 0,1\n2,3 pg tp = 2,3\n0,2 pg dp = 0,2\n1,3 pg dp = 1,3\n"
    "all compute 5ms\nall all_reduce i8 2000 tp\nall all_reduce i8 2000 dp\n";

TEST_F(Sim, SaysThatAllRunToTheirEnd) {
  EXPECT_THAT(sim(kTraining).out, ::testing::StartsWith("COMPLETES  4 ranks run to their end, 12 operations\n"));
  const json whole = report(kTraining);
  EXPECT_EQ(whole["simulation"]["outcome"], "completes");
  EXPECT_EQ(whole["simulation"]["classes"], 1);
  EXPECT_FALSE(whole.contains("predicted_ns")) << "no network was named";
}

// 1 GB/s and 1 us: an all_reduce of 2,000 bytes on two ranks takes 2 x (1 + 1) us by the ring.
TEST_F(Sim, TimesOnAFlatNetwork) {
  const json timed = report(kTraining, {"--flat", "1GB/s,1us", "--algorithm", "ring"});
  EXPECT_EQ(timed["predicted_ns"], 5'000'000 + 4'000 + 4'000);
  const json& totals = timed["rank_totals"];
  ASSERT_EQ(totals.size(), 1U);
  EXPECT_EQ(totals[0]["ranks"], json::array({0, 1, 2, 3}));
  EXPECT_EQ(totals[0]["compute_ns"], 5'000'000);
  EXPECT_EQ(totals[0]["communication_ns"], 8'000);
  EXPECT_EQ(totals[0]["waiting_ns"], 0);
  EXPECT_EQ(totals[0]["idle_ns"], 0);
  EXPECT_EQ(report(kTraining, {"--flat", "1GB/s,1us", "--algorithm", "ring", "--detail", "steps"})["predicted_ns"],
            timed["predicted_ns"]);
  EXPECT_EQ(report(kTraining, {"--flat", "1GB/s,1us", "--algorithm", "ring", "--compute-scale", "0.5"})["predicted_ns"],
            2'508'000);
}

// On a cluster with NCCL as NCCL_ALGO does, in both commands; what NCCL has not is refused.
TEST_F(Sim, ForcesAnAlgorithmOfNccl) {
  const std::string both = "world 8\nall all_reduce f32 268435456\nall broadcast f32 2 root=0\n";
  const Answer tree = sim(both, {"--cluster", "dgx-h100", "--algorithm", "tree", "--verbose"});
  EXPECT_THAT(tree.out,
              ::testing::AllOf(HasSubstr("algorithm tree"), HasSubstr("1,073,741,824 bytes: Tree/Simple\n"),
                               HasSubstr("Tree is not to be had for broadcast on 8 ranks: NCCL takes Ring\n")));
  const auto predict = [&](const std::string& algorithm) {
    return ddx({"predict", write(both), "--scale", "8,16", "--cluster", "dgx-h100", "--algorithm", algorithm});
  };
  EXPECT_THAT(predict("tree").out,
              ::testing::AllOf(HasSubstr("algorithm tree"), HasSubstr("not to be had for broadcast")));
  EXPECT_THAT(predict("bcube").err, HasSubstr("NCCL has no algorithm bcube"));
}

// docs/algorithms.md: gloo takes the ring for large all_reduces; what is forced is told as well. NCCL's names are
// those of the nccl-tests table (tests/sim/collectives/nccl_choice_test.cc).
TEST_F(Sim, SaysWhatCollectivesTake) {
  const json flat = report(kTraining, {"--flat", "1GB/s,1us", "--algorithm", "ring"});
  ASSERT_EQ(flat["simulation"]["collectives"].size(), 1U);
  EXPECT_EQ(flat["simulation"]["collectives"][0], (json{{"kind", "all_reduce"},
                                                        {"ranks", 2},
                                                        {"least_bytes", 2000},
                                                        {"most_bytes", 2000},
                                                        {"algorithm", "ring"},
                                                        {"protocol", ""}}));
  const std::string large = "world 8\nall all_reduce f32 268435456\nall all_reduce f32 2\n";
  const Answer told = sim(large, {"--cluster", "dgx-h100", "--verbose"});
  EXPECT_THAT(told.out, HasSubstr("all_reduce on 8 ranks, 1,073,741,824 bytes: NVLS/Simple\n"));
  EXPECT_THAT(told.out, HasSubstr("all_reduce on 8 ranks, 8 bytes: "));
  EXPECT_THAT(sim(large, {"--cluster", "dgx-h100"}).out, ::testing::Not(HasSubstr("Collectives take")));
}

// One computation of 2 ms, and beside it the 8 us of the ring.
TEST_F(Sim, WhatIsBesideAComputationIsTold) {
  const std::string ops = "world 2\nall all_reduce i8 6000 async=x stream=1\nall compute 2ms stream=2\nall wait x\n";
  const json timed = report(ops, {"--flat", "1GB/s,1us", "--algorithm", "ring"});
  EXPECT_EQ(timed["predicted_ns"], 2'000'000);
  EXPECT_EQ(timed["rank_totals"][0]["overlapped_ns"], 8'000) << timed["rank_totals"];
  EXPECT_EQ(timed["rank_totals"][0]["communication_ns"], 0);
  EXPECT_THAT(sim(ops, {"--flat", "1GB/s,1us", "--algorithm", "ring"}).out, HasSubstr("100.0 %      0.4 %"));
}

// Lines that read alike are one line.
TEST_F(Sim, RanksThatReadAlikeAreToldTogether) {
  const Answer answer =
      sim("world 5\nall broadcast f32 25000000 root=2\n", {"--flat", "1GB/s,1us", "--detail", "steps"});
  std::set<std::string> lines;
  std::istringstream in(answer.out.substr(answer.out.find("computing")));
  for (std::string line; std::getline(in, line) && !line.empty();) {
    EXPECT_TRUE(lines.insert(line.substr(0, line.rfind("  "))).second) << line;
  }
  EXPECT_GE(lines.size(), 2U);
}

TEST_F(Sim, WhoIsSlowMakesOthersWait) {
  const json timed = report(kTraining, {"--flat", "1GB/s,1us", "--algorithm", "ring", "--slow", "3=1.2"});
  EXPECT_EQ(timed["predicted_ns"], 6'008'000);
  for (const json& totals : timed["rank_totals"]) {
    EXPECT_EQ(totals["compute_ns"].get<int>() + totals["communication_ns"].get<int>() + totals["bubble_ns"].get<int>() +
                  totals["idle_ns"].get<int>() + totals["unattributed_ns"].get<int>(),
              6'008'000);
    // Rank 0 meets 2 after its own 4 us, and 2 has met 3 by then.
    EXPECT_EQ(totals["waiting_ns"], totals["ranks"][0] == 3 ? 0 : 1'000'000) << totals;
  }
}

TEST_F(Sim, NoiseIsTheSameForTheSameSeed) {
  const auto with = [&](const char* seed) {
    return report(kTraining,
                  {"--flat", "1GB/s,1us", "--algorithm", "ring", "--noise", "10", "--seed", seed})["predicted_ns"]
        .get<std::int64_t>();
  };
  EXPECT_EQ(with("7"), with("7"));
  EXPECT_NE(with("7"), with("8"));
  // The slowest of four, at most three deviations above.
  for (const char* seed : {"1", "2", "3", "4", "5"}) {
    EXPECT_GT(with(seed), 5'008'000 - 1'500'000) << seed;
    EXPECT_LE(with(seed), 5'008'000 + 1'500'000) << seed;
  }
}

TEST_F(Sim, WritesATimeline) {
  const Answer answer = sim(kTraining, {"--flat", "1GB/s,1us", "--algorithm", "ring", "--timeline", file("line.json")});
  EXPECT_EQ(answer.status, 0) << answer.err;
  const json line = json::parse(std::ifstream(file("line.json")));
  double end = 0;
  for (const json& event : line["traceEvents"]) {
    if (event["ph"] == "X") end = std::max(end, event["ts"].get<double>() + event["dur"].get<double>());
  }
  EXPECT_DOUBLE_EQ(end, 5008.0) << "microseconds";
}

TEST_F(Sim, StepByStepAndInOneFormula) {
  for (const char* ranks : {"2", "5", "8", "16"}) {
    const std::string ops = std::string("world ") + ranks + "\nall all_reduce f32 100003\nall all_gather bf16 77\n";
    const std::vector<std::string> flat{"--flat", "50GB/s,1us", "--algorithm", "ring"};
    std::vector<std::string> steps = flat;
    steps.insert(steps.end(), {"--detail", "steps"});
    EXPECT_EQ(report(ops, flat)["predicted_ns"], report(ops, steps)["predicted_ns"]) << ranks;
  }
}

TEST_F(Sim, LaysATraceOverMoreRanksAndSaysHow) {
  const json laid = report(kTraining, {"--world-size", "64"});
  EXPECT_EQ(laid["simulation"]["ranks"], 64);
  EXPECT_EQ(laid["world_size"], 64);
  EXPECT_EQ(laid["simulation"]["assumed"][0],
            "64 ranks are 16 replicas of the 4 in the trace: rank j x 4 + r does what rank r does");
}

TEST_F(Sim, PutsAFaultIn) {
  const json faulty = report(kTraining, {"--world-size", "64", "--inject", "skip@9:dp/1"});
  ASSERT_FALSE(faulty["findings"].empty());
  EXPECT_EQ(faulty["findings"][0]["ranks"], json::array({9}));
}

TEST_F(Sim, RefusesWhatItIsNotMeantFor) {
  const auto error = [&](std::vector<std::string> options) {
    const Answer answer = sim(kTraining, std::move(options));
    EXPECT_EQ(answer.status, 2) << answer.out;
    return on_one_line(answer.err);
  };
  EXPECT_THAT(error({"--world-size", "63"}), HasSubstr("a multiple of 4"));
  EXPECT_THAT(error({"--flat", "50GB,1us"}), HasSubstr("expected a number with its unit"));
  EXPECT_THAT(error({"--inject", "lose@1:2"}), HasSubstr("there is no fault 'lose'"));
  EXPECT_THAT(error({"--algorithm", "ring"}), HasSubstr("need a network"));
  EXPECT_THAT(error({"--flat", "1GB/s,1us", "--algorithm", "star"}), HasSubstr("Expected one of ring"));
  EXPECT_THAT(error({"--cluster", "dgx-h100", "--world-size", "64"}), HasSubstr("give it 8 nodes"));
}

// One node says nothing of several: no figure, and what is missing.
TEST_F(Sim, WithoutAFigureForTheNetworkNothingIsToldOfSeveralNodes) {
  const std::string job = write("world 8\nall compute 1ms\nall all_reduce f32 1048576\n");
  for (const char* cluster : {R"({"gpu": "H100", "ranks_per_node": 8})",
                              R"({"library": "gloo", "ranks_per_node": 8, "local": {"rate": "10GB/s"}})"}) {
    const std::string node = write(cluster, "node.json");
    for (const std::vector<std::string>& asked : {std::vector<std::string>{"sim", job, "--world-size", "16"},
                                                  {"sim", job, "--world-size", "16", "--detail", "steps"},
                                                  {"predict", job, "--scale", "8,16"}}) {
      std::vector<std::string> arguments = asked;
      arguments.insert(arguments.end(), {"--cluster", node});
      const Answer answer = ddx(arguments);
      EXPECT_EQ(answer.status, 3) << answer.err;
      EXPECT_EQ(answer.out, "");
      for (const char* said : {"16 ranks need 2 nodes", "for the network between nodes", "has no figure",
                               R"("network": {"rate": "400Gb/s", "nics_per_node": 8})"}) {
        EXPECT_THAT(on_one_line(answer.err), HasSubstr(said));
      }
    }
    EXPECT_EQ(ddx({"sim", job, "--cluster", node}).status, 0) << "one node needs no network";
  }
  const std::string nodes = write(R"({"gpu": "H100", "ranks_per_node": 8, "nodes": 2})", "nodes.json");
  EXPECT_THAT(ddx({"sim", job, "--cluster", nodes}).err, HasSubstr("no figure for the network between nodes"));
  // A rack is one network of its own.
  const std::string rack =
      write(R"({"gpu": "GB200", "ranks_per_node": 4, "nodes": 4, "local": {"domain_nodes": 4}})", "rack.json");
  EXPECT_EQ(ddx({"predict", job, "--scale", "8,16", "--cluster", rack}).status, 0);
  EXPECT_EQ(ddx({"sim", job, "--cluster", rack, "--detail", "steps"}).status, 0);
  EXPECT_EQ(ddx({"predict", job, "--scale", "8,32", "--cluster", rack}).status, 3);
}

// Every option that takes a number, with everything that is none.
TEST_F(Sim, NumbersAreDecimalFiniteAndInRange) {
  const std::string job = write(kTraining), table = write("gpus,step_ms\n8,1\n", "t.csv");
  const std::vector<std::string> timed{"sim", job, "--flat", "1GB/s,1us"};
  const std::vector<std::string> scaled{"predict", job, "--flat", "1GB/s,1us", "--scale", "4"};
  struct Case {
    std::vector<std::string> command;
    const char* option;
    const char* before;  // the number
    const char* most;    // one more than it may be; empty: it has no end
  };
  const Case cases[] = {{timed, "--compute-scale", "", "4000.1"},
                        {timed, "--noise", "", "100.1"},
                        {timed, "--slow", "3=", "4000.1"},
                        {timed, "--world-size", "", "1048577"},
                        {timed, "--eager", "", ""},
                        {timed, "--seed", "", ""},
                        {timed, "--threads", "", "65"},
                        {scaled, "--batch", "", "1000000000001"}};
  for (const Case& c : cases) {
    for (const std::string& number :
         std::vector<std::string>{"nan", "inf", "-inf", "0x10", "-1", "1e999", "1.5x", "1,5", "one", " ", c.most}) {
      if (number.empty()) continue;
      std::vector<std::string> arguments = c.command;
      arguments.push_back(std::string(c.option) + "=" + c.before + number);
      if (std::string_view(c.option) == "--seed") arguments.emplace_back("--noise=1");
      const Answer answer = ddx(arguments);
      EXPECT_EQ(answer.status, 2) << ::testing::PrintToString(arguments);
      EXPECT_THAT(answer.err,
                  ::testing::AllOf(HasSubstr(c.option), HasSubstr(c.before + number), HasSubstr("expected")));
    }
  }
  EXPECT_EQ(ddx({"sim", job, "--flat", "1GB/s,1us", "--compute-scale", "1.5e0", "--slow", "3=.5"}).status, 0);
}

// What would change nothing where it stands.
TEST_F(Sim, NothingIsLeftOutInSilence) {
  const std::string job = write(kTraining), table = write("gpus,step_ms\n8,1\n16,1\n", "t.csv");
  const std::string runs = write("{\"runs\": []}", "runs.json");
  const std::vector<std::string> kUseless[] = {
      {"sim", job, "--slow", "3=2"},
      {"sim", job, "--noise", "5"},
      {"sim", job, "--compute-scale", "2"},
      {"sim", job, "--flat", "1GB/s,1us", "--seed", "3"},
      {"sim", job, "--map", "dp=data"},
      {"sim", job, "--describe-cluster", "dgx-h100"},
      {"predict", "--measured", table, table},
      {"predict", "--collectives", runs, job},
      {"predict", "--measured", table, "--strong"},
      {"predict", "--measured", table, "--plot", file("a.svg")},
      {"predict", "--collectives", runs, "--cluster", "dgx-h100"},
      {"predict", "--measured", table, "--scale", "8", job},
      {"predict", job, "--cluster", "dgx-h100"},
  };
  for (const std::vector<std::string>& arguments : kUseless) {
    EXPECT_EQ(ddx(arguments).status, 2) << ::testing::PrintToString(arguments);
  }
}

// An option that may be given more than once takes one word each time, not the PATH behind it.
TEST_F(Sim, OptionsLeaveThePathBehindThem) {
  const std::string job = write(kTraining);
  EXPECT_EQ(ddx({"sim", "--flat", "1GB/s,1us", "--slow", "3=2", job}).status, 0);
  EXPECT_EQ(ddx({"sim", "--world-size", "8", "--map", "dp=data", "--map", "tp=model", job}).status, 0);
  EXPECT_EQ(ddx({"sim", "--inject", "skip@1:1", job}).status, 1);
  EXPECT_EQ(ddx({"predict", "--scale", "8", "--flat", "1GB/s,1us", "--map", "dp=data", job}).status, 0);
}

TEST_F(Sim, HelpIsForWhoAsks) {
  using ::testing::Not;
  for (const char* command : {"sim", "predict"}) {
    const std::string help = ddx({command, "--help"}).out;
    EXPECT_THAT(help, Not(HasSubstr("Option Group"))) << command;
    EXPECT_THAT(help, Not(HasSubstr("TEXT"))) << "what to write there, not its type";
    EXPECT_THAT(help, Not(HasSubstr("UINT")));
    EXPECT_THAT(help, Not(HasSubstr("Needs:")));
    EXPECT_THAT(help, HasSubstr("Examples:\n  ddx " + std::string(command)));
    EXPECT_LT(help.find("--cluster"), help.find("--no-color")) << "what is its own comes first";
  }
  EXPECT_THAT(ddx({"predict", "--help"}).out,
              HasSubstr("text, json; with --scale also svg, with --measured sarif, junit, github"));
  EXPECT_THAT(on_one_line(ddx({"predict", write(kTraining)}).err), HasSubstr("needs one of these: --scale"));
}

TEST_F(Sim, WordsAgreeWithTheirNumbers) {
  EXPECT_THAT(sim("world 1\nall compute 1ms\n").out, HasSubstr("1 rank runs to its end, 1 operation\n"));
  EXPECT_THAT(sim(kTraining, {"--cluster", "dgx-h100", "--world-size", "64"}).err, HasSubstr("8 places (1 node of 8)"));
  EXPECT_THAT(sim(kTraining, {"--inject", "skip@1:7"}).err, HasSubstr("rank 1 has 3 operations"));
  EXPECT_THAT(sim("world 2\nall barrier\n", {"--inject", "skip@1:7"}).err, HasSubstr("rank 1 has 1 operation,"));
  // What changes nothing but times says so where none are told.
  const std::string in_times = "which shows in times alone: --flat or --cluster tell them";
  EXPECT_THAT(on_one_line(sim(kTraining, {"--inject", "delay=2ms@1:1"}).out), HasSubstr(in_times));
  EXPECT_EQ(on_one_line(sim(kTraining, {"--inject", "delay=2ms@1:1", "--flat", "1GB/s,1us"}).out).find(in_times),
            std::string::npos);
  const std::string one = write("world 1\nall compute 1ms\n", "one.ops");
  EXPECT_THAT(ddx({"predict", one, "--scale", "1", "--flat", "1GB/s,1us"}).out, HasSubstr("1 rank takes 1 ms a step"));
}

TEST_F(Sim, PredictsOtherNumbersOfRanks) {
  const std::vector<std::string> base{"predict", write(kTraining), "--flat", "1GB/s,1us", "--algorithm",
                                      "ring",    "--format",       "json",   "--batch",   "64"};
  const auto predicted = [&](std::vector<std::string> options) {
    options.insert(options.begin(), base.begin(), base.end());
    const Answer answer = ddx(options);
    EXPECT_EQ(answer.status, 0) << answer.err;
    return json::parse(answer.out);
  };
  const json weak = predicted({"--scale", "4,16", "--plot", file("plot.svg")});
  ASSERT_EQ(weak["rows"].size(), 2U);
  EXPECT_EQ(weak["rows"][0]["step_ns"], 5'008'000);
  // dp has 8 members now: 14 steps of 1 us and 250 bytes.
  EXPECT_EQ(weak["rows"][1]["step_ns"], 5'000'000 + 4'000 + 14 * 1'250);
  EXPECT_EQ(weak["rows"][1]["batch"], 256);
  for (const json& row : weak["rows"]) {
    EXPECT_EQ(row["compute_ns"].get<int>() + row["communication_ns"].get<int>() + row["bubble_ns"].get<int>() +
                  row["idle_ns"].get<int>() + row["unattributed_ns"].get<int>(),
              row["step_ns"].get<int>());
  }
  std::ostringstream drawn;
  drawn << std::ifstream(file("plot.svg")).rdbuf();
  EXPECT_THAT(drawn.str(), ::testing::AllOf(::testing::StartsWith("<svg "), ::testing::EndsWith("</svg>\n")));
  const json strong = predicted({"--scale", "4,16", "--strong"});
  // tp: two steps of 1 us and 250 of a quarter's 500 bytes.
  EXPECT_EQ(strong["rows"][1]["step_ns"], 1'250'000 + 2 * 1'250 + 14 * 1'250);
  EXPECT_EQ(strong["rows"][1]["batch"], 64);
}

// A rank of two, with 20 us of nothing between its kernels.
constexpr const char* kRecorded =
    "world 2\n0 record part\n0 compute 10us stream=7 start=0 end=10000\n"
    "0 all_reduce i8 4000 stream=9 start=10000 end=25000\n0 compute 10us stream=7 start=45000 end=55000\nabsent 1\n";

TEST_F(Sim, GapsOfARecordingAreNoComputations) {
  const json timed = report(kRecorded, {"--world-size", "2", "--flat", "1GB/s,1us", "--algorithm", "ring"});
  // The all_reduce takes 2 x (1 + 2) us here; 20 us of nothing stay.
  EXPECT_EQ(timed["predicted_ns"], 10'000 + 6'000 + 20'000 + 10'000);
  ASSERT_EQ(timed["rank_totals"].size(), 1U);
  EXPECT_EQ(timed["rank_totals"][0]["compute_ns"], 20'000);
  EXPECT_EQ(timed["rank_totals"][0]["communication_ns"], 6'000);
  EXPECT_EQ(timed["rank_totals"][0]["idle_ns"], 20'000);
}

TEST_F(Sim, HalfARecordedJobIsNoFault) {
  const Answer answer = sim(kRecorded);
  EXPECT_EQ(answer.status, 3) << answer.out;
  EXPECT_THAT(
      on_one_line(answer.out),
      ::testing::StartsWith("INCONCLUSIVE the evidence does not suffice to judge: this is a part of a job, whose "
                            "ranks wait for others: --world-size 2 lets them stand for all INFO rank 1 has no "
                            "record in what was given, and rank 0 waits for it in all_reduce"));
  EXPECT_THAT(answer.out, ::testing::Not(::testing::AnyOf(HasSubstr("ERROR"), HasSubstr("TORCH_"), HasSubstr("dump"))));
  EXPECT_EQ(sim("world 2\n0 all_reduce i8 4000\nabsent 1\n").status, 1) << "a program is all that there is";
}

TEST_F(Sim, CallsThatAreNotKnownHaveNoTime) {
  const std::string ops =
      "world 2\nall record part\nall compute 10us stream=7 start=0 end=10000\n"
      "all unknown f32 8 name=\"teleport\" stream=9 start=10000 end=20000\nall barrier stream=9 start=20000 "
      "end=21000\n";
  for (const std::vector<std::string>& network :
       {std::vector<std::string>{"--flat", "1GB/s,1us"}, {"--cluster", "dgx-h100"}}) {
    const Answer answer = sim(ops, network);
    EXPECT_EQ(answer.status, 3) << answer.out;
    EXPECT_THAT(on_one_line(answer.out), HasSubstr("2 of 4 calls have no time on another network: not recorded are the "
                                                   "kind of 2 teleport of ranks 0,1"));
    const json timed = report(ops, network);
    EXPECT_EQ(timed["simulation"]["outcome"], "completes") << "its order is judged";
    EXPECT_FALSE(timed.contains("predicted_ns") || timed.contains("rank_totals"));
    std::vector<std::string> predict{"predict", write(ops), "--scale", "2,4"};
    predict.insert(predict.end(), network.begin(), network.end());
    const Answer predicted = ddx(predict);
    EXPECT_EQ(predicted.status, 3);
    EXPECT_THAT(on_one_line(predicted.err), HasSubstr("teleport"));
    EXPECT_TRUE(predicted.out.empty());
  }
  EXPECT_EQ(sim(ops).status, 0) << "without a network nobody asked for a time";
  const Answer nothing = sim("world 2\nall record part\nall unknown f32 8 name=\"teleport\"\n");
  EXPECT_EQ(nothing.status, 3) << nothing.out;
  EXPECT_THAT(on_one_line(nothing.out), HasSubstr("none of its calls can be replayed"));
}

TEST_F(Sim, SaysWhereNothingTiesReplicasTogether) {
  const auto predicted = [&](const std::string& ops, const char* scale) {
    return ddx({"predict", write(ops), "--scale", scale, "--flat", "1GB/s,1us"}).out;
  };
  // No call at all; calls within the recorded ranks alone; a group of one rank, which is a group of all once it grows.
  for (const std::string& ops : std::vector<std::string>{
           std::string("world 1\nall compute 1ms\n"),
           std::string("world 4\n0,1 pg tp = 0,1\n2,3 pg tp = 2,3\nall compute 1ms\nall all_reduce f32 8 tp\n")}) {
    EXPECT_THAT(predicted(ops, "4,1024"), ::testing::StartsWith("Nothing ties the replicas together")) << ops;
    EXPECT_THAT(predicted(ops, "4,1024"), ::testing::Not(HasSubstr("of the ideal"))) << ops;
    EXPECT_THAT(predicted(ops, "4"), ::testing::HasSubstr(ops[6] == '1' ? "Nothing ties" : "4 ranks take")) << ops;
  }
  EXPECT_THAT(predicted("world 1\nall compute 1ms\nall all_reduce f32 8\n", "4,1024"), HasSubstr("of the ideal"));
  EXPECT_THAT(predicted(kTraining, "4,8"), HasSubstr("of the ideal"));
}

TEST_F(Sim, ABatchHasASampleForEachReplica) {
  const auto strong = [&](const char* batch, const char* scale) {
    return ddx({"predict", write(kTraining), "--scale", scale, "--flat", "1GB/s,1us", "--strong", "--batch", batch});
  };
  EXPECT_EQ(strong("10", "8,40").status, 0) << "ten replicas of four";
  const Answer more = strong("10", "8,1024");
  EXPECT_EQ(more.status, 2);
  EXPECT_THAT(on_one_line(more.err),
              ::testing::AllOf(HasSubstr("--batch 10"), HasSubstr("1,024 ranks"), HasSubstr("at most 40")));
}

TEST_F(Sim, ADrawingIsADrawing) {
  const std::vector<std::string> predict{"predict", write(kTraining), "--scale", "4,8", "--flat", "1GB/s,1us"};
  const auto with = [&](std::vector<std::string> options) {
    options.insert(options.begin(), predict.begin(), predict.end());
    return ddx(options);
  };
  const auto content = [&](const std::string& name) {
    std::ostringstream text;
    text << std::ifstream(file(name)).rdbuf();
    return text.str();
  };
  EXPECT_EQ(with({"-o", file("a.svg")}).status, 0);
  EXPECT_EQ(with({"--plot", file("b.svg")}).status, 0);
  EXPECT_THAT(content("a.svg"), ::testing::StartsWith("<svg "));
  EXPECT_EQ(content("a.svg"), content("b.svg"));
  EXPECT_EQ(with({"--format", "svg"}).out, content("b.svg"));
  EXPECT_EQ(with({"--format", "json", "-o", file("c.svg")}).status, 2);
  EXPECT_EQ(sim(kTraining, {"-o", file("c.svg")}).status, 2);
  EXPECT_EQ(ddx({"predict", "--measured", write("gpus,step_ms\n8,1\n", "t.csv"), "-o", file("c.svg")}).status, 2);
  EXPECT_EQ(ddx({"predict", "--measured", file("t.csv"), "--format", "svg"}).status, 2);
  EXPECT_FALSE(fs::exists(file("c.svg")));
}

// 17 million operations are run, and not kept one by one.
TEST_F(Sim, ATimelineIsWholeOrNone) {
  const std::string job = write("world 2\nrepeat 8500000\nall barrier\nend\n");
  const Answer answer = ddx({"sim", job, "--flat", "1GB/s,1us", "--timeline", file("line.json")});
  EXPECT_EQ(answer.status, 2);
  EXPECT_THAT(on_one_line(answer.err), HasSubstr("16,000,000"));
  EXPECT_FALSE(fs::exists(file("line.json")));
}

// What is to be typed next can be pasted, and is taken.
TEST_F(Sim, WhatToTypeNextCanBePasted) {
  const std::string ops =
      "world 4\n0,1 pg \"rank 0 stream 0x5=1\" = 0,1\n0,1 all_reduce f32 8 \"rank 0 stream 0x5=1\"\n";
  EXPECT_THAT(on_one_line(sim(ops, {"--world-size", "8"}).err), HasSubstr("--map 'rank 0 stream 0x5=1=data' ("));
  EXPECT_EQ(sim(ops, {"--world-size", "8", "--map", "rank 0 stream 0x5=1=data"}).status, 0);
}

// In the words of every other report: the call, its group by the name that people know, and its number there.
TEST_F(Sim, WaitsAreToldAsElsewhere) {
  const std::string ops = "world 2\nall pg \"0\" = 0,1 desc=default_pg\n0 broadcast f32 1024 root=1 \"0\"\n";
  const Answer answer = ddx({"predict", write(ops), "--scale", "2", "--flat", "1GB/s,1us"});
  EXPECT_THAT(on_one_line(answer.err),
              HasSubstr("waiting: rank 0 in broadcast f32 x 1,024 (group default_pg, seq 1) for rank 1"));
}

TEST_F(Sim, RefusesWhatIsNoPrediction) {
  const auto error = [&](const std::string& ops, std::vector<std::string> options, int status = 3) {
    options.insert(options.begin(), {"predict", write(ops)});
    const Answer answer = ddx(options);
    EXPECT_EQ(answer.status, status) << answer.out;
    return on_one_line(answer.err);
  };
  const std::vector<std::string> flat{"--scale", "4,8", "--flat", "1GB/s,1us"};
  EXPECT_THAT(error("world 4\n", flat), HasSubstr("nothing to predict from"));
  EXPECT_THAT(
      error("world 4\nall all_reduce f32 ?\n", flat),
      ::testing::AllOf(HasSubstr("no time can be given on 4 ranks: all_reduce 1 of rank 0 cannot be priced: its "
                                 "count or type is not known"),
                       ::testing::Not(HasSubstr("run to their end"))));
  EXPECT_THAT(error("world 4\n0-2 all_reduce f32 8\n", flat), HasSubstr("do not run to their end"));
  EXPECT_THAT(error(kTraining, {"--scale", "4,8"}, 2), HasSubstr("needs a network"));
  EXPECT_THAT(error(kTraining, {"--scale", "4;8", "--flat", "1GB/s,1us"}, 2), HasSubstr("expected numbers of ranks"));
}

}  // namespace
}  // namespace ddx::cli
