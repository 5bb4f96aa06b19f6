// Stacks of threads: faulthandler's dumps, py-spy's, and the tracebacks of calls that timed out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/formats/log/log_test_support.h"
#include "traces/formats/loader.h"

namespace ddx::formats {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::Not;

const std::string kWatcher =
    "Current thread 0x00007ff5ded266c0 (most recent call first):\n"
    "  File \"/home/u/job.py\", line 44 in _watch\n"
    "  File \"/usr/lib/python3.11/threading.py\", line 982 in run\n"
    "  File \"/usr/lib/python3.11/threading.py\", line 1002 in _bootstrap\n"
    "\n";
const std::string kMainInRecv =
    "Thread 0x00007ff5ffc32b80 (most recent call first):\n"
    "  File \"/v/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py\", line 2799 in recv\n"
    "  File \"/v/lib/python3.11/site-packages/torch/distributed/c10d_logger.py\", line 83 in wrapper\n"
    "  File \"/home/u/ring.py\", line 16 in step\n"
    "  File \"/home/u/ring.py\", line 30 in <module>\n";

TEST(StackLog, OfFaulthandlersThreadsTheMainOneIsKept) {
  const auto events = events_of<HostStack>(read_log_text("ready\n" + kWatcher + kMainInRecv));
  ASSERT_EQ(events.size(), 1U);
  const auto& stack = std::get<HostStack>(events[0].fact);
  EXPECT_TRUE(stack.main_thread);
  EXPECT_FALSE(stack.timed_out);
  EXPECT_EQ(stack.distributed_call, "recv");
  EXPECT_EQ(stack.call_site, "/home/u/ring.py:16 in step");
  EXPECT_THAT(stack.frames,
              ElementsAre("/v/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py:2799 in recv",
                          "/v/lib/python3.11/site-packages/torch/distributed/c10d_logger.py:83 in wrapper",
                          "/home/u/ring.py:16 in step", "/home/u/ring.py:30 in <module>"));
  // The line that is shown is the one at which to look.
  EXPECT_EQ(events[0].line, 10U);
  EXPECT_EQ(events[0].text, "File \"/home/u/ring.py\", line 16 in step");
}

TEST(StackLog, ADumpEndsNoProcess) {
  EXPECT_THAT(facts_of<ProcessEnd>(read_log_text(kWatcher + kMainInRecv)), IsEmpty());
}

TEST(StackLog, AnotherThreadIsKeptWhereItIsInACollective) {
  const std::string text =
      "Thread 0x01 (most recent call first):\n"
      "  File \"/v/site-packages/torch/distributed/distributed_c10d.py\", line 2700 in send\n"
      "  File \"/home/u/pipe.py\", line 9 in sender\n"
      "  File \"/usr/lib/python3.11/threading.py\", line 1002 in _bootstrap\n\n" +
      kMainInRecv;
  const auto stacks = facts_of<HostStack>(read_log_text(text));
  ASSERT_EQ(stacks.size(), 2U);
  EXPECT_EQ(stacks[0].distributed_call, "send");
  EXPECT_FALSE(stacks[0].main_thread);
  EXPECT_TRUE(stacks[1].main_thread);
}

TEST(StackLog, OfADumpThatWasCutNoThreadIsTakenForTheMainOne) {
  EXPECT_THAT(facts_of<HostStack>(read_log_text(kWatcher)), IsEmpty());
}

TEST(StackLog, EveryDumpOfAProcessIsRead) {
  const auto stacks = events_of<HostStack>(read_log_text(kWatcher + kMainInRecv + "\n" + kWatcher + kMainInRecv));
  ASSERT_EQ(stacks.size(), 2U);
  EXPECT_EQ(stacks[0].line, 9U);
  EXPECT_EQ(stacks[1].line, 20U);
}

TEST(StackLog, PrefixesNameTheRankAndKeepStacksApart) {
  std::string text;
  for (const char* line : {"Thread 0x1 (most recent call first):", "  File \"/home/u/a.py\", line 1 in <module>"}) {
    for (const char* rank : {"[rank0]:", "[rank1]:"}) text += std::string(rank) + " " + line + "\n";
  }
  const auto events = events_of<HostStack>(read_log_text(text));
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].rank, RankId(0));
  EXPECT_EQ(events[1].rank, RankId(1));
  EXPECT_EQ(std::get<HostStack>(events[1].fact).call_site, "/home/u/a.py:1 in <module>");
}

TEST(StackLog, AFatalErrorStaysTheEndOfAProcess) {
  const Evidence evidence = read_log_text(
      "Fatal Python error: Segmentation fault\n\n"
      "Thread 0x00007f01 (most recent call first):\n"
      "  File \"/usr/lib/python3.11/threading.py\", line 320 in wait\n\n"
      "Current thread 0x00007f02 (most recent call first):\n"
      "  File \"/home/u/train.py\", line 7 in step\n"
      "  File \"/home/u/train.py\", line 9 in <module>\n\n"
      "Extension modules: numpy (total: 1)\n");
  EXPECT_THAT(facts_of<HostStack>(evidence), IsEmpty());
  const auto ends = facts_of<ProcessEnd>(evidence);
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends[0].call_site, "/home/u/train.py:7 in step");
}

const std::string kPySpy =
    "Process 4711: python train.py\n"
    "Python v3.11.2 (/usr/bin/python3.11)\n"
    "\n"
    "Thread 4711 (idle): \"MainThread\"\n"
    "    recv (torch/distributed/distributed_c10d.py:2420)\n"
    "        Arguments:\n"
    "            tensor: <Tensor at 0x7f00> (of rank 1)\n"
    "    wrapper (torch/distributed/c10d_logger.py:83)\n"
    "    <module> (train.py:12)\n"
    "Thread 4720 (active+gil): \"Thread-1 (_watch)\"\n"
    "    wait (threading.py:320)\n"
    "    _bootstrap (threading.py:1002)\n";

TEST(StackLog, PySpyAsAFileOfItsOwn) {
  const auto events = events_of<HostStack>(read_log_text(kPySpy, "stacks/pyspy_rank3.txt"));
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].rank, RankId(3));
  EXPECT_EQ(events[0].pid, 4711);
  EXPECT_THAT(std::get<HostStack>(events[0].fact),
              AllOf(Field(&HostStack::main_thread, true), Field(&HostStack::distributed_call, "recv"),
                    Field(&HostStack::call_site, "train.py:12 in <module>"),
                    Field(&HostStack::frames,
                          ElementsAre("torch/distributed/distributed_c10d.py:2420 in recv",
                                      "torch/distributed/c10d_logger.py:83 in wrapper", "train.py:12 in <module>"))));
  EXPECT_EQ(log_importer().sniff("stacks/pyspy_rank3.txt", kPySpy), Sniff::likely);
}

TEST(StackLog, PySpyOfAWaitingThreadThatHoldsNothingOfTheUser) {
  const auto stacks =
      facts_of<HostStack>(read_log_text("Thread 9 (idle): \"MainThread\"\n"
                                        "    epoll_wait (libc.so.6)\n"
                                        "    wait (threading.py:320)\n"
                                        "    get (queue.py:171)\n"));
  ASSERT_EQ(stacks.size(), 1U);
  EXPECT_EQ(stacks[0].call_site, "");
  EXPECT_EQ(stacks[0].frames[0], "libc.so.6 in epoll_wait");
}

TEST(StackLog, AWorkerProcessOfARankIsNotTheRank) {
  const auto stacks =
      facts_of<HostStack>(read_log_text(kPySpy + "\nProcess 4800: python train.py\n"
                                                 "Python v3.11.2 (/usr/bin/python3.11)\n"
                                                 "Parent Process 4711: python train.py\n\n"
                                                 "Thread 4800 (idle): \"MainThread\"\n"
                                                 "    _worker_loop (torch/utils/data/_utils/worker.py:275)\n"
                                                 "    <module> (train.py:3)\n"));
  ASSERT_EQ(stacks.size(), 1U);
  EXPECT_EQ(stacks[0].call_site, "train.py:12 in <module>");
}

const std::string kTimedOut =
    "Traceback (most recent call last):\n"
    "  File \"/home/u/ring.py\", line 30, in <module>\n"
    "    step()\n"
    "  File \"/home/u/ring.py\", line 16, in step\n"
    "    dist.recv(x, 1)\n"
    "    ^^^^^^^^^^^^^^^\n"
    "  File \"/v/site-packages/torch/distributed/distributed_c10d.py\", line 2799, in recv\n"
    "    pg.recv([tensor], src, tag).wait()\n";

TEST(StackLog, ATimeOutTellsWhereItsThreadHadWaited) {
  const Evidence evidence = read_log_text(
      kTimedOut +
      "RuntimeError: [gloo/unbound_buffer.cc:78] Timed out waiting 3000ms for recv operation to complete\n");
  const auto events = events_of<HostStack>(evidence);
  ASSERT_EQ(events.size(), 1U);
  const auto& stack = std::get<HostStack>(events[0].fact);
  EXPECT_TRUE(stack.timed_out && stack.main_thread);
  EXPECT_EQ(stack.distributed_call, "recv");
  EXPECT_EQ(stack.call_site, "/home/u/ring.py:16 in step");
  EXPECT_EQ(stack.frames.front(), "/v/site-packages/torch/distributed/distributed_c10d.py:2799 in recv");
  EXPECT_EQ(events[0].line, 4U);
  EXPECT_EQ(facts_of<ProcessEnd>(evidence).size(), 1U);
}

TEST(StackLog, OtherExceptionsTellNoStack) {
  EXPECT_THAT(facts_of<HostStack>(read_log_text(kTimedOut + "RuntimeError: Connection closed by peer [192.0.2.7]:1\n")),
              IsEmpty());
}

TEST(StackLog, CodeOfTheUserInsideACallIsNotTheCallsWait) {
  const auto stacks = facts_of<HostStack>(read_log_text(
      "Thread 0x1 (most recent call first):\n"
      "  File \"/home/u/sample.py\", line 5 in __reduce__\n"
      "  File \"/v/site-packages/torch/distributed/distributed_c10d.py\", line 2800 in all_gather_object\n"
      "  File \"/home/u/train.py\", line 8 in <module>\n"));
  ASSERT_EQ(stacks.size(), 1U);
  EXPECT_EQ(stacks[0].distributed_call, "");
  EXPECT_EQ(stacks[0].call_site, "/home/u/sample.py:5 in __reduce__");
}

TEST(StackLog, DeepStacksAreKeptToThirtyTwoFrames) {
  std::string text = "Thread 0x1 (most recent call first):\n";
  for (int i = 0; i < 100; ++i) text += "  File \"/home/u/deep.py\", line " + std::to_string(i) + " in f\n";
  const auto stacks = facts_of<HostStack>(read_log_text(text + "  ...\n"));
  ASSERT_EQ(stacks.size(), 1U);
  EXPECT_EQ(stacks[0].frames.size(), 32U);
  EXPECT_EQ(stacks[0].frames.front(), "/home/u/deep.py:0 in f");
}

TEST(StackLog, WhatOtherProgramsSayOfThreadsIsNone) {
  for (const char* line :
       {"Thread pool (idle) has 3 workers", "Process 12: worker started (idle)", "Thread 7 (idle", "Thread (idle)",
        "    recv (torch/distributed/distributed_c10d.py:2420)", "Thread 0x1 is gone (most recent call first)"}) {
    EXPECT_THAT(facts_of<HostStack>(read_log_text(std::string(line) + "\n    f (a.py:1)\nend\n")), IsEmpty()) << line;
  }
}

// Cut anywhere and with any byte changed, a dump gives valid events or none.
TEST(StackLog, BrokenDumps) {
  const std::string text =
      kWatcher + kMainInRecv + kPySpy + kTimedOut + "E: Timed out waiting 1ms for recv operation to complete\n";
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string changed = text;
    for (const char byte : {'\0', '"', '(', ':', '\n', '\xff', '9'}) {
      changed[at] = byte;
      for (const auto& stack : facts_of<HostStack>(read_log_text(changed))) {
        EXPECT_THAT(stack.frames, Not(IsEmpty())) << at;
        EXPECT_LE(stack.call_site.size(), 200U) << at;
      }
    }
    read_log_text(text.substr(0, at));
  }
}

TEST(StackLog, ALineOfAnyNumberIsNoTrap) {
  const auto stacks =
      facts_of<HostStack>(read_log_text("Thread 0x1 (most recent call first):\n"
                                        "  File \"/home/u/a.py\", line 99999999999999999999999 in f\n"
                                        "  File \"/home/u/b.py\", line -5 in g\n"
                                        "  File \"/home/u/c.py\", line ??? in h\n"));
  ASSERT_EQ(stacks.size(), 1U);
  EXPECT_THAT(stacks[0].frames, ElementsAre("/home/u/a.py in f", "/home/u/b.py in g", "/home/u/c.py in h"));
}

// What real jobs left: four ranks that hang in recv, and one that sleeps while the others' calls time out.
TEST(StackLog, RealDumps) {
  const auto stacks_in = [](const std::string& fault) {
    std::vector<std::string> told;
    for (const LogEvent& event :
         events_of<HostStack>(load({DDX_SOURCE_DIR "/tests/e2e/data/" + fault}, LoadOptions{}))) {
      const auto& stack = std::get<HostStack>(event.fact);
      if (!stack.main_thread) continue;
      const std::string site = stack.call_site.substr(stack.call_site.rfind('/') + 1);
      told.push_back(std::to_string(event.rank ? event.rank->value : -1) + " " + stack.distributed_call + "@" + site +
                     (stack.timed_out ? " timed out" : ""));
    }
    return told;
  };
  EXPECT_THAT(stacks_in("p2p_cycle"),
              ElementsAre("0 recv@p2p_cycle.py:16 in <module>", "1 recv@p2p_cycle.py:16 in <module>",
                          "2 recv@p2p_cycle.py:16 in <module>", "3 recv@p2p_cycle.py:16 in <module>"));
  // A rank that timed out was in its exception hook when the dump came.
  EXPECT_THAT(stacks_in("sleeps"),
              ElementsAre("0 all_reduce@sleeps.py:15 in <module> timed out", "0 @job.py:53 in _on_exception",
                          "1 all_reduce@sleeps.py:15 in <module> timed out", "1 @job.py:53 in _on_exception",
                          "2 @sleeps.py:13 in <module>", "3 all_reduce@sleeps.py:15 in <module> timed out",
                          "3 @job.py:53 in _on_exception"));
}

}  // namespace
}  // namespace ddx::formats
