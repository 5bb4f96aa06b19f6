#include <gtest/gtest.h>

#include "base/printable.h"
#include "tests/traces/formats/log/log_test_support.h"
#include "traces/formats/log_scan.h"

namespace ddx::formats {
namespace {

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = code_point_at(text, at).length;
    if (length == 1 && static_cast<unsigned char>(text[at]) >= 0x80) return false;
    at += length;
  }
  return true;
}

TEST(HostileLog, TextIsValidAndBounded) {
  const std::string bad = "[rank1]: KeyError: \xff\xfe\x80 \xed\xa0\x80 \xc0\xaf \x01\x02 " + std::string("\0", 1) +
                          std::string(5'000, 'x');
  const Evidence evidence = read_log_text(bad + "\r\n");
  ASSERT_EQ(evidence.events.size(), 1U);
  EXPECT_LE(evidence.events[0].text.size(), 400U);
  EXPECT_TRUE(is_utf8(evidence.events[0].text));
  EXPECT_TRUE(is_utf8(std::get<ProcessEnd>(evidence.events[0].fact).what));
  EXPECT_EQ(evidence.events[0].text.find('\x01'), std::string::npos);
}

TEST(HostileLog, ACharacterIsNotCutInTwo) {
  // 399 bytes of text, then one character of three.
  const std::string text = printable(std::string(399, 'a') + "\xE2\x82\xAC", 400);
  EXPECT_EQ(text, std::string(399, 'a'));
}

TEST(HostileLog, OfALongLineTheBeginningIsRead) {
  const std::string long_line =
      "[rank1]: ProcessGroupNCCL's watchdog got stuck for 480 seconds " + std::string(3'000'000, 'x');
  const Evidence evidence =
      read_log_text(long_line + "\n[rank2]: ProcessGroupNCCL's watchdog got stuck for 480 seconds\n");
  ASSERT_EQ(evidence.events.size(), 2U);
  EXPECT_EQ(evidence.events[1].line, 2U);
  EXPECT_EQ(evidence.diagnostics.count_of("log.long_line"), 1U);
}

TEST(HostileLog, EventsAreBounded) {
  ImportOptions options;
  options.max_events_per_file = 10;
  std::string text;
  for (int i = 0; i < 50; ++i) text += "node-a:1:2 [0] init.cc:1 NCCL WARN text\n";
  const Evidence evidence = read_log_text(text, "job.log", options);
  EXPECT_EQ(evidence.events.size(), 10U);
  EXPECT_EQ(evidence.diagnostics.count_of("log.too_many_events"), 40U);
}

TEST(HostileLog, EveryCutOfEveryKindOfLine) {
  const std::string text =
      "[rank0]:[E1129 10:00:00.123456789 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective operation "
      "timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, TensorShape=[1, 2], Timeout(ms)=10) ran for 10 milliseconds\n"
      "[1,0]<stdout>:[2026-11-29 10:00:00] node-a:1:2 [0] a.cc:1 (f) NCCL WARN Call to recv from 192.0.2.1<1> failed : "
      "Broken pipe\n"
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nDuring handling of the above "
      "exception\nKeyError: 1\n"
      "Failures:\n[0]:\n rank : 1 (local_rank: 1)\n exitcode : -9 (pid: 1)\n=====\n#0-0 (00000000deadbeef) ERROR\n  "
      "Rank 1 reported x -- GPU 1 managed by process 1 on node a\n"
      "srun: error: a: tasks 1-3: Killed\nterminate called after throwing an instance of 'x'\n  what(): y\nWORLD INFO "
      "DICT: {'a': [0, 1]}\n# Using devices\n# Rank 0 Group 0 Pid 1 on a device 0 [0x0f] x\n";
  for (std::size_t size = 0; size <= text.size(); ++size) {
    const Evidence evidence = read_log_text(text.substr(0, size));
    EXPECT_LE(evidence.events.size(), 20U);
    for (std::size_t i = 1; i < evidence.events.size(); ++i)
      EXPECT_LE(evidence.events[i - 1].line, evidence.events[i].line);
  }
}

TEST(HostileLog, NumbersBeyondAllBounds) {
  for (const char* line :
       {"[rank99999999999999999999]: ProcessGroupNCCL's watchdog got stuck for 99999999999999999999 seconds",
        "[rank2147483648]: ProcessGroupNCCL's watchdog got stuck for 9223372036854775807 seconds",
        "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=-1, OpType=, TensorShape=[9223372036854775807, "
        "9223372036854775807], Timeout(ms)=-5) ran for 9223372036854775807 milliseconds",
        "Waiting in store based barrier to initialize process group for rank: -7, key: k (world_size=-1, "
        "worker_count=99999999999999999999, timeout=99999999 days, 9:9:9)",
        "node-a:99999999999999999999:1 [-5] NCCL INFO AllReduce: opCount ffffffffffffffffff sendbuff 0 recvbuff 0 "
        "count 18446744073709551616 datatype 99 op -9 root -99999999999 comm 0x [nranks=-1] stream",
        "node-a:1:1 [0] NCCL INFO ncclCommInitRank comm 0x1 rank -5 nranks 99999999999 cudaDev -1 busId commId parent "
        "0x1 - Init COMPLETE",
        "srun: error: a: tasks 0-4000000000: Killed",
        "mpirun noticed that process rank -1 with PID x on node exited on signal 999 (?)", "WORLD INFO DICT: {'a': [",
        "10000000000000000000/3 attempts left; will restart worker group", "restart_count=-5",
        "#99999999999999999999-1 (00000000deadbeef) ERROR", "[::::]: [[[[[[]]]]]] \x1b[\x1b]\x1b"}) {
    SCOPED_TRACE(line);
    const Evidence evidence = read_log_text(line);
    EXPECT_LE(evidence.events.size(), 2U);
  }
}

// Quadratic work would take minutes, and so run into ctest's time-out.
TEST(HostileLog, ManyProcessesSourcesAndCommunicators) {
  std::string text;
  for (int i = 0; i < 60'000; ++i) {
    const std::string n = std::to_string(i);
    text += "[1," + n + "]<stdout>:node-a:" + n +
            ":1 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x1 count 1 datatype 7 op 0 root 0 comm 0x" +
            n + " [nranks=60000] stream 0x0\n";
    text += "node-b:1:1 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x1 count 1 datatype 7 op 0 root " +
            n + " comm 0x" + n + " [nranks=2] stream 0x" + n + "\n";
    text += "[1," + n + "]<stdout>:Traceback (most recent call last):\n";
  }
  const Evidence evidence = read_log_text(text);
  EXPECT_EQ(evidence.trace.ranks.size(), 60'001U);
  std::size_t calls = 0;
  for (const RankRecord& record : evidence.trace.ranks) calls += evidence.trace.program(record).size();
  EXPECT_EQ(calls, 120'000U);
}

TEST(HostileLog, SameBytesSameEvidence) {
  const std::string text = "[rank1]: KeyError: 1\nnode-a:1:2 [0] init.cc:1 NCCL WARN a\n[rank0]: step 1\n";
  const Evidence a = read_log_text(text);
  const Evidence b = read_log_text(text);
  ASSERT_EQ(a.events.size(), b.events.size());
  for (std::size_t i = 0; i < a.events.size(); ++i) {
    EXPECT_EQ(a.events[i].line, b.events[i].line);
    EXPECT_EQ(a.events[i].text, b.events[i].text);
    EXPECT_EQ(a.events[i].fact.index(), b.events[i].fact.index());
  }
}

}  // namespace
}  // namespace ddx::formats
