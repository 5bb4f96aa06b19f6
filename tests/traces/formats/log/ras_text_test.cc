#include "traces/formats/ras_text.h"

#include <gtest/gtest.h>

#include "tests/traces/formats/log/log_test_support.h"

namespace ddx::formats {
namespace {

const std::string kHeader =
    "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
    "    #  in group  per comm  per node  per comm  in group\n";

TEST(RasText, AMismatchWithItsGroupsAndMembers) {
  const auto found =
      only<RasCommunicator>(kHeader +
                            "    0         1         4         8        32        32   RUNNING  MISMATCH\n\n"
                            "Errors\n======\n\nWarnings\n========\n\n"
                            "#0-0 (00000000deadbeef) MISMATCH\n"
                            "  Communicator ranks have different AllGather operation counts\n"
                            "  30 ranks have launched up to operation 640\n"
                            "  2 ranks have launched up to operation 641\n"
                            "  Rank 12 -- GPU 4 managed by process 3230 on node 192.0.2.124\n"
                            "  Rank 13 -- GPU 5 managed by process 3231 on node 192.0.2.124\n");
  EXPECT_EQ(found.id, "00000000deadbeef");
  EXPECT_EQ(found.status, "RUNNING");
  EXPECT_EQ(found.errors, "MISMATCH");
  EXPECT_EQ(found.size, 32U);
  ASSERT_EQ(found.groups.size(), 2U);
  EXPECT_EQ(found.groups[0].op, "AllGather");
  EXPECT_EQ(found.groups[0].launched, 640U);
  EXPECT_EQ(found.groups[0].rank_count, 30U);
  EXPECT_TRUE(found.groups[0].ranks.empty());
  EXPECT_EQ(found.groups[1].launched, 641U);
  EXPECT_EQ(found.groups[1].ranks, (std::vector<RankId>{RankId(12), RankId(13)}));
  ASSERT_EQ(found.members.size(), 2U);
  EXPECT_EQ(found.members[1].rank, RankId(13));
  EXPECT_EQ(found.members[1].host, "192.0.2.124");
  EXPECT_EQ(found.members[1].pid, 3'231);
  ASSERT_EQ(found.members[1].counts.size(), 1U);
  EXPECT_EQ(found.members[1].counts[0], (std::pair<std::string, std::uint64_t>("AllGather", 641)));
}

TEST(RasText, OneRankBehind) {
  const auto found = only<RasCommunicator>(
      kHeader +
      "    0         1         2         4         8         8  RUNNING  MISMATCH\n"
      "#0-0 (78db921d1c117b4a) MISMATCH\n"
      "  Communicator ranks have different AllReduce operation counts\n"
      "  7 ranks have launched up to operation 64\n"
      "  Rank 7 has launched up to operation 60 -- GPU 3 managed by process 1650386 on node node-b\n");
  ASSERT_EQ(found.groups.size(), 2U);
  EXPECT_EQ(found.groups[1].launched, 60U);
  EXPECT_EQ(found.groups[1].rank_count, 1U);
  EXPECT_EQ(found.groups[1].ranks, (std::vector<RankId>{RankId(7)}));
  ASSERT_EQ(found.members.size(), 1U);
  EXPECT_EQ(found.members[0].host, "node-b");
}

TEST(RasText, MissingAndDeadProcesses) {
  const Evidence evidence =
      read_log_text(kHeader +
                    "    0         1         2         4         8         7  RUNNING  INCOMPLETE\n\n"
                    "Errors\n======\n\n"
                    "INCOMPLETE\n  Missing communicator data from 1 job process\n  Process 60004 on node 192.0.2.13 "
                    "managing GPU 0\n\n"
                    "DEAD\n  1 job process is considered dead (unreachable via the RAS network)\n  Process 60004 on "
                    "node 192.0.2.13 managing GPU 0\n\n"
                    "#0-0 (b3398875b8b2a063) INCOMPLETE\n  Missing communicator data from 1 rank\n"
                    "  Rank 1 -- GPU 0 managed by process 60004 on node 192.0.2.13\n");
  const auto events = events_of<RasCommunicator>(evidence);
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(std::get<RasCommunicator>(events[0].fact).errors, "INCOMPLETE");
  EXPECT_EQ(events[0].pid, 60'004);
  EXPECT_EQ(std::get<RasCommunicator>(events[1].fact).errors, "DEAD");
  const auto& found = std::get<RasCommunicator>(events[2].fact);
  ASSERT_EQ(found.members.size(), 1U);
  EXPECT_TRUE(found.members[0].missing);
  EXPECT_TRUE(found.members[0].unresponsive);
  EXPECT_TRUE(found.members[0].considered_dead);
}

TEST(RasText, ErrorsOfRanks) {
  const auto found = only<RasCommunicator>(
      "#1-0 (b3398875b8b2a063) ERROR\n  Asynchronous errors on 3 ranks\n  2 ranks reported Remote process error\n"
      "  Rank 0 -- GPU 0 managed by process 1 on node node-a\n  Rank 1 -- GPU 1 managed by process 2 on node node-a\n"
      "  Rank 5 reported Internal error -- GPU 1 managed by process 9 on node node-b\n");
  ASSERT_EQ(found.members.size(), 3U);
  EXPECT_EQ(found.members[1].error, "Remote process error");
  EXPECT_EQ(found.members[2].error, "Internal error");
}

TEST(RasText, AReportWithoutTroubleSaysSo) {
  const auto found =
      only<RasCommunicator>(kHeader + "    0         1        32         8       256       256   RUNNING      OK\n");
  EXPECT_EQ(found.errors, "OK");
  EXPECT_EQ(found.size, 256U);
  EXPECT_EQ(found.id, "");
}

TEST(RasText, TwoPollsAreTwoReports) {
  const std::string poll = kHeader +
                           "    0         1         4         8        32        32   RUNNING  MISMATCH\n"
                           "#0-0 (00000000deadbeef) MISMATCH\n  Communicator ranks have different AllGather operation "
                           "counts\n  30 ranks have launched up to operation 640\n";
  EXPECT_EQ(facts_of<RasCommunicator>(read_log_text(poll + "\n" + poll)).size(), 2U);
}

}  // namespace
}  // namespace ddx::formats
