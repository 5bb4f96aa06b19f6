#include "traces/formats/process_log.h"

#include <gtest/gtest.h>

#include "tests/traces/formats/log/log_test_support.h"

namespace ddx::formats {
namespace {

using Kind = ProcessEnd::Kind;

TEST(ProcessLog, ATracebackEndsInItsException) {
  const std::string text =
      "Traceback (most recent call last):\n"
      "  File \"/work/run.py\", line 10, in <module>\n"
      "    main()\n"
      "    ^^^^^^\n"
      "  File \"/work/train.py\", line 565, in load_state_dict\n"
      "    value = state['_sample_idx']\n"
      "  File \"/usr/lib/python3/dist-packages/torch/serialization.py\", line 9, in load\n"
      "    return x\n"
      "KeyError: '_sample_idx'\n";
  const auto ends = events_of<ProcessEnd>(read_log_text(text, "rank2.log"));
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends[0].rank, RankId(2));
  EXPECT_EQ(ends[0].line, 9U);
  const auto& end = std::get<ProcessEnd>(ends[0].fact);
  EXPECT_EQ(end.kind, Kind::exception);
  EXPECT_EQ(end.what, "KeyError: '_sample_idx'");
  EXPECT_EQ(end.call_site, "/work/train.py:565 in load_state_dict");
  EXPECT_FALSE(end.secondary);
}

TEST(ProcessLog, TracebacksOfSeveralRanksInterleave) {
  const std::string text =
      "[rank1]: Traceback (most recent call last):\n"
      "[rank3]: Traceback (most recent call last):\n"
      "[rank1]:   File \"a.py\", line 1, in f\n"
      "[rank3]:   File \"b.py\", line 2, in g\n"
      "2026-11-29 10:00:00,000 INFO something else\n"
      "[rank3]:     boom()\n"
      "[rank3]: ValueError: three\n"
      "[rank1]:     boom()\n"
      "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n";
  const auto ends = events_of<ProcessEnd>(read_log_text(text));
  ASSERT_EQ(ends.size(), 2U);
  EXPECT_EQ(ends[0].rank, RankId(3));
  EXPECT_EQ(std::get<ProcessEnd>(ends[0].fact).what, "ValueError: three");
  EXPECT_EQ(std::get<ProcessEnd>(ends[0].fact).call_site, "b.py:2 in g");
  EXPECT_EQ(ends[1].rank, RankId(1));
  EXPECT_EQ(std::get<ProcessEnd>(ends[1].fact).call_site, "a.py:1 in f");
  EXPECT_FALSE(std::get<ProcessEnd>(ends[1].fact).secondary);
}

TEST(ProcessLog, PrefixesThatNobodyKnowsAreLearntFromTheTraceback) {
  for (const std::string prefix : {"worker-1  | ", "node-a: ", "ERROR 11-29 10:00:00 [core.py:7] "}) {
    SCOPED_TRACE(prefix);
    const auto end =
        only<ProcessEnd>(prefix + "Traceback (most recent call last):\n" + prefix + "  File \"a.py\", line 7, in f\n" +
                         "other | noise\n" + prefix + "AssertionError");
    EXPECT_EQ(end.what, "AssertionError");
    EXPECT_EQ(end.call_site, "a.py:7 in f");
  }
}

TEST(ProcessLog, AChainOfExceptionsIsOneEnd) {
  const auto end = only<ProcessEnd>(
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nKeyError: 'x'\n\n"
      "During handling of the above exception, another exception occurred:\n\n"
      "Traceback (most recent call last):\n  File \"a.py\", line 9, in g\nRuntimeError: no sample\n");
  EXPECT_EQ(end.what, "RuntimeError: no sample");
  EXPECT_EQ(end.call_site, "a.py:9 in g");
  const auto worker = only<ProcessEnd>(
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nKeyError: Caught KeyError in DataLoader "
      "worker process 0.\n"
      "Original Traceback (most recent call last):\n  File \"data.py\", line 3, in __getitem__\nKeyError: 'label'\n");
  EXPECT_EQ(worker.what, "KeyError: 'label'");
  EXPECT_EQ(worker.call_site, "data.py:3 in __getitem__");
  EXPECT_TRUE(
      facts_of<ProcessEnd>(read_log_text("Exception ignored in: <function Pool.__del__ at 0x7f>\nTraceback (most "
                                         "recent call last):\n  File \"a.py\", line 1, in f\nAttributeError: x\n"))
          .empty());
}

struct SecondaryCase {
  std::string line;
  bool secondary;
};

TEST(ProcessLog, ExceptionsThatOnlyReportAPeer) {
  const std::vector<SecondaryCase> cases{
      {"torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1691, remote process exited", true},
      {"RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.1.1]:33077",
       true},
      {"ConnectionResetError: [Errno 104] Connection reset by peer", true},
      {"torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ", true},
      {"RuntimeError: NCCL communicator was aborted on rank 3. Watchdog caught collective operation timeout: "
       "WorkNCCL(SeqNum=1, OpType=ALLREDUCE)",
       true},
      {"RuntimeError: Timed out waiting 1800000ms for recv operation to complete", true},
      {"ValueError: host not found: Name or service not known", true},
      {"BrokenPipeError: [Errno 32] Broken pipe", true},
      {"RuntimeError: CUDA error: an illegal memory access was encountered", false},
      {"torch.cuda.OutOfMemoryError: CUDA out of memory.", false},
      {"torch.distributed.DistNetworkError: The server socket has failed to listen. port: 29500, EADDRINUSE, Address "
       "already in use",
       false},
      {"FileNotFoundError: [Errno 2] No such file or directory: 'data.bin'", false},
  };
  for (const SecondaryCase& c : cases) {
    SCOPED_TRACE(c.line);
    const auto ends = facts_of<ProcessEnd>(
        read_log_text("Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n" + c.line + "\n"));
    ASSERT_EQ(ends.size(), 1U);
    EXPECT_EQ(ends[0].secondary, c.secondary);
  }
}

TEST(ProcessLog, OrdinaryLinesAreNoExceptions) {
  for (const char* line :
       {"Error: could not open cache, retrying", "ERROR: Error: bad", "epoch: 3", "the KeyError: was handled",
        "ncclUnhandledCudaError: Call to CUDA function failed.", "I saw Killed: it was good"}) {
    EXPECT_TRUE(facts_of<ProcessEnd>(read_log_text(line)).empty()) << line;
  }
}

struct EndCase {
  std::string text;
  Kind kind;
  std::optional<std::int64_t> signal, code;
  std::optional<int> rank;
};

TEST(ProcessLog, SignalsCodesAndKillers) {
  const std::vector<EndCase> cases{
      {"12:00:06.981 Fatal Python error: Segmentation fault", Kind::signal, 11, std::nullopt, std::nullopt},
      {"Fatal Python error: Bus error", Kind::signal, 7, std::nullopt, std::nullopt},
      {"[rank2]: Fatal Python error: Aborted", Kind::abort, 6, std::nullopt, 2},
      {"[node-a:07215] Signal: Segmentation fault (11)", Kind::signal, 11, std::nullopt, std::nullopt},
      {"[node-a:1234 :0:1234] Caught signal 11 (Segmentation fault: address not mapped to object at address (nil))",
       Kind::signal, 11, std::nullopt, std::nullopt},
      {"YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)", Kind::signal, 9, std::nullopt,
       std::nullopt},
      {"Killed", Kind::signal, 9, std::nullopt, std::nullopt},
      {"[0]<stderr>:Killed", Kind::signal, 9, std::nullopt, 0},
      {"Segmentation fault (core dumped)", Kind::signal, 11, std::nullopt, std::nullopt},
      {"/var/spool/job191: line 28:  8156 Killed                  python3 main.py", Kind::signal, 9, std::nullopt,
       std::nullopt},
      {"srun: error: node-a: task 3: Killed", Kind::signal, 9, std::nullopt, 3},
      {"srun: error: node-a: task 0: Exited with exit code 1", Kind::exit_code, std::nullopt, 1, 0},
      {"srun: error: node-a: task 4: Out Of Memory", Kind::oom_kill, 9, std::nullopt, 4},
      {"srun: error: node-a: task 289: Bus error", Kind::signal, 7, std::nullopt, 289},
      {"mpirun noticed that process rank 2 with PID 31203 on node node-b exited on signal 9 (Killed).", Kind::signal, 9,
       std::nullopt, 2},
      {"  Process name: [[5123,1],3]\n  Exit code:    139", Kind::exit_code, 11, 139, 3},
      {"Process 3 exit with status code 137.", Kind::exit_code, 9, 137, 3},
      {"[1234.5] Out of memory: Killed process 4711 (python3) total-vm:1kB", Kind::oom_kill, 9, std::nullopt,
       std::nullopt},
      {"Nov 29 10:00:00 node-a kernel: Memory cgroup out of memory: Killed process 4711 (python)", Kind::oom_kill, 9,
       std::nullopt, std::nullopt},
      {"slurmstepd: error: Detected 1 oom_kill event in StepId=11300781.0. Some of the step tasks have been OOM "
       "Killed.",
       Kind::oom_kill, 9, std::nullopt, std::nullopt},
      {"      Reason:       OOMKilled", Kind::oom_kill, 9, std::nullopt, std::nullopt},
      {"terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc", Kind::abort, 6,
       std::nullopt, std::nullopt},
  };
  for (const EndCase& c : cases) {
    SCOPED_TRACE(c.text);
    const auto ends = events_of<ProcessEnd>(read_log_text(c.text + "\n"));
    ASSERT_EQ(ends.size(), 1U);
    const auto& end = std::get<ProcessEnd>(ends[0].fact);
    EXPECT_EQ(end.kind, c.kind);
    EXPECT_EQ(end.signal, c.signal);
    EXPECT_EQ(end.exit_code, c.code);
    EXPECT_EQ(ends[0].rank, c.rank ? std::optional(RankId(std::int64_t{*c.rank})) : std::nullopt);
    EXPECT_FALSE(end.secondary);
  }
}

TEST(ProcessLog, TheKernelSaysAnOomKillTwice) {
  const auto ends =
      events_of<ProcessEnd>(read_log_text("oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),task=python,pid=4711,"
                                          "uid=0\nMemory cgroup out of memory: Killed process 4711 (python)\n"));
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends[0].pid, 4'711);
}

TEST(ProcessLog, SrunNamesManyTasksAtOnce) {
  const auto ends = events_of<ProcessEnd>(read_log_text("srun: error: node-b: tasks 1-3,7: Out Of Memory\n"));
  ASSERT_EQ(ends.size(), 4U);
  EXPECT_EQ(ends[0].rank, RankId(1));
  EXPECT_EQ(ends[3].rank, RankId(7));
  EXPECT_EQ(ends[0].host, "node-b");
}

TEST(ProcessLog, AnAbortByTheWatchdogIsAConsequence) {
  const Evidence evidence = read_log_text(
      "[rank2]: terminate called after throwing an instance of 'c10::DistBackendError'\n"
      "[rank2]:   what():  [PG ID 0 PG GUID 0(default_pg) Rank 2] Process group watchdog thread terminated with "
      "exception: x\n"
      "[rank2]: Fatal Python error: Aborted\n");
  const auto ends = facts_of<ProcessEnd>(evidence);
  ASSERT_EQ(ends.size(), 2U);
  EXPECT_TRUE(ends[0].secondary);
  EXPECT_TRUE(ends[1].secondary);
}

TEST(ProcessLog, WhereAFatalErrorHappened) {
  const auto end = only<ProcessEnd>(
      "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f (most recent call first):\n"
      "  File \"/opt/venv/lib/python3.11/site-packages/torch/_ops.py\", line 3 in __call__\n"
      "  File \"model.py\", line 44 in forward\n  File \"train.py\", line 90 in main\n");
  EXPECT_EQ(end.call_site, "model.py:44 in forward");
}

const std::string kTable =
    "============================================================\ntrain.py "
    "FAILED\n------------------------------------------------------------\n"
    "Failures:\n[1]:\n  time      : 2026-11-29_10:00:01\n  host      : node-b\n  rank      : 5 (local_rank: 1)\n  "
    "exitcode  : 1 (pid: 4712)\n"
    "  error_file: <N/A>\n  traceback : To enable traceback see: "
    "https://example.org\n------------------------------------------------------------\n"
    "Root Cause (first observed failure):\n[0]:\n  time      : 2026-11-29_10:00:00\n  host      : node-a\n  rank      "
    ": 2 (local_rank: 2)\n"
    "  exitcode  : -9 (pid: 4711)\n  error_file: <N/A>\n  traceback : Signal 9 (SIGKILL) received by PID 4711\n"
    "============================================================\n";

TEST(ProcessLog, TableOfFailures) {
  for (const bool prefixed : {false, true}) {
    std::string text;
    std::size_t begin = 0;
    while (begin < kTable.size()) {
      const std::size_t end = kTable.find('\n', begin);
      text += (prefixed ? "[1,0]<stderr>:" : "") + kTable.substr(begin, end - begin + 1);
      begin = end + 1;
    }
    const auto failures = events_of<ElasticFailure>(read_log_text(text));
    ASSERT_EQ(failures.size(), 2U);
    const auto& other = std::get<ElasticFailure>(failures[0].fact);
    EXPECT_EQ(other.rank, RankId(5));
    EXPECT_EQ(other.exit_code, 1);
    EXPECT_FALSE(other.root_cause);
    const auto& root = std::get<ElasticFailure>(failures[1].fact);
    EXPECT_EQ(root.rank, RankId(2));
    EXPECT_EQ(root.local_rank, 2);
    EXPECT_EQ(root.exit_code, -9);
    EXPECT_EQ(root.text, "Signal 9 (SIGKILL) received by PID 4711");
    EXPECT_TRUE(root.root_cause);
    EXPECT_EQ(failures[1].host, "node-a");
    EXPECT_EQ(failures[1].pid, 4'711);
    // 2026-11-29 10:00:00, one second before the other.
    EXPECT_EQ(failures[1].time, (20'786LL * 86'400 + 36'000) * kSecond);
    EXPECT_EQ(failures[0].time, (20'786LL * 86'400 + 36'001) * kSecond);
  }
}

TEST(ProcessLog, FirstFailureOfANode) {
  const auto failure = only<ElasticFailure>(
      "E0325 20:57:27.620000 2606 site-packages/torch/distributed/elastic/multiprocessing/api.py:869] failed "
      "(exitcode: -9) local_rank: 5 (pid: 2630) of binary: /usr/bin/python");
  EXPECT_EQ(failure.local_rank, 5);
  EXPECT_EQ(failure.exit_code, -9);
  EXPECT_EQ(failure.rank, std::nullopt);
  EXPECT_TRUE(failure.root_cause);
  EXPECT_TRUE(
      read_log_text(
          "WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 812914 closing signal SIGTERM\n")
          .events.empty());
}

TEST(ProcessLog, AttemptsOfTheJob) {
  const std::string stuck = "[rank0]: ProcessGroupNCCL's watchdog got stuck for 480 seconds\n";
  const Evidence evidence =
      read_log_text(stuck +
                    "[default] Worker group FAILED. 3/3 attempts left; will restart worker group\n"
                    "[default] Rendezvous complete for workers. Result:\n  restart_count=1\n" +
                    stuck + "[default] Worker group FAILED. 2/3 attempts left; will restart worker group\n" + stuck);
  const auto attempts = facts_of<AttemptStart>(evidence);
  ASSERT_EQ(attempts.size(), 2U);
  EXPECT_EQ(attempts[0].attempt, 1U);
  EXPECT_EQ(attempts[1].attempt, 2U);
  const auto events = events_of<HeartbeatStuck>(evidence);
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].attempt, std::nullopt);
  EXPECT_EQ(events[1].attempt, 1U);
  EXPECT_EQ(events[2].attempt, 2U);
}

}  // namespace
}  // namespace ddx::formats
