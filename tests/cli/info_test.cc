#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/report/inventory.h"
#include "traces/formats/ops.h"

namespace ddx::cli {
namespace {

using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

TEST(Inventory, CountsOperationsByGroupAndKind) {
  const Evidence evidence = formats::read_ops(
      "world 4\npg tp = 0,1\n0-3 all_reduce f32 8 pg0\n0-3 all_reduce f32 8 pg0\n0-1 all_gather f32 8 tp\n3 barrier "
      "pg0\n");
  const Inventory inventory = take_inventory(evidence);
  ASSERT_EQ(inventory.groups.size(), 2U);
  const GroupInventory& world = inventory.groups[0];
  EXPECT_EQ(world.name, "pg0");
  EXPECT_EQ(world.size, 4U);
  EXPECT_THAT(world.operations, UnorderedElementsAre(Pair("all_reduce", 8), Pair("barrier", 1)));
  EXPECT_THAT(inventory.groups[1].operations, UnorderedElementsAre(Pair("all_gather", 2)));
  EXPECT_EQ(inventory.operations, 11U);
  EXPECT_EQ(inventory.records, 4U);
}

TEST(Inventory, LoopsCountAsOftenAsTheyRun) {
  const Evidence evidence = formats::read_ops("world 2\nrepeat 1000\n0-1 all_reduce f32 8 pg0\nend\n");
  const Inventory inventory = take_inventory(evidence);
  ASSERT_EQ(inventory.groups.size(), 1U);
  EXPECT_THAT(inventory.groups[0].operations, UnorderedElementsAre(Pair("all_reduce", 2000)));
}

// Two records by hand: rank 0 holds 5-9, its ring overran; rank 1 holds 7-8 and the file was cut.
Evidence two_rings() {
  Evidence evidence;
  Trace& trace = evidence.trace;
  Signature reduce;
  reduce.kind = OpKind::all_reduce;
  const SignatureId signature = trace.intern(reduce);
  Communicator comm;
  comm.name = trace.strings.intern("pg");
  comm.members = {RankId(0), RankId(1), RankId(2)};
  const CommId id = trace.intern(comm);
  const std::uint32_t ranges[][2] = {{5, 9}, {7, 8}};
  for (std::int32_t rank = 0; rank < 2; ++rank) {
    Program program;
    for (std::uint32_t seq = ranges[rank][0]; seq <= ranges[rank][1]; ++seq) {
      Op op;
      op.signature = signature;
      op.comm_slot = 0;
      op.seq = seq;
      op.state = OpState::completed;
      program.append(op);
    }
    RankRecord record;
    record.rank = RankId(rank);
    record.program = ProgramId(trace.programs.size());
    record.comms = {id};
    record.host = "node-a";
    record.head_lost = rank == 0;
    record.tail_lost = rank == 1;
    record.snapshot = true;
    trace.programs.push_back(std::move(program));
    trace.ranks.push_back(record);
  }
  return evidence;
}

TEST(Inventory, SaysWhatEachRankStillHolds) {
  const Inventory inventory = take_inventory(two_rings());
  EXPECT_THAT(inventory.groups.at(0).sequences,
              UnorderedElementsAre(Pair(SeqRange{5, 9}, RankSet{RankId(0)}), Pair(SeqRange{7, 8}, RankSet{RankId(1)})));
  EXPECT_EQ(inventory.head_lost, RankSet{RankId(0)});
  EXPECT_EQ(inventory.tail_lost, RankSet{RankId(1)});
  EXPECT_EQ(inventory.report.ranks_absent, RankSet{RankId(2)});
}

TEST(InfoText, IsReadable) {
  EXPECT_EQ(render_info_text(take_inventory(two_rings()), 80, false, false, false),
            R"(files         0 files
ranks seen    0,1 (2); world size not stated
ranks absent  2 (1)
hosts         node-a: ranks 0,1
holes         begins late, earlier operations are not in it: rank 0
              ends early, later operations are not in it: rank 1

operations    7 in 2 records, 1 group

group         pg
  members     3 members: 0-2; no record of 2
  operations  7 all_reduce
  states      7 completed
  sequence    5-9: rank 0
              7-8: rank 1
)");
}

TEST(InfoText, FourThousandRanksFitOnAScreen) {
  std::string ops = "world 4096\n0-4095 all_reduce f32 8 pg0\n0-4095 barrier pg0\n";
  for (int group = 0; group < 512; ++group) {
    ops += fmt::format("pg tp{0} = {1}-{2}\n{1}-{2} all_gather f32 8 tp{0}\n", group, 8 * group, 8 * group + 7);
  }
  const std::string text = render_info_text(take_inventory(formats::read_ops(ops)), 100, false, false, false);
  EXPECT_THAT(text, HasSubstr("0-4095 (4,096); world size 4,096"));
  EXPECT_THAT(text, HasSubstr("\ngroup         pg0\n  members     4,096 members: 0-4095\n"));
  EXPECT_THAT(text, HasSubstr("\ngroups        512 alike, such as tp0: 0-7\n"
                              "  members     8 members each, in all: 0-4095\n"
                              "  operations  4,096 all_gather\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("more group")));
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 30);
}

TEST(InfoText, OnlyGroupsThatAreAlikeAreToldAsOne) {
  const auto text = [](const std::string& ops, bool verbose = false) {
    return render_info_text(take_inventory(formats::read_ops(ops)), 100, false, false, verbose);
  };
  const std::string three =
      "world 6\npg a0 = 0,1 desc=\"mesh_tp\"\npg b1 = 2,3 desc=\"mesh_tp\"\npg c2 = 4,5 desc=\"mesh_tp\"\n"
      "0,1 barrier a0\n2,3 barrier b1\n";
  EXPECT_THAT(text(three + "4,5 barrier c2\n"), HasSubstr("3 alike, such as a0 (mesh_tp): 0,1\n"));
  EXPECT_THAT(text(three + "4,5 barrier c2\n", true), testing::Not(HasSubstr("alike")));
  EXPECT_THAT(text(three + "4,5 all_reduce f32 8 c2\n"), testing::Not(HasSubstr("alike"))) << "another operation";
  EXPECT_THAT(text("world 7\npg a0 = 0,1\npg a1 = 2,3\npg a2 = 4,5,6\n0,1 barrier a0\n2,3 barrier a1\n4-6 barrier "
                   "a2\n"),
              testing::Not(HasSubstr("alike")))
      << "another size";
}

TEST(InfoText, VerboseShowsEachFileAndAllRanks) {
  Evidence evidence = two_rings();
  std::vector<RankId> odd;
  for (std::int64_t rank = 1; rank < 99; rank += 2) odd.emplace_back(rank);
  evidence.inputs = {{"fr/rank_0", "flight-recorder-json", {RankId(0)}, {}, "", false},
                     {"job.log", "log", RankSet(odd), {}, "", false}};
  const auto text = [&evidence](bool verbose) {
    return render_info_text(take_inventory(evidence), 100, false, false, verbose);
  };
  EXPECT_THAT(text(true),
              HasSubstr("\neach file     fr/rank_0: flight-recorder-json, rank 0\n              job.log: log, "));
  EXPECT_THAT(text(true), HasSubstr("91,93,95,97"));
  EXPECT_THAT(text(false), HasSubstr(",... (49 ranks)"));
  EXPECT_THAT(text(false), testing::Not(HasSubstr("each file")));
}

TEST(InfoText, AnEmptyDumpIsNamed) {
  Evidence evidence = two_rings();
  evidence.inputs = {{"rank_3", "unknown", {}, {}, "empty file", false}};
  EXPECT_THAT(render_info_text(take_inventory(evidence), 100, false, false, false),
              HasSubstr("\nempty dump    rank_3: empty file\n"));
}

TEST(InfoText, FilesAreToldByWhatIsTheMatter) {
  Evidence evidence = two_rings();
  evidence.inputs = {{"a", "unknown", {}, {}, "no format that ddx knows", false},
                     {"b", "unknown", {}, {}, "empty file", false},
                     {"c", "flight-recorder-json", {}, {}, "cut at byte 9", false},
                     {"d", "unknown", {}, {}, "cannot be opened", true},
                     {"e", "launch", {}, {}, "of the launch", false}};
  const std::string text = render_info_text(take_inventory(evidence), 100, false, false, false);
  EXPECT_THAT(text, HasSubstr("\nleft out      a: no format that ddx knows\n"));
  EXPECT_THAT(text, HasSubstr("\nempty         1 file\n"));
  EXPECT_THAT(text, HasSubstr("\nnot whole     c: cut at byte 9\n"));
  EXPECT_THAT(text, HasSubstr("\nunreadable    d: cannot be opened\n"));
  EXPECT_THAT(text, HasSubstr("\nlaunch        1 file describes it; this version does not judge that\n"));
}

TEST(Inventory, EveryKindOfEventHasItsOwnName) {
  EXPECT_EQ(kind_of(WatchdogTimeout{}), "watchdog_timeout");
  EXPECT_EQ(kind_of(CommInit{}), "comm_init");
  EXPECT_EQ(kind_of(NetSocketError{}), "net_socket_error");
  EXPECT_EQ(kind_of(ProcessEnd{}), "process_end");
  EXPECT_EQ(kind_of(RankAddress{}), "rank_address");
}

// Clocks a second apart. The send takes 100 ns, its receive 60: rank 0 waited for 40 of them. Then 10 ns of nothing and
// 30 of work on rank 0, half of it beside a call.
TEST(Inventory, TellsWhereTheTimeWent) {
  const Evidence evidence = formats::read_ops(
      "world 2\nall record part\n"
      "0 send f32 8 to 1 stream=1 start=1000 end=1100\n"
      "1 recv f32 8 from 0 stream=1 start=1000001040 end=1000001100\n"
      "0 compute 30ns stream=7 start=1110 end=1140\n0 all_reduce f32 8 stream=1 start=1125 end=1140\n");
  const auto info = nlohmann::json::parse(render_info_json(take_inventory(evidence)));
  const auto parts = [&](std::size_t rank, const char* key) { return info["times"].at(rank)[key].get<int>(); };
  ASSERT_EQ(info["times"].size(), 2U);
  EXPECT_EQ(info["times"][0]["rank"], 0);
  EXPECT_EQ(parts(0, "span_ns"), 140);
  EXPECT_EQ(parts(0, "compute_ns"), 30);
  EXPECT_EQ(parts(0, "overlapped_ns"), 15);
  EXPECT_EQ(parts(0, "communication_ns"), 60);
  EXPECT_EQ(parts(0, "bubble_ns"), 40);
  EXPECT_EQ(parts(0, "idle_ns"), 10);
  EXPECT_EQ(parts(0, "unattributed_ns"), 0);
  EXPECT_EQ(info["times"][0]["streams"].size(), 2U);
  EXPECT_EQ(parts(1, "span_ns"), 60);
  EXPECT_EQ(parts(1, "communication_ns"), 60);
  const std::string text = render_info_text(take_inventory(evidence), 120, false, false, false);
  EXPECT_THAT(text, HasSubstr("Where the time goes:"));
  EXPECT_THAT(text, HasSubstr("28.6 %")) << "40 of 140";
  const Evidence untimed = formats::read_ops("world 2\nall all_reduce f32 8\n");
  EXPECT_FALSE(nlohmann::json::parse(render_info_json(take_inventory(untimed))).contains("times"));
}

}  // namespace
}  // namespace ddx::cli
