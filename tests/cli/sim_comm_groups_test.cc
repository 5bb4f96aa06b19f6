// Groups of Chakra traces in a JSON file of their own, as ASTRA-sim takes them (--comm-group-configuration).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/run_ddx.h"
#include "tests/support/chakra_bytes.h"
#include "tests/support/scratch_folder.h"
#include "traces/formats/comm_groups.h"

namespace ddx::cli {
namespace {

using namespace ddx::testing::chakra;
using ::testing::HasSubstr;
using ::testing::Not;

// Ranks 0..3; each makes one call in its group.
class CommGroups : public ::testing::Test {
 protected:
  Answer sim(const std::string& groups, const std::string& name = "workload.json") const {
    const ddx::testing::ScratchFolder folder;
    for (int rank = 0; rank < 4; ++rank) {
      folder.write("workload." + std::to_string(rank) + ".et", kHead + calls[static_cast<std::size_t>(rank)]);
    }
    if (!groups.empty()) folder.write(name, groups);
    return ddx({"sim", folder.path(), "--flat", "1GB/s,1us", "--algorithm", "ring"});
  }

  static std::string call(const std::string& group, std::uint64_t kind = 0, const std::string& rest = {}) {
    return collective(1, kind, 2000, text_attribute("pg_name", group) + rest);
  }

  std::vector<std::string> calls{call("1"), call("1"), call("2"), call("2")};
};

constexpr const char* kPairs = "{\n\t\"1\":[0,1],\n\t\"2\":[2,3]\n}\n\n";

// Without the file nobody knows that no other rank should make the calls.
TEST_F(CommGroups, SayWhoIsInThem) {
  const Answer without = sim("");
  EXPECT_EQ(without.status, 3) << without.out;
  EXPECT_THAT(on_one_line(without.out), HasSubstr("no file lists the members of groups 1"));
  // 2 x (1 us + 1,000 bytes at 1 GB/s).
  const Answer with = sim(kPairs);
  EXPECT_EQ(with.status, 0) << with.out;
  EXPECT_THAT(on_one_line(with.out), HasSubstr("COMPLETES 4 ranks run to their end, 4 operations, in 4 us"));
  EXPECT_EQ(sim(kPairs, "comm_group_8.json").status, 0);
}

TEST_F(CommGroups, TellWhoIsMissing) {
  calls[3] = node(1, 4, micros(1));
  const Answer answer = sim(kPairs);
  EXPECT_EQ(answer.status, 1) << answer.out;
  EXPECT_THAT(on_one_line(answer.out), HasSubstr("never called all_reduce u8 x 2,000 (group 2, seq 1)"));
  EXPECT_THAT(answer.out, HasSubstr("rank-skipped"));
}

// The root is a global rank: rank 3 is position 1 of group 2.
TEST_F(CommGroups, RootsAreMembers) {
  const auto root = [](std::uint64_t rank) { return attribute("root_rank", 9, rank) + attribute("comm_src", 9, rank); };
  calls[2] = calls[3] = call("2", 5, root(3));
  const Answer answer = sim(kPairs);
  EXPECT_EQ(answer.status, 0) << answer.out;
  EXPECT_THAT(answer.out, Not(HasSubstr("peer-range")));
}

TEST_F(CommGroups, FaultsAreToldWithTheirPlace) {
  struct Row {
    const char* what;
    std::string groups;
    int status;
    std::vector<const char*> said;
  };
  const Row rows[] = {
      {"below all ranks", "{\"1\": [0, 1],\n \"2\": [2, -3]}", 3, {"workload.json:2: group 2", "found -3"}},
      {"beyond all ranks", "{\"1\": [0, 1], \"2\": [2, 99999999999999999999]}", 3, {"a number beyond all"}},
      {"a rank without a file",
       "{\"1\": [0, 1], \"2\": [2, 3, 9]}",
       1,
       {"rank 9 has no record in what was given, and ranks 2,3 wait for it in all_reduce u8 x 2,000 (group 2, seq 1)"}},
      {"a member twice", "{\"1\": [0, 1, 1], \"2\": [2, 3]}", 3, {"found rank 1 again"}},
      {"a group twice", "{\"1\": [0, 1],\n\"1\": [2, 3]}", 3, {"workload.json:2: group 1 is in line 1 already"}},
      {"no member", "{\"1\": [], \"2\": [2, 3]}", 3, {"group 1: expected a member"}},
      {"a group that is not listed",
       "{\"1\": [0, 1]}",
       3,
       {"workload.2.et: all_reduce 'n1' of rank 2 is in group 2, which", "workload.json does not list"}},
      {"a rank in a group of others",
       "{\"1\": [0, 1], \"2\": [1, 2]}",
       3,
       {"all_reduce 'n1' of rank 3 is in group 2, and", "workload.json:1 does not list that rank there"}},
      {"a cut file", "{\"1\": [0, 1],\n\"2\": [2,", 3, {"line 2: expected a member of the group: a rank"}},
  };
  for (const Row& row : rows) {
    const Answer answer = sim(row.groups);
    EXPECT_EQ(answer.status, row.status) << row.what << '\n' << answer.out;
    for (const char* said : row.said) EXPECT_THAT(on_one_line(answer.out), HasSubstr(said)) << row.what;
    EXPECT_THAT(answer.out, Not(HasSubstr("COMPLETES"))) << row.what;
  }
}

TEST_F(CommGroups, AloneAreNotAJob) {
  const ddx::testing::ScratchFolder folder;
  const Answer answer = ddx({"sim", folder.write("workload.json", kPairs)});
  EXPECT_EQ(answer.status, 3);
  EXPECT_THAT(on_one_line(answer.out), HasSubstr("it lists groups of Chakra traces, and none is here"));
}

TEST(CommGroupsSniff, takes_no_other_json) {
  const auto sniff = [](const std::string& text, const std::string& path = "a.json") {
    return formats::comm_groups_importer().sniff(path, text);
  };
  EXPECT_EQ(sniff(kPairs), formats::Sniff::likely);
  EXPECT_EQ(sniff("{\"1\":[0,1,2"), formats::Sniff::likely);
  EXPECT_EQ(sniff("{\"1\": 5}", "comm_group.json"), formats::Sniff::maybe);
  for (const char* other : {"", "{}", "[]", "[0, 1]", "{\"1\": 5}", "{\"a\": [0, 1]}", "{\"1\": [0, 1], \"b\": 2}",
                            "{\"1\": [0.5]}", "{\"1\": [[0]]}", "{\"0\": {\"ranks\": [0]}}", "{\"1\": [\"0\"]}",
                            "{\"1\": [0]} more", "{\"version\": \"2.4\"}", "{\"1\"",
                            "{\"schemaVersion\": 1, \"traceEvents\": []}", "{\"logical-dims\": [\"8\"]}"}) {
    EXPECT_EQ(sniff(other), formats::Sniff::no) << other;
  }
}

}  // namespace
}  // namespace ddx::cli
