// What a line is, and how much of a log ddx looks at and keeps.
#include <gtest/gtest.h>

#include "tests/support/scratch_folder.h"
#include "tests/traces/formats/log/log_test_support.h"
#include "traces/formats/loader.h"

namespace ddx::formats {
namespace {

const std::string kStuck = "ProcessGroupNCCL's watchdog got stuck for 480 seconds";

std::string bar_of(int states) {
  std::string bar;
  for (int i = 0; i < states; ++i) {
    bar += "\r 10%|#####          | " + std::to_string(i) + "/90000 [00:01<00:10, 9.1it/s, loss=1.23]";
  }
  return bar;
}

TEST(LogLines, AMessageBehindAProgressBarIsRead) {
  for (const std::string between : {"\r", "\n", ""}) {
    // 3,000 states are 180 KB in one line.
    for (const int states : {3, 3'000}) {
      SCOPED_TRACE(std::to_string(states) + (between.empty() ? " appended" : " apart"));
      const auto events = events_of<HeartbeatStuck>(read_log_text(bar_of(states) + between + "[rank3]: " + kStuck));
      ASSERT_EQ(events.size(), 1U);
      EXPECT_EQ(events[0].rank, RankId(3));
      EXPECT_EQ(events[0].text, kStuck);
    }
  }
}

TEST(LogLines, EachStateOfABarIsReadForItself) {
  const Evidence evidence =
      read_log_text("[rank1]: KeyError: 1\rnode-a:1:2 [0] NCCL INFO group.cc:72 -> 3\r[rank2]: " + kStuck + "\r\n");
  EXPECT_EQ(facts_of<ProcessEnd>(evidence).size(), 1U);
  EXPECT_EQ(facts_of<ReturnCode>(evidence).size(), 1U);
  EXPECT_EQ(facts_of<HeartbeatStuck>(evidence).size(), 1U);
}

TEST(LogLines, ZerosOfACrashedWriteHideNothing) {
  const std::string hole(200'000, '\0');
  const auto events = events_of<HeartbeatStuck>(read_log_text(hole + "[rank3]: " + kStuck + "\n" + hole));
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].rank, RankId(3));
}

// Each would take minutes, and so run into ctest's time-out, where a break were searched for again behind each break.
TEST(LogLines, BreaksOfOneKindAloneCostOnePass) {
  constexpr std::size_t kSize = 8U << 20;
  std::string zeros(kSize, 'x');
  std::string returns(kSize, 'x');
  for (std::size_t i = 0; i < kSize; i += 2) {
    zeros[i] = '\0';
    returns[i] = '\r';
  }
  for (const std::string& line : {zeros, returns, std::string(kSize, '\0'), std::string(kSize, '\r')}) {
    const auto events = events_of<HeartbeatStuck>(read_log_text(line + "\r[rank3]: " + kStuck + "\n"));
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].rank, RankId(3));
  }
}

TEST(LogLines, AShortLineCannotMakeManyEvents) {
  // 1.3 KB that names two million processes.
  std::string text;
  for (int i = 0; i < 31; ++i) text += "srun: error: node-a: tasks 0-65535: Killed\n";
  const Evidence evidence = read_log_text(text);
  EXPECT_GE(evidence.events.size(), 65'536U) << "one job's tasks are kept";
  EXPECT_LE(evidence.events.size() * sizeof(LogEvent), std::size_t{65} << 20);
  EXPECT_GT(evidence.diagnostics.count_of("log.too_many_events"), 0U);
}

TEST(LogLines, ATableThatEveryNodePrintsIsReadOnce) {
  std::string text;
  for (int node = 0; node < 100; ++node) text += "WORLD INFO DICT: {'a': [0, 1], 'b': [0, 1]}\n";
  EXPECT_EQ(facts_of<RankAddress>(read_log_text(text)).size(), 4U);
}

// What is read of a file of that name.
Evidence load_file(const std::string& name, const std::string& text) {
  const ddx::testing::ScratchFolder folder;
  folder.write(name, text);
  return formats::load({folder.path()}, {});
}

TEST(LogLines, ALogWithoutAnEndingIsKnownByItsLastLines) {
  std::string text;
  while (text.size() < 150'000) text += "some output of the training program\n";
  const Evidence evidence = load_file("worker-0", text + "[rank3]: " + kStuck + "\n");
  EXPECT_EQ(evidence.inputs.at(0).format, "log");
  EXPECT_EQ(facts_of<HeartbeatStuck>(evidence).size(), 1U);
  EXPECT_EQ(load_file("worker-0", text).inputs.at(0).format, "unknown");
  const Evidence launched = load_file("slurm_out", "torchrun train.py\n" + text + "[rank3]: " + kStuck + "\n");
  EXPECT_EQ(launched.inputs.at(0).format, "log");
}

TEST(LogLines, WideTextIsNamed) {
  for (const bool mark : {true, false}) {
    std::string text = mark ? "\xff\xfe" : "";
    for (char c : std::string("Traceback (most recent call last):\n")) text += {c, '\0'};
    const Evidence evidence = load_file("rank3.log", text);
    EXPECT_EQ(evidence.inputs.at(0).note, "UTF-16: convert it to UTF-8 first");
    EXPECT_EQ(evidence.diagnostics.count_of("load.wide_text"), 1U);
  }
}

}  // namespace
}  // namespace ddx::formats
