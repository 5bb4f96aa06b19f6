// What libraries, drivers and supervisors say of a rank, a GPU or a worker, in whole and in broken lines.
#include <gtest/gtest.h>

#include "tests/traces/formats/log/log_test_support.h"

namespace ddx::formats {
namespace {

std::vector<std::int64_t> absent_in(const std::string& text) {
  std::vector<std::int64_t> ranks;
  for (const ToldAbsent& absent : facts_of<ToldAbsent>(read_log_text(text))) {
    for (RankId rank : absent.ranks) ranks.push_back(rank.value);
  }
  return ranks;
}

using Ranks = std::vector<std::int64_t>;

TEST(AbsentLog, BrokenListsNameWhatCanBeRead) {
  EXPECT_EQ(absent_in("[Rank 0]: Ranks 4, 5 failed to pass monitoredBarrier in 30000 ms\n"), (Ranks{4, 5}));
  EXPECT_EQ(absent_in("[Rank 0]: Ranks 4, x failed to pass monitoredBarrier\n"), (Ranks{4}));
  EXPECT_EQ(absent_in("Ranks 99999999999999999999 failed to pass monitoredBarrier\n"), Ranks{});
  EXPECT_EQ(absent_in(" failed to pass monitoredBarrier\n"), Ranks{});
  EXPECT_EQ(absent_in("] finished collective #4, but didn't join collective #5\n"), Ranks{});
  EXPECT_EQ(absent_in("ranks [ are the lagging ranks that caused this timeout\n"), Ranks{});
  EXPECT_EQ(absent_in("[missing ranks: ]\n"), Ranks{});
}

TEST(AbsentLog, AListEndsWithTheFirstOtherLineOfItsWriter) {
  EXPECT_EQ(absent_in("Missing ranks:\n2: [grad.1]\nstep 5\n3: [grad.1]\n"), (Ranks{2}));
  EXPECT_EQ(absent_in("[1,0]<stderr>:Missing ranks:\n[1,4]<stderr>:7: [grad.1]\n[1,0]<stderr>:2: [grad.1]\n"),
            (Ranks{2}));
  std::string text = "Missing ranks:\n";
  for (int rank = 0; rank < 10'000; ++rank) text += std::to_string(rank) + ": [grad.1]\n";
  EXPECT_LE(absent_in(text).size(), 4'096U);
}

TEST(DeviceLog, XidsOfOldAndNewDrivers) {
  const auto now = only<DeviceFault>(
      "[Tue Jan  2 13:20:11 2024] NVRM: Xid (PCI:0000:9D:00): 79, pid=4711, name=python, GPU has fallen off the bus.");
  EXPECT_EQ(now.xid, 79);
  EXPECT_EQ(now.bus_id, "0000:9d:00");
  const auto older = only<DeviceFault>("May  1 10:00:00 node-a kernel: NVRM: Xid (0000:1b:00): 48, Some text");
  EXPECT_EQ(older.xid, 48);
  EXPECT_EQ(older.bus_id, "0000:1b:00");
  const auto in_words = only<DeviceFault>("NVRM: GPU 0000:1b:00.0: GPU has fallen off the bus.");
  EXPECT_EQ(in_words.xid, std::nullopt);
  EXPECT_EQ(in_words.bus_id, "0000:1b:00");
}

TEST(DeviceLog, OtherAndBrokenLinesAreNoFaults) {
  for (const char* line : {"NVRM: GPU at PCI:0000:9d:00: GPU-3f1e7b11-0000", "NVRM: Xid (PCI:0000:9d:00",
                           "NVRM: Xid (): ", "NVRM: Xid (PCI:0000:9d:00): x",
                           "NVRM: ", "NVRM: loading NVIDIA UNIX x86_64 Kernel Module"}) {
    EXPECT_TRUE(facts_of<DeviceFault>(read_log_text(std::string(line) + "\n")).empty()) << line;
  }
}

TEST(WorkerLog, RaysDescriptionEndsWhereItIsNotIndented) {
  const auto pid_of = [](const std::string& text) { return events_of<ProcessEnd>(read_log_text(text)).at(0).pid; };
  const std::string died = "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n";
  EXPECT_EQ(pid_of(died + "        actor_id: 07\n        pid: 812\n"), 812);
  EXPECT_EQ(pid_of(died + "done\n        pid: 812\n"), std::nullopt);
  EXPECT_EQ(pid_of(died), std::nullopt);
}

TEST(WorkerLog, BrokenLinesNameNobody) {
  for (const char* line :
       {"Worker proc VllmWorker-x died unexpectedly", "RayWorkerProc rank=[] died unexpectedly", "scheduler is dead",
        "Rank 99999999999 scheduler is dead", "exits with return code = 0", "Child process with PID 12",
        "torch.multiprocessing.spawn.ProcessExitedException: process 3 terminated with signal NOPE",
        "Worker exit type: SYSTEM_ERROR", "Watchdog timeout (self.watchdog_timeout=-5)"}) {
    for (const LogEvent& event : read_log_text(std::string(line) + "\n").events) EXPECT_FALSE(event.rank) << line;
  }
}

TEST(LogWriters, RanksWhoseLinesSayNothingAreHeard) {
  const auto heard = [](const std::string& text, const std::string& path = "job.log") {
    return read_log_text(text, path).inputs.front().ranks.text();
  };
  EXPECT_EQ(heard("[rank3]: loading\n[rank1]: loading\n[1,4]<stdout>:loading\n"), "1,3,4");
  EXPECT_EQ(heard("loading\n", "logs/rank_5.log"), "5");
  EXPECT_EQ(heard("", "logs/rank_5.log"), "none");
  EXPECT_EQ(heard("[rankings]: x\n[12:30:01] y\n[1]: z\n"), "none");
}

}  // namespace
}  // namespace ddx::formats
