// `ddx sim` on sets of files: two of one rank, of unlike jobs, with ranks that no file has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/run_ddx.h"
#include "tests/support/chakra_bytes.h"
#include "tests/support/recorder_json.h"
#include "tests/support/scratch_folder.h"

namespace ddx::cli {
namespace {

using ddx::testing::recorder_dump;
using nlohmann::json;
using ::testing::HasSubstr;

// Files of a job by name, and what `ddx sim` says of them all.
struct FileSet {
  const char* what;
  std::vector<std::pair<std::string, std::string>> files;
  int status;
  std::vector<const char*> said;
};

class SimSets : public ::testing::Test {
 protected:
  Answer run(const FileSet& set, std::vector<std::string> options = {}) const {
    const ddx::testing::ScratchFolder folder;
    for (const auto& [name, text] : set.files) folder.write(name, text);
    options.insert(options.begin(), {"sim", folder.path()});
    return ddx(options);
  }
  void expect(const FileSet& set) const {
    const Answer answer = run(set, {"--verbose"});
    EXPECT_EQ(answer.status, set.status) << set.what << '\n' << answer.out << answer.err;
    for (const char* said : set.said) EXPECT_THAT(on_one_line(answer.out + answer.err), HasSubstr(said)) << set.what;
  }
};

std::string profile(int rank, int world) {
  json members = json::array();
  for (int member = 0; member < world; ++member) members.push_back(member);
  const json args = {{"Collective name", "allreduce"},
                     {"In msg nelems", 8},
                     {"Out msg nelems", 8},
                     {"dtype", "Float"},
                     {"Group size", world},
                     {"Process Group Ranks", members.dump()},
                     {"Process Group Name", "0"},
                     {"Process Group Description", "default_pg"}};
  return json{{"distributedInfo", {{"backend", "nccl"}, {"rank", rank}, {"world_size", world}}},
              {"traceEvents", json::array({{{"ph", "X"},
                                            {"cat", "kernel"},
                                            {"name", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)"},
                                            {"pid", 0},
                                            {"tid", 7},
                                            {"ts", 1000},
                                            {"dur", 50},
                                            {"args", args}}})}}
      .dump();
}

std::string one_reduction() {
  using namespace ddx::testing::chakra;
  return kHead + collective(0, 0, 1024);
}

// Each file is named once, however many there are.
TEST_F(SimSets, ManyFilesOfOneRank) {
  const FileSet three{
      "profiles", {{"a.json", profile(0, 1)}, {"b.json", profile(0, 1)}, {"c.json", profile(0, 1)}}, 1, {}};
  const Answer answer = run(three);
  EXPECT_EQ(answer.status, 1);
  const std::string told = on_one_line(answer.out.substr(0, answer.out.find("  what")));
  EXPECT_THAT(told, HasSubstr("rank 0 is claimed by several records: "));
  for (const char* file : {"/a.json", "/b.json", "/c.json"}) {
    EXPECT_EQ(told.find(file), told.rfind(file)) << told;
    EXPECT_NE(told.find(file), std::string::npos) << told;
  }
}

// analyze runs nothing, and does not pass over it either.
TEST_F(SimSets, AnalyzeTellsOfTwoRecordsToo) {
  const char* kOps = "world 2\nabsent 1\n0 all_reduce f32 8\n";
  const std::vector<std::pair<std::string, std::string>> sets[] = {
      {{"a.ops", kOps}, {"b.ops", kOps}},
      {{"a.json", profile(0, 2)}, {"b.json", profile(0, 2)}, {"c.json", profile(1, 2)}},
      {{"a/job.0.et", one_reduction()}, {"b/job.0.et", one_reduction()}, {"a/job.1.et", one_reduction()}}};
  for (const auto& files : sets) {
    const ddx::testing::ScratchFolder folder;
    for (const auto& [name, text] : files) folder.write(name, text);
    const Answer answer = ddx({"analyze", folder.path()});
    EXPECT_EQ(answer.status, 3) << answer.out;
    EXPECT_THAT(on_one_line(answer.out), HasSubstr("rank 0 has two records")) << files.front().first;
  }
}

// A set of files that cannot be one job is told before anything is run, whatever the format.
TEST_F(SimSets, TwoFilesOfOneRank) {
  const char* kOps = "world 2\nabsent 1\n0 all_reduce f32 8\n";
  expect({"ops",
          {{"a.ops", kOps}, {"b.ops", kOps}, {"c.ops", "world 2\nabsent 0\n1 all_reduce f32 8\n"}},
          1,
          {"rank-duplicate", "rank 0 is claimed by two records", "a.ops and", "b.ops"}});
  expect(
      {"dumps",
       {{"a/rank_0.json", recorder_dump(2)}, {"b/rank_0.json", recorder_dump(2)}, {"a/rank_1.json", recorder_dump(2)}},
       1,
       {"rank-duplicate", "rank 0 is claimed by two records", "a/rank_0.json and", "b/rank_0.json"}});
  expect({"profiles",
          {{"a.json", profile(0, 2)}, {"b.json", profile(0, 2)}, {"c.json", profile(1, 2)}},
          1,
          {"rank-duplicate", "rank 0 is claimed by two records"}});
  expect({"Chakra",
          {{"a/job.0.et", one_reduction()}, {"b/job.0.et", one_reduction()}, {"a/job.1.et", one_reduction()}},
          1,
          {"rank-duplicate", "rank 0 is claimed by two records", "a/job.0.et and"}});
}

TEST_F(SimSets, FilesOfUnlikeWorlds) {
  expect({"ops",
          {{"a.ops", "world 3\nabsent 1,2\n0 all_reduce f32 8\n"},
           {"b.ops", "world 3\nabsent 0,2\n1 all_reduce f32 8\n"},
           {"c.ops", "world 4\nabsent 0,1,3\n2 all_reduce f32 8\n"}},
          1,
          {"world-size-disagree", "do not agree on the world size: 3 by ranks 0,1 and 4 by rank 2"}});
  expect({"dumps",
          {{"rank_0.json", recorder_dump(3)}, {"rank_1.json", recorder_dump(3)}, {"rank_2.json", recorder_dump(4)}},
          1,
          {"world-size-disagree", "3 by ranks 0,1 and 4 by rank 2"}});
  expect({"profiles",
          {{"a.json", profile(0, 3)}, {"b.json", profile(1, 3)}, {"c.json", profile(2, 4)}},
          1,
          {"world-size-disagree", "3 by ranks 0,1 and 4 by rank 2"}});
  expect(
      {"a rank beyond its world", {{"a.json", profile(0, 2)}, {"b.json", profile(2, 2)}}, 1, {"rank-range", "rank 2"}});
}

TEST_F(SimSets, RanksThatNoFileHas) {
  expect(
      {"ops",
       {{"a.ops", "world 3\nabsent 1,2\n0 all_reduce f32 8\n"}, {"b.ops", "world 3\nabsent 0,1\n2 all_reduce f32 8\n"}},
       1,
       {"rank-missing",
        "rank 1 has no record in what was given, and ranks 0,2 wait for it in all_reduce f32 x 8 (group "
        "pg0, seq 1)"}});
  expect({"dumps",
          {{"rank_0.json", recorder_dump(3)}, {"rank_2.json", recorder_dump(3)}},
          3,
          {"rank-missing", "rank 1 has no record in what was given, and ranks 0,2 wait for it in all_reduce f32 x 8"}});
  expect({"profiles",
          {{"a.json", profile(0, 3)}, {"b.json", profile(2, 3)}},
          3,
          {"rank-missing", "rank 1 has no record in what was given"}});
  expect(
      {"Chakra",
       {{"job.0.et", one_reduction()}, {"job.2.et", one_reduction()}},
       1,
       {"rank-missing", "rank 1 has no record in what was given, and ranks 0,2 wait for it in all_reduce u8 x 1,024"}});
  // Nobody calls it.
  const Answer apart = run({"apart", {{"a.ops", "world 3\nabsent 1\npg tp = 0,2\n0,2 all_reduce f32 8 tp\n"}}, 0, {}});
  EXPECT_EQ(apart.status, 0) << apart.out;
  EXPECT_THAT(on_one_line(apart.out),
              HasSubstr("rank 1 has no record in what was given; no call that is run needs it"));
}

// How often a report says that something of a rank is not there.
int times_told(const std::string& text) {
  int times = 0;
  for (const char* words :
       {"no record", "no file", "no row", "no trace", "no dump", "nothing from", "could not be used"}) {
    for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++times;
  }
  return times;
}

TEST_F(SimSets, ARankThatNoFileHasIsToldOnce) {
  const std::string table = "rank,op,count\n0,all_reduce,8\n2,all_reduce,8\n";
  const FileSet sets[] = {
      {"ops", {{"a.ops", "world 3\nabsent 1\n0,2 all_reduce f32 8\n"}}, 1, {}},
      {"dumps", {{"rank_0.json", recorder_dump(3)}, {"rank_2.json", recorder_dump(3)}}, 3, {}},
      {"profiles", {{"a.json", profile(0, 3)}, {"b.json", profile(2, 3)}}, 3, {}},
      {"Chakra", {{"job.0.et", one_reduction()}, {"job.2.et", one_reduction()}}, 1, {}},
      {"Chakra, lost", {{"job.0.et", one_reduction()}, {"job.1.et", ""}, {"job.2.et", one_reduction()}}, 1, {}},
      {"a table", {{"calls.csv", table}}, 1, {}},
  };
  for (const FileSet& set : sets) {
    const Answer answer = run(set);
    EXPECT_EQ(answer.status, set.status) << set.what << '\n' << answer.out;
    EXPECT_EQ(times_told(on_one_line(answer.out)), 1) << set.what << '\n' << answer.out;
    EXPECT_THAT(on_one_line(answer.out), HasSubstr("ranks 0,2 wait for it in all_reduce")) << set.what;
  }
}

// Sends of this format end locally: a ring of them is no hazard. Receives first is a deadlock in any model.
TEST_F(SimSets, RingsOfSendsThatEndLocally) {
  using namespace ddx::testing::chakra;
  const auto ring = [&](bool send_first) {
    FileSet set{"ring", {}, 0, {}};
    for (std::uint64_t r = 0; r < 4; ++r) {
      const std::string out = send(send_first ? 0 : 1, (r + 1) % 4, 64, send_first ? "" : on(0));
      const std::string in = receive(send_first ? 1 : 0, (r + 3) % 4, 64, send_first ? on(0) : "");
      set.files.emplace_back("job." + std::to_string(r) + ".et",
                             kHead + (send_first ? out + in : in + out) + node(2, 4, on(1)));
    }
    return set;
  };
  const Answer fine = run(ring(true));
  EXPECT_EQ(fine.status, 0) << fine.out;
  EXPECT_EQ(fine.out.find("p2p-hazard"), std::string::npos) << fine.out;
  EXPECT_THAT(fine.out, HasSubstr("COMPLETES"));
  // Held to the receive, above a limit, it is one; below, it is said what would be above.
  for (const char* limit : {"0", "63"}) {
    const Answer waits = run(ring(true), {"--eager", limit});
    EXPECT_EQ(waits.status, 1) << waits.out;
    EXPECT_THAT(waits.out, HasSubstr("p2p-cycle")) << limit;
  }
  const Answer warned = run(ring(true), {"--eager", "64"});
  EXPECT_EQ(warned.status, 0) << warned.out;
  EXPECT_THAT(warned.out, HasSubstr("p2p-hazard, confidence high, model rendezvous"));
  const Answer held = run(ring(false));
  EXPECT_EQ(held.status, 1) << held.out;
  EXPECT_THAT(held.out, HasSubstr("p2p-cycle"));
  // Where sends are not said to end locally, that they return at once is what saves such a ring.
  const std::string calls =
      "world 2\n0 send f32 8 to 1 async stream=1\n0 recv f32 8 from 1 stream=2\n1 send f32 8 to 0 async stream=1\n1 "
      "recv f32 8 from 0 stream=2\n";
  const auto hazard = [this](const std::string& ops) {
    return run({"calls", {{"job.ops", ops}}, 0, {}}).out.find("p2p-hazard") != std::string::npos;
  };
  EXPECT_TRUE(hazard(calls));
  EXPECT_FALSE(hazard(calls + "all record local_sends\n"));
}

}  // namespace
}  // namespace ddx::cli
