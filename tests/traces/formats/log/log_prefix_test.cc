#include "traces/formats/log_prefix.h"

#include <gtest/gtest.h>

#include "tests/traces/formats/log/log_test_support.h"

namespace ddx::formats {
namespace {

constexpr Nanos kTenOClock = 36'000 * kSecond;
// 2026-11-29 10:00:00 UTC: 20,786 days after 1970-01-01.
constexpr Nanos kDayTen = 20'786 * 86'400 * kSecond + kTenOClock;

const std::string kStuck = "ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress";

struct PrefixCase {
  std::string prefix;
  std::optional<int> rank;
  std::optional<Nanos> time = std::nullopt;
  bool time_of_day = false;
  std::string host = {};
};

TEST(LogPrefix, TheSameFactBehindEveryPrefix) {
  const std::vector<PrefixCase> cases{
      {"", std::nullopt},
      {"[rank3]: ", 3},
      {"[rank3] ", 3},
      {"[rank: 3] ", 3},
      {"[rank3]:[E1129 10:00:00.500000000 ProcessGroupNCCL.cpp:1746] [PG ID 0 PG GUID 0(default_pg) Rank 3] ", 3,
       kTenOClock + 500 * kMillisecond, true},
      {"[rank4]:[E318 10:00:00.5 ProcessGroupNCCL.cpp:616] [PG ID 2 PG GUID 9 Rank 0] ", 4,
       kTenOClock + 500 * kMillisecond, true},
      {"[E ProcessGroupNCCL.cpp:828] [Rank 3] ", 3},
      {"[default3]:", 3},
      {"[default3]:[rank11]: ", 11},
      {"[trainer0|12]:", 12},
      {"[1,3]<stdout>:", 3},
      {"[1,3]<stderr>: ", 3},
      {"[prterun-node-a-41@1,3]<stderr>: ", 3},
      {"[3]<stderr>:", 3},
      {"[pod/worker-1/pytorch] ", std::nullopt, std::nullopt, false, "worker-1"},
      {"[pod/worker-1/pytorch] 2026-11-29T10:00:00.250000000Z stdout F [rank3]: ", 3, kDayTen + 250 * kMillisecond,
       false, "worker-1"},
      {"2026-11-29T10:00:00Z stderr P ", std::nullopt, kDayTen},
      {"2026-11-29T11:00:00+01:00 ", std::nullopt, kDayTen},
      {"2026-11-29 10:00:00,123 ", std::nullopt, kDayTen + 123 * kMillisecond},
      {"[2026-11-29 10:00:00] ", std::nullopt, kDayTen},
      {"[2026-11-29 10:00:00,123] [INFO] ", std::nullopt, kDayTen + 123 * kMillisecond},
      {"2026-11-29 10:00:00 [rank3]: ", 3, kDayTen},
      {"[rank3]: 2026-11-29 10:00:00 ", 3, kDayTen},
      {"10:00:07.412 ", std::nullopt, kTenOClock + 7'412 * kMillisecond, true},
      {"[10:00:07] ", std::nullopt, kTenOClock + 7 * kSecond, true},
      {"E1129 10:00:00.250000 4711 watchdog.cc:12] ", std::nullopt, kTenOClock + 250 * kMillisecond, true},
      {"Sun Nov 29 10:00:00 2026[1,3]<stderr>:", 3, kDayTen},
      {"Nov 29 10:00:00 node-a ", std::nullopt, kTenOClock, true, "node-a"},
      {"Nov 29 10:00:00 ", std::nullopt, kTenOClock, true},
      {"Nov 29 10:00:00 [rank3]: ", 3, kTenOClock, true},
      {"Nov 29 10:00:00 login python[812]: ", std::nullopt, kTenOClock, true, "login"},
      {"Nov 29 10:00:00 WARNING ", std::nullopt, kTenOClock, true},
      {"[node3]:", std::nullopt, std::nullopt, false, "node3"},
      {"[compute_node3]: ", std::nullopt, std::nullopt, false, "compute_node3"},
      {"[dgx07]: ", std::nullopt, std::nullopt, false, "dgx07"},
      {"[worker2]: ", std::nullopt, std::nullopt, false, "worker2"},
      {"[worker2|5]:", 5},
      {"[gpu3]:", std::nullopt},
      {"(RayTrainWorker pid=615, ip=192.0.2.6) ", std::nullopt, std::nullopt, false, "192.0.2.6"},
      {"\x1b[36m(RayTrainWorker pid=615, ip=192.0.2.6)\x1b[0m [rank3]: ", 3, std::nullopt, false, "192.0.2.6"},
      {"\x1b[1;31m[rank3]:\x1b[0m ", 3},
      {"[1,3]<stderr>:[default1]:2026-11-29 10:00:00,000 [rank7]: ", 7, kDayTen},
  };
  for (const PrefixCase& c : cases) {
    SCOPED_TRACE(c.prefix);
    const auto events = events_of<HeartbeatStuck>(read_log_text(c.prefix + kStuck + "\r\n"));
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(std::get<HeartbeatStuck>(events[0].fact).stuck_for, 480 * kSecond);
    EXPECT_EQ(events[0].rank, c.rank ? std::optional(RankId(std::int64_t{*c.rank})) : std::nullopt);
    EXPECT_EQ(events[0].time, c.time);
    EXPECT_EQ(events[0].time_of_day, c.time_of_day);
    EXPECT_EQ(events[0].host, c.host);
    EXPECT_TRUE(events[0].text.ends_with(kStuck)) << events[0].text;
  }
}

TEST(LogPrefix, SrunLabelsCountOnlyWhereTheFileHasThem) {
  const auto labelled =
      events_of<HeartbeatStuck>(read_log_text("0: " + kStuck + "\n 3: " + kStuck + "\n11: " + kStuck));
  ASSERT_EQ(labelled.size(), 3U);
  EXPECT_EQ(labelled[0].rank, RankId(0));
  EXPECT_EQ(labelled[1].rank, RankId(3));
  EXPECT_EQ(labelled[2].rank, RankId(11));
  const auto single = events_of<HeartbeatStuck>(read_log_text("loading\nloading\n3: " + kStuck));
  ASSERT_EQ(single.size(), 1U);
  EXPECT_EQ(single[0].rank, std::nullopt);
}

TEST(LogPrefix, LabelsOfHydraAndPdshCountWhereMostLinesHaveThem) {
  const std::string crash[] = {
      "hello", "Traceback (most recent call last):", "  File \"train.py\", line 3, in <module>", "KeyError: 5"};
  const auto labelled = [&](const std::string& label) {
    std::string text;
    for (const std::string& line : crash) text += label + line + "\n";
    return text;
  };
  const auto hydra = events_of<ProcessEnd>(read_log_text(labelled("[2] ") + labelled("[11] ")));
  ASSERT_EQ(hydra.size(), 2U);
  EXPECT_EQ(hydra[0].rank, RankId(2));
  EXPECT_EQ(hydra[1].rank, RankId(11));
  EXPECT_EQ(hydra[1].text, "KeyError: 5");
  const auto pdsh = events_of<ProcessEnd>(read_log_text(labelled("node-c: ") + labelled("gpu7.lan: ")));
  ASSERT_EQ(pdsh.size(), 2U);
  EXPECT_EQ(pdsh[0].host, "node-c");
  EXPECT_EQ(pdsh[1].host, "gpu7.lan");
  EXPECT_EQ(pdsh[1].rank, std::nullopt);
}

TEST(LogPrefix, WhatCountsUpOrNamesALevelIsNoLabel) {
  std::string steps;
  std::string levels;
  for (int i = 0; i < 20; ++i) {
    steps += "[" + std::to_string(i) + "] loss " + std::to_string(i) + "\n";
    levels += "INFO: loading\n";
  }
  const auto counted = events_of<HeartbeatStuck>(read_log_text(steps + "[20] " + kStuck));
  ASSERT_EQ(counted.size(), 1U);
  EXPECT_EQ(counted[0].rank, std::nullopt);
  const auto told = events_of<HeartbeatStuck>(read_log_text(levels + "INFO: " + kStuck));
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].host, "");
}

TEST(LogPrefix, TheRankOfAGroupIsNotTheJobs) {
  const auto events = events_of<HeartbeatStuck>(read_log_text("[PG ID 2 PG GUID 3(mesh_dp) Rank 1] " + kStuck + "\n"));
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].rank, std::nullopt);
  EXPECT_EQ(events[0].group, "3");
}

struct PathCase {
  std::string path;
  std::optional<int> rank;
  std::optional<std::uint32_t> attempt = std::nullopt;
};

TEST(LogPrefix, PathsThatSayARank) {
  const std::vector<PathCase> cases{
      {"logs/rank2.log", 2},
      {"logs/rank_2.err", 2},
      {"logs/job-rank-12.out", 12},
      {"rank_5/stderr.txt", 5},
      {"logs/job_4711.log", std::nullopt},
      {"logs/worker1.log", std::nullopt},
      {"logs/local_rank_3.log", std::nullopt},
      {"frank7.log", std::nullopt},
      {"lora_rank16/train.log", std::nullopt},
      {"exp_rank16/train_3.log", std::nullopt},
      {"rank_5/train_3.log", 5},
      {"none_ghgeo4qi/attempt_1/3/stderr.log", 3, 1},
      {"none_ghgeo4qi/0/3/stdout.log", 3, 0},
  };
  for (const PathCase& c : cases) {
    SCOPED_TRACE(c.path);
    const auto events = events_of<HeartbeatStuck>(read_log_text(kStuck, c.path));
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].rank, c.rank ? std::optional(RankId(std::int64_t{*c.rank})) : std::nullopt);
    EXPECT_EQ(events[0].attempt, c.attempt);
  }
}

TEST(LogPrefix, TheUsersPatternForRanksInPaths) {
  ImportOptions options;
  options.rank_from = std::regex("gpu(\\d+)");
  const auto events = events_of<HeartbeatStuck>(read_log_text(kStuck, "logs/gpu6.log", options));
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].rank, RankId(6));
}

TEST(LogPrefix, LocalRanksAreNoRanksWhereSeveralNodesWrote) {
  // The second line shows that local rank 1 is rank 9 here, so local rank 0 is not rank 0.
  const auto events =
      events_of<HeartbeatStuck>(read_log_text("[default0]:" + kStuck + "\n[default1]:[rank9]: " + kStuck));
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].rank, std::nullopt);
  EXPECT_EQ(events[1].rank, RankId(9));
  const auto by_name = events_of<HeartbeatStuck>(read_log_text("[default0]:" + kStuck, "node1.log"));
  ASSERT_EQ(by_name.size(), 1U);
  EXPECT_EQ(by_name[0].rank, std::nullopt);
}

TEST(LogPrefix, Dates) {
  std::size_t used = 0;
  EXPECT_EQ(parse_date_time("1970-01-02 00:00:00", used), 86'400 * kSecond);
  EXPECT_EQ(used, 19U);
  EXPECT_EQ(parse_date_time("2024-02-29T23:59:59.5Z rest", used), (19'782 * 86'400 + 86'399) * kSecond + kSecond / 2);
  EXPECT_EQ(used, 22U);
  for (const char* bad :
       {"", "2026", "2026-13-01 00:00:00", "2026-01-01 25:00:00", "2026-01-0a 00:00:00", "99999999999999999999"}) {
    EXPECT_EQ(parse_date_time(bad, used), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace ddx::formats
