// `ddx sim` on sets of Chakra traces, whole and broken. Where something of a set is missing, cut or twice there, other
// simulators mostly exit with 0 and a time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli/run_ddx.h"
#include "tests/support/chakra_bytes.h"
#include "tests/support/scratch_folder.h"

namespace ddx::cli {
namespace {

using namespace ddx::testing::chakra;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

using Set = std::map<int, std::string>;  // by rank: its file

class SimChakra : public ::testing::Test {
 protected:
  std::string written(const Set& set) const {
    std::filesystem::remove_all(folder_.path("set"));
    std::filesystem::create_directory(folder_.path("set"));
    for (const auto& [rank, text] : set) folder_.write("set/job." + std::to_string(rank) + ".et", text);
    return folder_.path("set");
  }
  Answer sim(const Set& set, std::vector<std::string> options = {}) const {
    options.insert(options.begin(), {"sim", written(set), "--flat", "1GB/s,1us", "--algorithm", "ring"});
    return ddx(options);
  }
  std::int64_t predicted_ns(const Set& set) const {
    return json::parse(sim(set, {"--format", "json"}).out).at("predicted_ns").get<std::int64_t>();
  }

 private:
  const ddx::testing::ScratchFolder folder_;
};

Set all(int ranks, const std::string& nodes) {
  Set set;
  for (int rank = 0; rank < ranks; ++rank) set[rank] = kHead + nodes;
  return set;
}

// Each sends to the next and receives from the one before.
Set ring(std::uint64_t ranks) {
  Set set;
  for (std::uint64_t rank = 0; rank < ranks; ++rank) {
    set[static_cast<int>(rank)] =
        kHead + send(0, (rank + 1) % ranks, 1000) + receive(1, (rank + ranks - 1) % ranks, 1000);
  }
  return set;
}

Set without(Set set, int rank) {
  set.erase(rank);
  return set;
}
Set with(Set set, int rank, const std::string& nodes) {
  set[rank] = kHead + nodes;
  return set;
}
Set with_bytes(Set set, int rank, const std::string& text) {
  set[rank] = text;
  return set;
}

// 1 us and 1,000 bytes at 1 GB/s a step, 6 steps of a quarter.
TEST_F(SimChakra, WholeSetsRunAndSayWhatWasAssumed) {
  const Answer answer = sim(all(4, collective(0, 0, 4000)));
  EXPECT_EQ(answer.status, 0) << answer.out;
  EXPECT_THAT(on_one_line(answer.out), HasSubstr("COMPLETES 4 ranks run to their end, 4 operations, in 12 us"));
  EXPECT_THAT(on_one_line(answer.out),
              HasSubstr("the job has 4 ranks, those with a file: nothing in the files says how many there are"));
  EXPECT_THAT(sim(all(7, collective(0, 0, 4000)), {"--world-size", "7"}).out, HasSubstr("COMPLETES"));
  EXPECT_THAT(sim(all(1, collective(0, 0, 4000)), {"--world-size", "1"}).out, HasSubstr("COMPLETES"));
  EXPECT_THAT(sim(all(1, collective(0, 0, 4000)), {"--world-size", "4"}).out, HasSubstr("in 12 us"));
}

TEST_F(SimChakra, NamesWhatOtherSimulatorsPassOver) {
  struct Row {
    const char* what;
    Set set;
    int status;
    std::vector<const char*> said;
  };
  const std::string call = collective(1, 0, 1 << 20);
  const std::string group = text_attribute("pg_name", "17"), other_group = text_attribute("pg_name", "18");
  const std::string noted = node(9, 1, bytes(8, bytes(1, R"([{"pg_name": "17", "ranks": [0, 1, 2, 3]}])")));
  const std::string whole = kHead + node(0, 4, micros(10)) + call;
  const Row rows[] = {
      {"the last file is missing", without(all(8, call), 7), 3, {"ranks 0-6", "is there no file for rank 7?"}},
      {"the first",
       without(all(8, call), 0),
       1,
       {"rank 0 has no record in what was given, and ranks 1-7 wait for it in all_reduce u8 x 1,048,576"}},
      {"one in the middle",
       without(all(8, call), 3),
       1,
       {"rank 3 has no record in what was given, and ranks 0-2,4-7 wait for it"}},
      {"all but one", all(1, call), 3, {"the only file is that of rank 0"}},
      {"one that others send to",
       without(ring(8), 7),
       1,
       {"rank 7 has no record in what was given, and ranks 0,6 wait for it in send u8 x 1,000 to 7",
        "job.6.et: rank 6: send"}},
      {"a member of a group that is listed",
       without(all(4, noted + collective(1, 0, 8, group)), 3),
       1,
       {"rank 3 has no record in what was given, and ranks 0-2 wait for it in all_reduce u8 x 8 (group 17, seq 1)"}},
      {"a peer that nobody is",
       with(ring(4), 3, send(0, 12, 8)),
       1,
       {"rank 12 has no record in what was given, and rank 3 waits for it in send u8 x 8 to 12"}},
      {"groups that nobody lists",
       with(all(4, collective(1, 0, 8, group)), 3, collective(1, 0, 8, other_group)),
       3,
       {"rank 3: node n1 (all_reduce) is of group 18, which no file describes and no other rank uses"}},
      {"an empty file", with_bytes(all(8, call), 3, ""), 1, {"the file of rank 3 could not be used", "empty file"}},
      {"garbage",
       with_bytes(all(8, call), 7, "garbage\xff\xff"),
       1,
       {"the file of rank 7 could not be used", "expected the metadata of a Chakra execution trace"}},
      {"no node",
       with_bytes(all(8, call), 3, kHead),
       1,
       {"the file of rank 3 could not be used", "expected a node of a Chakra execution trace"}},
      {"a cut file",
       with_bytes(all(8, call), 3, whole.substr(0, whole.size() - 5)),
       3,
       {"job.3.et: rank 3: what begins at byte", "is no whole node: 1 nodes before it were read"}},
      {"an id twice",
       with(all(4, call), 3, call + node(1, 4, micros(50'000))),
       3,
       {"job.3.et: rank 3: several nodes have the id 1"}},
      {"a dependency on nothing",
       with(all(4, call), 3, collective(1, 0, 1 << 20, on(77))),
       3,
       {"job.3.et: rank 3: nodes depend on such as are not in the file", "node 1 on 77"}},
      {"a circle of dependencies",
       with(all(4, call), 3, node(0, 4, micros(10) + on(1)) + collective(1, 0, 1 << 20, on(0))),
       1,
       {"job.3.et depends on itself: node 0 waits for 1 other that waits for it"}},
      {"less than nothing",
       with(all(4, call), 3, collective(1, 0, static_cast<std::uint64_t>(-5))),
       3,
       {"job.3.et: rank 3: node 1", "expected a comm_size of 0 or more"}},
      {"a collective of no known kind",
       with(all(4, call), 3, collective(1, 42, 8)),
       3,
       {"job.3.et: rank 3: node 1: a collective of comm_type 42", "expected 0 (all_reduce) to 9 (barrier)"}},
      {"a send to nobody",
       with(all(4, call), 3, node(1, 5, attribute("comm_size", 9, 8))),
       3,
       {"job.3.et: rank 3: node 1", "expected comm_dst or comm_src"}},
      {"no durations",
       all(4, node(0, 4, attribute("num_ops", 13, 1'000'000)) + collective(1, 0, 8, on(0))),
       3,
       {"rank 0: computation 'n0': how long it takes (and of 3 more) is not known: no time can be predicted"}},
      {"a rank misses the only call",
       with(all(4, call), 3, node(0, 4, micros(1))),
       1,
       {"rank 3 never called all_reduce u8 x 1,048,576", "ranks 0-2 wait for it"}},
      {"files without an operation", all(2, node(0, 1, "")), 1, {"2 programs hold no operation at all"}},
  };
  for (const Row& row : rows) {
    const Answer answer = sim(row.set);
    EXPECT_EQ(answer.status, row.status) << row.what << '\n' << answer.out;
    for (const char* said : row.said) EXPECT_THAT(on_one_line(answer.out), HasSubstr(said)) << row.what;
    EXPECT_THAT(answer.out, Not(HasSubstr("COMPLETES"))) << row.what;
    for (const char* foreign : {"crashed", "TORCH_FR", "dump of"}) {
      EXPECT_THAT(answer.out, Not(HasSubstr(foreign))) << row.what << ": a simulator's input never crashed";
    }
  }
}

// Faults of the programs, as in the ops notation: who, which call of which group, what against what, and who waits.
TEST_F(SimChakra, NamesWhoMakesAnotherCall) {
  const std::string reduce = collective(1, 0, 1 << 20), idle = node(0, 4, micros(1));
  const std::string then_gather = collective(2, 2, 8, on(1));
  const std::string notes = node(9, 1,
                                 bytes(8, bytes(1, R"([{"pg_name": "17", "ranks": [0, 1, 2, 3, 4, 5, 6, 7]}, )"
                                                   R"({"pg_name": "18", "ranks": [0, 1, 2, 3, 4, 5, 6, 7]}])")));
  const auto in = [](std::uint64_t id, const char* group, const std::string& rest = {}) {
    return collective(id, 0, 8, text_attribute("pg_name", group) + rest);
  };
  const auto tag = [](std::uint64_t value) { return attribute("comm_tag", 9, value); };
  struct Row {
    const char* what;
    Set set;
    std::vector<const char*> said;
  };
  const Row rows[] = {
      {"half the size",
       with(all(8, reduce), 3, collective(1, 0, 1 << 19)),
       {"rank 3 and ranks 0-2,4-7 disagree on the size: all_reduce u8 x 524,288 against all_reduce u8 x 1,048,576 "
        "(group world, seq 1)"}},
      {"64 times the size",
       with(all(8, reduce), 3, collective(1, 0, 1 << 26)),
       {"rank 3 and ranks 0-2,4-7 disagree on the size: all_reduce u8 x 67,108,864 against all_reduce u8 x 1,048,576 "
        "(group world, seq 1)"}},
      {"all-gather",
       with(all(8, reduce), 3, collective(1, 2, 1 << 20)),
       {"rank 3 and ranks 0-2,4-7 disagree on the operation: all_gather u8 x 1,048,576 against all_reduce u8 x "
        "1,048,576 (group world, seq 1)"}},
      {"broadcast",
       with(all(8, reduce), 3, collective(1, 5, 1 << 20)),
       {"rank 3 and ranks 0-2,4-7 disagree on the operation: broadcast u8 x 1,048,576 against all_reduce u8 x "
        "1,048,576 (group world, seq 1)"}},
      {"the last one missed",
       with(all(8, reduce + then_gather), 3, reduce),
       {"rank 3 never called all_gather u8 x 8 (group world, seq 2): ranks 0-2,4-7 wait for it"}},
      {"two swapped",
       with(all(8, reduce + then_gather), 3, collective(1, 2, 8) + collective(2, 0, 1 << 20, on(1))),
       {"rank 3 swapped two operations: all_gather u8 x 8 comes before all_reduce u8 x 1,048,576",
        "who rank 3; ranks 0-2,4-7 wait"}},
      {"swapped over two groups",
       with(all(8, notes + in(1, "17") + in(2, "18", on(1))), 3, notes + in(1, "18") + in(2, "17", on(1))),
       {"rank 3 uses its groups in another order: it is in all_reduce u8 x 8 (group 18, seq 1) while the others wait "
        "for it in all_reduce u8 x 8 (group 17, seq 1)",
        "who rank 3; ranks 0-2,4-7 wait"}},
      {"a send without its receive",
       with(all(8, idle), 3, send(1, 4, 1024)),
       {"rank 4 never posts the receive that meets send u8 x 1,024 to 4 (group world, seq 1): rank 3 waits in it"}},
      {"a receive without its send",
       with(all(8, idle), 3, receive(1, 4, 1024)),
       {"rank 4 never posts the send that meets recv u8 x 1,024 from 4 (group world, seq 1): rank 3 waits in it"}},
      {"sizes of a send and its receive",
       with(with(all(8, idle), 3, send(1, 4, 1024)), 4, receive(1, 3, 512)),
       {"what ranks 3 and 4 exchange does not fit: send u8 x 1,024 to 4 against recv u8 x 512 from 3 (group world)"}},
      {"tags of a send and its receive",
       with(with(all(8, idle), 3, send(1, 4, 1024, tag(1))), 4, receive(1, 3, 1024, tag(2))),
       {"rank 4 receives with tag 2 what rank 3 sends with tag 1 (group world)"}},
  };
  for (const Row& row : rows) {
    const Answer answer = sim(row.set, {"--world-size", "8"});
    EXPECT_EQ(answer.status, 1) << row.what << '\n' << answer.out;
    for (const char* said : row.said) EXPECT_THAT(on_one_line(answer.out), HasSubstr(said)) << row.what;
  }
}

// All receive first. That all send first is no fault here: a send of this format ends locally.
TEST_F(SimChakra, CirclesOfReceivesAreShown) {
  Set receives, sends = ring(8);
  for (std::uint64_t r = 0; r < 8; ++r) {
    receives[static_cast<int>(r)] = kHead + receive(0, (r + 7) % 8, 1024) + send(1, (r + 1) % 8, 1024, on(0));
    sends[static_cast<int>(r)] = kHead + send(0, (r + 1) % 8, 1024) + receive(1, (r + 7) % 8, 1024, on(0));
  }
  const Answer answer = sim(receives, {"--world-size", "8"});
  EXPECT_EQ(answer.status, 1) << answer.out;
  EXPECT_THAT(on_one_line(answer.out), HasSubstr("ranks 0-7 wait for each other in a circle of sends and receives"));
  EXPECT_THAT(on_one_line(answer.out), HasSubstr("rank 0 waits in recv u8 x 1,024 from 7 (group world) for rank 7"));
  EXPECT_EQ(sim(sends, {"--world-size", "8"}).status, 0);
}

TEST_F(SimChakra, WithoutDurationsOrdersAreStillChecked) {
  const Set set = all(4, node(0, 4, attribute("num_ops", 13, 1'000'000)) + collective(1, 0, 8, on(0)));
  const Answer answer = ddx({"sim", written(set)});
  EXPECT_EQ(answer.status, 0) << answer.out;
  EXPECT_THAT(answer.out, ::testing::StartsWith("COMPLETES"));
  EXPECT_THAT(answer.out, Not(HasSubstr("Time:")));
  EXPECT_EQ(ddx({"predict", written(set), "--scale", "4,8", "--flat", "1GB/s,1us"}).status, 3);
}

TEST_F(SimChakra, PredictionsAreOfWholeSets) {
  const auto predict = [this](const Set& set) {
    return ddx({"predict", written(set), "--scale", "8,16", "--flat", "1GB/s,1us"});
  };
  EXPECT_EQ(predict(ring(8)).status, 0);
  const Answer answer = predict(without(ring(8), 7));
  EXPECT_EQ(answer.status, 3);
  EXPECT_THAT(on_one_line(answer.err), HasSubstr("rank 7 has no record in what was given"));
}

TEST_F(SimChakra, TablesOfCallsLackRanksInTheSameWay) {
  const std::string folder = written({});
  std::ofstream(folder + "/calls.csv") << "rank,op,count\n0,all_reduce,8\n1,all_reduce,8\n3,all_reduce,8\n";
  const Answer answer = ddx({"sim", folder});
  EXPECT_EQ(answer.status, 1) << answer.out;
  EXPECT_THAT(on_one_line(answer.out),
              HasSubstr("rank 2 has no record in what was given, and ranks 0,1,3 wait for it"));
}

// Hand-solved; no collective takes part.
TEST_F(SimChakra, CpuAndGpuRunBesideEachOther) {
  const auto alone = [this](const std::string& nodes) { return predicted_ns(all(2, nodes)); };
  EXPECT_EQ(alone(node(0, 4, micros(1000) + on_cpu()) + node(1, 4, micros(1000))), 1'000'000);
  EXPECT_EQ(alone(node(0, 4, micros(1000) + on_cpu()) + node(1, 4, micros(1000) + on(0))), 2'000'000);
  EXPECT_EQ(alone(node(0, 4, micros(1000)) + node(1, 4, micros(1000))), 2'000'000) << "one stream";
  const auto stream = [](std::uint64_t number) { return attribute("stream", 9, number); };
  EXPECT_EQ(alone(node(0, 4, micros(1000) + stream(7)) + node(1, 4, micros(1000) + stream(20))), 1'000'000);
  // On the CPU 0 takes until 3 ms and 3 until 4, as 2 is done at 2 ms; 4 keeps stream 7 from 1 ms to 5.
  EXPECT_EQ(alone(node(0, 4, micros(3000) + on_cpu()) + node(1, 4, micros(1000) + stream(7)) +
                  node(2, 4, micros(1000) + stream(20) + on(1)) + node(3, 4, micros(1000) + on_cpu() + on(2)) +
                  node(4, 4, micros(4000) + stream(7))),
            5'000'000);
}

// A call of 2,000 bytes on two ranks takes 2 x (1 + 1) us by the ring.
TEST_F(SimChakra, CallsRunBesideComputation) {
  const std::string after = node(3, 4, micros(10) + on(1));
  // 5 us, then the call beside 2 us more, then 10 us once the call is over.
  EXPECT_EQ(predicted_ns(
                all(2, node(0, 4, micros(5)) + collective(1, 0, 2000, on(0)) + node(2, 4, micros(2) + on(0)) + after)),
            5'000 + 4'000 + 10'000);
  EXPECT_EQ(predicted_ns(
                all(2, node(0, 4, micros(5)) + collective(1, 0, 2000, on(0)) + node(2, 4, micros(9) + on(0)) + after)),
            5'000 + 9'000 + 10'000);
}

// pg_name is written by hand in some sets.
TEST_F(SimChakra, AGroupThatOneRankAloneSpeaksOfIsNamedAndNobodyBlamed) {
  const auto in = [](const std::string& group) { return collective(2, 0, 4000, text_attribute("pg_name", group)); };
  for (const char* others : {"0", "", "5"}) {
    const Set set = with(all(4, in(others)), 3, in("7"));
    const Answer answer = sim(set);
    EXPECT_EQ(answer.status, 3) << answer.out;
    EXPECT_THAT(on_one_line(answer.out),
                HasSubstr("job.3.et: rank 3: node n2 (all_reduce) is of group 7, which no file describes"));
    EXPECT_THAT(answer.out, Not(HasSubstr("never called"))) << answer.out;
    EXPECT_EQ(ddx({"predict", written(set), "--scale", "4,8", "--flat", "1GB/s,1us"}).status, 3);
  }
}

}  // namespace
}  // namespace ddx::cli
