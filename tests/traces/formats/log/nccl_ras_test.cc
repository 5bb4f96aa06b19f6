#include "traces/formats/nccl_ras.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/traces/formats/log/log_test_support.h"

namespace ddx::formats {
namespace {

Evidence read_ras(const std::string& text) { return read_as(nccl_ras_json_importer(), text, "ras.json"); }

std::string rank(int number, int launched, const std::string& status = "\"init_state\": 0, \"async_error\": 0") {
  return "{\"rank\": " + std::to_string(number) +
         ", \"host\": \"192.0.2.1\", \"pid\": " + std::to_string(100 + number) +
         ", \"cuda_dev\": 0, \"nvml_dev\": 0, \"status\": {" + status +
         "}, \"collective_counts\": {\"AllReduce\": " + std::to_string(launched) + "}}";
}

std::string report(const std::string& ranks, const std::string& missing = "") {
  return "{\"nccl_version\": \"2.29.1\", \"timestamp\": \"2026-11-29 10:00:00\", \"communicators_count\": 1, "
         "\"communicators\": [{\"hash\": \"0xae94\", "
         "\"size\": 4, \"ranks_count\": 2, \"missing_ranks_count\": 1, \"ranks\": [" +
         ranks + "], \"missing_ranks\": [" + missing + "]}]}";
}

TEST(NcclRas, CountsAndMissingRanks) {
  const Evidence evidence = read_ras(report(rank(0, 12) + "," + rank(1, 12) + "," + rank(2, 11),
                                            "{\"rank\": 3, \"host\": \"192.0.2.2\", \"pid\": 7, \"status\": "
                                            "{\"unresponsive\": true, \"considered_dead\": true}}"));
  const auto events = events_of<RasCommunicator>(evidence);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].time, (20'786LL * 86'400 + 36'000) * kSecond);
  const auto& found = std::get<RasCommunicator>(events[0].fact);
  EXPECT_EQ(found.id, "0xae94");
  EXPECT_EQ(found.size, 4U);
  EXPECT_EQ(found.errors, "INCOMPLETE,MISMATCH,DEAD");
  ASSERT_EQ(found.members.size(), 4U);
  EXPECT_EQ(found.members[3].rank, RankId(3));
  EXPECT_TRUE(found.members[3].missing && found.members[3].unresponsive && found.members[3].considered_dead);
  ASSERT_EQ(found.groups.size(), 2U);
  EXPECT_EQ(found.groups[0].launched, 11U);
  EXPECT_EQ(found.groups[0].ranks, (std::vector<RankId>{RankId(2)}));
  EXPECT_EQ(found.groups[1].rank_count, 2U);
  EXPECT_EQ(facts_of<LibraryVersion>(evidence).at(0).version, "2.29.1");
}

TEST(NcclRas, ErrorsOfMembers) {
  const auto found = facts_of<RasCommunicator>(
      read_ras(report(rank(0, 1, "\"init_state\": 0, \"async_error\": 6") + "," + rank(1, 1))));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].members[0].error, "remote process exited or network error");
  EXPECT_EQ(found[0].members[1].error, "");
  EXPECT_EQ(found[0].errors, "ERROR");
}

TEST(NcclRas, AVersionThatForgetsAComma) {
  const Evidence evidence =
      read_ras(report(rank(0, 1), "{\"rank\": 3, \"pid\": 7, \"nvml_dev\": 0\n \"status\": {\"unresponsive\": true}}"));
  const auto found = facts_of<RasCommunicator>(evidence);
  ASSERT_EQ(found.size(), 1U);
  ASSERT_EQ(found[0].members.size(), 2U);
  EXPECT_TRUE(found[0].members[1].unresponsive);
  EXPECT_EQ(evidence.diagnostics.count_of("nccl_ras.missing_comma"), 1U);
}

TEST(NcclRas, SeveralPollsInOneFile) {
  const auto events = events_of<RasCommunicator>(read_ras(report(rank(0, 1)) + "\n" + report(rank(0, 2)) + "\n"));
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].line, 1U);
  EXPECT_EQ(events[1].line, 2U);
}

TEST(NcclRas, BrokenReports) {
  const std::string whole = report(rank(0, 1));
  EXPECT_THROW(read_ras("{}"), Error);
  EXPECT_THROW(read_ras("[1, 2, 3]"), Error);
  EXPECT_THROW(read_ras(whole.substr(0, whole.size() / 2)), Error);
  EXPECT_THROW(read_ras(std::string(200'000, '{')), Error);
  EXPECT_THROW(read_ras("{\"communicators\": " + std::string(100'000, '[') + "}"), Error);
  const Evidence half = read_ras(whole + whole.substr(0, whole.size() / 2));
  EXPECT_EQ(facts_of<RasCommunicator>(half).size(), 1U);
  EXPECT_EQ(half.diagnostics.count_of("nccl_ras.bad_json"), 1U);
  const Evidence odd =
      read_ras("{\"communicators\": [7, {\"size\": -3, \"ranks\": [{\"rank\": \"x\"}, {\"rank\": 99999999999}]}]}");
  EXPECT_EQ(odd.diagnostics.count_of("nccl_ras.bad_communicator"), 1U);
  EXPECT_EQ(odd.diagnostics.count_of("nccl_ras.bad_member"), 2U);
}

std::string communicator(const std::string& hash, int launched) {
  return R"({"hash": ")" + hash + R"(", "size": 1, "ranks": [)" + rank(0, launched) + "]}";
}

// A poll that was stopped, or a full disk: what is whole is read, wherever the cut is.
TEST(NcclRas, ACutReportGivesItsWholeCommunicators) {
  const std::string head = R"({"nccl_version": "2.29.1", "communicators_count": 2, "communicators": [)";
  const std::string first = communicator("0xa", 1), second = communicator("0xb", 2);
  const std::string whole = head + first + ", " + second + R"(], "ras": {"timeouts_count": 0}})";
  const std::size_t has_first = head.size() + first.size(), has_second = has_first + 2 + second.size();
  for (std::size_t size = 1; size < whole.size(); ++size) {
    std::vector<RasCommunicator> found;
    try {
      const Evidence evidence = read_ras(whole.substr(0, size));
      found = facts_of<RasCommunicator>(evidence);
      EXPECT_EQ(facts_of<LibraryVersion>(evidence).size(), 1U) << size;
      EXPECT_EQ(evidence.diagnostics.count_of("nccl_ras.bad_json"), 1U) << size;
    } catch (const Error&) {
    }
    ASSERT_EQ(found.size(), std::size_t{size >= has_first} + std::size_t{size >= has_second}) << size;
    if (!found.empty()) {
      EXPECT_EQ(found[0].id, "0xa");
      EXPECT_EQ(found[0].groups.at(0).launched, 1U);
    }
  }
}

TEST(NcclRas, OneBrokenCommunicatorLeavesTheOthers) {
  const Evidence evidence = read_ras(R"({"communicators": [)" + communicator("0xa", 1) + R"(, {"hash": oops}, )" +
                                     communicator("0xb", 2) + R"(], "ras": {"size": 3}})");
  const auto found = facts_of<RasCommunicator>(evidence);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[1].id, "0xb");
  EXPECT_EQ(found[1].status, "") << "JSON does not say it";
}

TEST(NcclRas, BehindAByteOrderMarkOrABanner) {
  const Importer importer = nccl_ras_json_importer();
  const std::string plain = report(rank(0, 1));
  for (const std::string before : {"\xef\xbb\xbf", "NCCL RAS\n", "$ ncclras -f json\r\n\r\n"}) {
    EXPECT_EQ(importer.sniff("x.txt", before + plain), Sniff::sure) << before;
    EXPECT_EQ(facts_of<RasCommunicator>(read_ras(before + plain)).size(), 1U) << before;
  }
  std::string log;
  for (int i = 0; i < 100; ++i) log += "node-a:1:1 [0] NCCL INFO line\n";
  EXPECT_EQ(importer.sniff("x.log", log + plain), Sniff::no) << "a log that holds a report is a log";
}

TEST(NcclRas, Sniffing) {
  const Importer importer = nccl_ras_json_importer();
  EXPECT_EQ(importer.sniff("x.json", report(rank(0, 1))), Sniff::sure);
  EXPECT_EQ(importer.sniff("x.json", "{\"entries\": []}"), Sniff::no);
  EXPECT_EQ(importer.sniff("x.json", ""), Sniff::no);
}

}  // namespace
}  // namespace ddx::formats
