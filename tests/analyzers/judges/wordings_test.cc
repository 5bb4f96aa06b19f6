// From the words of a log to the findings of all judges together: what each library and launcher writes, and who is
// meant.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/analyzer.h"
#include "tests/analyzers/judges/story.h"
#include "traces/formats/log.h"

namespace ddx::analyzers {
namespace {

using test::brief;
using test::ranks;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using Files = std::vector<std::pair<std::string, std::string>>;  // path, text

// Findings but notes, of files read as logs.
std::vector<Finding> findings_of(const Files& files) {
  Evidence all;
  for (const auto& [path, text] : files) {
    Evidence evidence;
    Input input;
    input.path = path;
    input.format = "log";
    evidence.inputs.push_back(input);
    formats::log_importer().read({path, text}, {}, evidence);
    all.merge(std::move(evidence));
  }
  std::vector<Finding> findings = analyze(all);
  std::erase_if(findings, [](const Finding& finding) { return finding.severity == Severity::info; });
  return findings;
}
std::vector<std::string> told(const Files& files) { return brief(findings_of(files)); }
std::vector<std::string> told(const std::string& text) { return told(Files{{"job.log", text}}); }

std::string timeout_of(int rank, int seq, const std::string& group = "") {
  const std::string r = std::to_string(rank);
  const std::string s = std::to_string(seq);
  std::string text = "[rank" + r + "]:[E501 10:12:00.123 ProcessGroupNCCL.cpp:607] [Rank " + r +
                     "] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=" + s +
                     ", OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for 600024 milliseconds "
                     "before timing out.\n";
  if (!group.empty()) {
    text += "[rank" + r + "]:[E501 10:12:00.124 ProcessGroupNCCL.cpp:1785] [" + group + " Rank " + r +
            "] Exception (either an error or timeout) detected by watchdog at work: " + s +
            ", last enqueued NCCL work: " + s + ", last completed NCCL work: " + std::to_string(seq - 1) + ".\n";
  }
  return text;
}

// ---- who belongs to the job -----------------------------------------------------------------------------------------

TEST(Members, ARankThatWritesNothingOfInterestIsHeardAllTheSame) {
  const std::string text = "[rank3]: loading shard 3\n" + timeout_of(0, 41) + timeout_of(1, 41) + timeout_of(2, 41);
  EXPECT_THAT(told(text), ElementsAre("missing-ranks error low 3"));
}

TEST(Members, ARanksOwnLogThatFellSilent) {
  for (const int silent : {5, 7}) {
    Files files;
    for (int rank = 0; rank < 8; ++rank) {
      std::string text = "2024-05-01 10:00:39,000 INFO step 39 loss 2.31\n";
      if (rank != silent) text += timeout_of(rank, 41, "PG ID 0 PG GUID 0(default_pg)");
      files.emplace_back("rank_" + std::to_string(rank) + ".log", text);
    }
    EXPECT_THAT(told(files), ElementsAre("missing-ranks error medium " + std::to_string(silent)));
  }
}

TEST(Members, TwoVoicesOfACommunicatorOfEightAreNotAll) {
  const std::string text =
      "node-a:900:990 [0] NCCL INFO ncclCommInitRank comm 0x550 rank 0 nranks 8 cudaDev 0 nvmlDev 0 busId 1b000 commId "
      "0xab1 - Init COMPLETE\n" +
      timeout_of(0, 41) + timeout_of(1, 41);
  const auto findings = findings_of({{"job.log", text}});
  ASSERT_THAT(brief(findings), ElementsAre("timeout error low none"));
  EXPECT_THAT(findings[0].explanation, HasSubstr("Nothing is here from ranks 2-7."));
}

TEST(Members, ATableOfRasTellsHowManyThereAre) {
  const std::string ras =
      "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
      "    #  in group  per comm  per node  per comm  in group\n"
      "    0         1        32         8       256       256   RUNNING      OK\n";
  const auto findings = findings_of({{"ras.txt", ras}, {"rank118.log", timeout_of(118, 2398459)}});
  ASSERT_THAT(brief(findings), ElementsAre("timeout error low none"));
  EXPECT_THAT(findings[0].explanation, HasSubstr("ranks 0-117,119-255"));
}

TEST(Members, WhoIsHeardIsNotSaidToBeNowhere) {
  std::string text = timeout_of(0, 2) + timeout_of(2, 2);
  for (const char* rank : {"1", "3"}) text += "[rank" + std::string(rank) + "]: started\n";
  const auto findings = findings_of({{"job.log", text}});
  ASSERT_THAT(brief(findings), ElementsAre("timeout error low none"));  // two against two
  EXPECT_THAT(findings[0].explanation, HasSubstr("Other lines of ranks 1,3 are here, but no time-out."));
  EXPECT_THAT(findings[0].explanation, Not(HasSubstr("Nothing is here from")));
}

TEST(Members, AllOfAGroupThatTorch24Numbers) {
  std::string text;
  for (const int rank : {0, 4, 3, 2, 7, 1, 6, 5}) text += timeout_of(rank, 1580, "PG 1");
  EXPECT_THAT(told(text), ElementsAre("stuck-in-collective error low none"));
}

TEST(Members, APartOfTheJobIsNotAll) {
  std::string text = "[rank4]: step\n[rank5]: step\n[rank6]: step\n[rank7]: step\n";
  for (int rank = 0; rank < 4; ++rank) text += timeout_of(rank, 1580, "PG 1");
  EXPECT_THAT(told(text), ElementsAre("timeout error low none"));
}

TEST(Members, BehindByItsOwnStatusAndStuckThere) {
  std::string text = timeout_of(5, 40, "PG ID 0 PG GUID 0(default_pg)");
  for (const int rank : {0, 1, 2, 3, 4, 6, 7}) text += timeout_of(rank, 41, "PG ID 0 PG GUID 0(default_pg)");
  const auto findings = findings_of({{"job.log", text}});
  ASSERT_THAT(brief(findings), ElementsAre("missing-ranks error low 5"));
  EXPECT_THAT(findings[0].explanation, HasSubstr("still waits in an earlier operation"));
}

TEST(Members, TheAnswerToADumpSignalShowsWhoIsBehind) {
  std::string text;
  for (const int rank : {0, 1, 2, 3, 4, 6, 7}) text += timeout_of(rank, 39892, "PG ID 0 PG GUID 0(default_pg)");
  text +=
      "[rank5]:[E703 17:54:17.9 ProcessGroupNCCL.cpp:1683] [PG ID 0 PG GUID 0(default_pg) Rank 5] Received a dump "
      "signal "
      "due to a collective timeout from  rank 2 and we will try our best to dump the debug info. Last enqueued NCCL "
      "work: 39891, last completed NCCL work: 39891.\n";
  const auto findings = findings_of({{"job.log", text}});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].code, "missing-ranks");
  EXPECT_EQ(findings[0].ranks, ranks({5}));
}

// ---- who ended ------------------------------------------------------------------------------------------------------

TEST(Ends, TheWatchdogMeetsAnErrorOfItsOwnDevice) {
  const std::string text =
      "[rank3]:[E909 09:45:40.996 ProcessGroupNCCL.cpp:1515] [PG 0 (default_pg) Rank 3] Process group watchdog thread "
      "terminated with exception: CUDA error: an illegal memory access was encountered\n"
      "terminate called after throwing an instance of 'c10::DistBackendError'\n" +
      timeout_of(0, 2070) + timeout_of(1, 2070) + timeout_of(2, 2070);
  EXPECT_THAT(told(text), ElementsAre("dead-rank error high 3"));
}

TEST(Ends, TheWatchdogsWordOfAPeerIsAReport) {
  const std::string text =
      "[rank1]: NCCL watchdog thread terminated with exception: NCCL error: remote process exited or there was a "
      "network "
      "error, NCCL version 2.19.3\n"
      "[rank3]: Traceback (most recent call last):\n"
      "[rank3]:   File \"train.py\", line 5, in main\n"
      "[rank3]: KeyError: 'x'\n";
  EXPECT_THAT(told(text), ElementsAre("dead-rank error high 3"));
}

TEST(Ends, SupervisorsNameTheirWorkers) {
  EXPECT_THAT(told("(EngineCore_DP0 pid=265) ERROR 11-21 23:27:12 [multiproc_executor.py:149] Worker proc VllmWorker-2 "
                   "died unexpectedly, shutting down executor.\n"
                   "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.\n"),
              ElementsAre("dead-rank error high 2"));
  EXPECT_THAT(told("ERROR RayWorkerProc rank=[3] died unexpectedly, shutting down executor.\n"),
              ElementsAre("dead-rank error high 3"));
  EXPECT_THAT(told("[2026-09-01 10:00:00] Rank 3 scheduler is dead. Please check if there are relevant logs.\n"),
              ElementsAre("dead-rank error high 3"));
  EXPECT_THAT(told("[rank: 3] Child process with PID 4711 terminated with code -9. Forcefully terminating all other "
                   "processes to avoid zombies\n"),
              ElementsAre("dead-rank error high 3"));
  EXPECT_THAT(told("[2026-09-01 10:00:00,1] [ERROR] [launch.py:325:sigkill_handler] ['/usr/bin/python', 'train.py', "
                   "'--local_rank=3'] exits with return code = -9\n"),
              ElementsAre("dead-rank error high 3"));
  EXPECT_THAT(told("torch.multiprocessing.spawn.ProcessExitedException: process 3 terminated with signal SIGKILL\n"),
              ElementsAre("dead-rank error high 3"));
}

TEST(Ends, RayNamesAProcessThatALineTiesToItsRank) {
  const std::string ranks_of_processes =
      "(WorkerDict pid=87684) [rank0] rollout step 12\n"
      "(WorkerDict pid=87687) [rank3] rollout step 12\n";
  EXPECT_THAT(
      told(ranks_of_processes +
           "(raylet) A worker died or was killed while executing a task by an unexpected system error. Worker IP "
           "address: 192.0.2.5 Worker port: 42283 Worker PID: 87687 Worker exit type: SYSTEM_ERROR Worker exit "
           "detail: Worker unexpectedly exits with a connection error code 2. End of file.\n"),
      ElementsAre("dead-rank error high 3"));
  EXPECT_THAT(told(ranks_of_processes +
                   "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n"
                   "        class_name: WorkerDict\n"
                   "        pid: 87687\n"
                   "        ip: 192.0.2.5\n"),
              ElementsAre("dead-rank error high 3"));
  EXPECT_THAT(told(ranks_of_processes +
                   "(raylet) A worker died or was killed. Worker IP address: 192.0.2.5 Worker PID: 87687 Worker exit "
                   "type: INTENDED_SYSTEM_EXIT Worker exit detail: Owner's worker exited.\n"),
              IsEmpty());
}

TEST(Ends, AnExceptionThatTheJobOutlivesWasCaught) {
  std::string text;
  for (int step = 0; step < 50; ++step) text += "2024-05-01 10:00:00 INFO step " + std::to_string(step) + " loss 2.3\n";
  const std::string raised =
      "Traceback (most recent call last):\n  File \"/app/data.py\", line 88, in decode\n    img = decode(x)\n"
      "ValueError: corrupt JPEG\n";
  EXPECT_THAT(told(Files{{"rank_1.log", text}, {"rank_2.log", text + raised + text}}), IsEmpty());
  EXPECT_THAT(told(Files{{"rank_1.log", text}, {"rank_2.log", text + raised}}), ElementsAre("dead-rank error high 2"));
  // In a file of all ranks the others finish their step; they cannot go on without it.
  const std::string marked = "[rank1]: Traceback (most recent call last):\n[rank1]: ValueError: corrupt JPEG\n";
  EXPECT_THAT(told(text + marked + "step 50 loss 2.3\n"), ElementsAre("dead-rank error high 1"));
  EXPECT_THAT(told(text + marked + text), IsEmpty());
}

TEST(Ends, ARestartIsNoProofThatAnExceptionWasCaught) {
  const std::string text =
      "NCCL version 2.21.5+cuda12.4\nstep 1 loss 2.3\nTraceback (most recent call last):\nValueError: corrupt JPEG\n"
      "NCCL version 2.21.5+cuda12.4\nstep 1 loss 2.3\nstep 2 loss 2.3\n";
  EXPECT_THAT(told(Files{{"rank_2.log", text}}), ElementsAre("dead-rank error high 2"));
}

TEST(Ends, WorkAfterAnExceptionBesideAHangLeavesItOpen) {
  const std::string raised = "[rank2]: Traceback (most recent call last):\n[rank2]: ValueError: corrupt JPEG\n";
  const std::string text =
      "[rank2]: step 9 loss 2\n" + raised + "[rank2]: step 10 loss 2\n" + timeout_of(0, 41) + timeout_of(1, 41);
  EXPECT_THAT(told(text), ElementsAre("dead-rank error low 2"));
}

TEST(Ends, ARankIsKnownBehindAnyPrefix) {
  for (const char* prefix : {"node-a: ", "192.0.2.5: ", "2024-05-01 10:00:00\t", "May  1 10:00:00 node-a train[123]: ",
                             "train[123]: ", "2024-05-01 10:00:00,123 - root - ERROR - ",
                             "ERROR:root:", "2024-05-01 10:00:00 ERROR trainer: ", "i.pretrain/0 ", "default0 "}) {
    std::string text;
    for (const char* line : {"Traceback (most recent call last):", "  File \"/app/train.py\", line 12, in main",
                             "    x", "KeyError: 'x'"}) {
      text += prefix + std::string("[rank2]: ") + line + "\n";
    }
    EXPECT_THAT(told(text), ElementsAre("dead-rank error high 2")) << prefix;
  }
  EXPECT_THAT(told("[1,mpirank:2,algo-1]<stderr>:Traceback (most recent call last):\n"
                   "[1,mpirank:2,algo-1]<stderr>:KeyError: 'x'\n"),
              ElementsAre("dead-rank error high 2"));
}

TEST(Ends, EnginesNumberTheirWorkersInPrefixes) {
  const auto raised = [](const std::string& prefix) {
    return prefix + "Traceback (most recent call last):\n" + prefix + "torch.OutOfMemoryError: CUDA out of memory.\n";
  };
  EXPECT_THAT(told(raised("(Worker_TP3 pid=78025) ERROR 10-22 09:41:12 [multiproc_executor.py:671] ")),
              ElementsAre("dead-rank error high 3"));
  EXPECT_THAT(told(raised("(VllmWorker rank=3 pid=78025) ERROR 10-22 09:41:12 [multiproc_executor.py:671] ")),
              ElementsAre("dead-rank error high 3"));
  EXPECT_THAT(told("[2026-09-01 10:00:00 TP3] Scheduler hit an exception: Traceback (most recent call last):\n"
                   "  File \"/app/x.py\", line 1, in f\nRuntimeError: bad\n"),
              ElementsAre("dead-rank error high 3"));
  // Of several stages or replicas the number is not a rank.
  EXPECT_THAT(told(raised("(Worker_PP1_TP3 pid=78025) ERROR 10-22 09:41:12 [multiproc_executor.py:671] ")),
              ElementsAre("dead-rank error medium none"));
}

TEST(Ends, ACheckpointNamesWhoseErrorAllRaise) {
  EXPECT_THAT(told("[rank0]: torch.distributed.checkpoint.api.CheckpointException: CheckpointException "
                   "ranks:dict_keys([5])\n"
                   "[rank0]: Traceback (most recent call last): (RANK 5)\n"
                   "[rank0]:   File \"/app/io.py\", line 3, in read\n"
                   "[rank0]: FileNotFoundError: [Errno 2] No such file or directory: 'x.distcp'\n"),
              ElementsAre("dead-rank error high 5"));
}

TEST(Ends, AnErrorOfTheOwnDeviceThatNcclPassesOn) {
  EXPECT_THAT(
      told("[rank4]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled cuda "
           "error (run with NCCL_DEBUG=INFO for details), NCCL version 2.19.3\n" +
           timeout_of(0, 3) + timeout_of(1, 3)),
      ElementsAre("dead-rank error high 4"));
}

// ---- who did not come -----------------------------------------------------------------------------------------------

TEST(Absent, GlooNamesThem) {
  EXPECT_THAT(told("[rank0]: RuntimeError: [Rank 0]: Ranks 4, 5, 6, 7 failed to pass monitoredBarrier in 2000000 ms\n"),
              ElementsAre("missing-ranks error medium 4-7"));
  EXPECT_THAT(told("[E ProcessGroupGloo.cpp:138] [Rank 0]: Rank 5 failed to pass monitoredBarrier in 30000 ms\n"),
              ElementsAre("missing-ranks error medium 5"));
}

TEST(Absent, TheDesyncReportNamesThem) {
  EXPECT_THAT(
      told("[E ProcessGroupNCCL.cpp:828] [Rank 0] Watchdog caught collective operation timeout: "
           "WorkNCCL(SeqNum=5, OpType=ALLREDUCE, Timeout(ms)=10000) ran for 10020 milliseconds before timing out.\n"
           "\t - [0] Timeout at collective: ALLREDUCE, #5\n"
           "\t - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:\n"
           "\t     [2] finished collective #4, but didn't join collective #5 (count from 1)\n"),
      ElementsAre("missing-ranks error medium 2"));
  EXPECT_THAT(
      told("\t - To our best knowledge, ranks [1, 2] are the lagging ranks that caused this timeout. They never "
           "joined any collectives\n"),
      ElementsAre("missing-ranks error medium 1,2"));
}

TEST(Absent, HorovodNamesThem) {
  EXPECT_THAT(
      told("[1,0]<stderr>:[2022-10-31 10:00:00.113712: W horovod/common/stall_inspector.cc:107] One or more "
           "tensors were submitted to be reduced by subset of ranks.\n"
           "[1,0]<stderr>:Missing ranks:\n"
           "[1,0]<stderr>:2: [DistributedOptimizer_Allreduce/grad.1, DistributedOptimizer_Allreduce/grad.2 ...]\n"
           "[1,0]<stderr>:3: [DistributedOptimizer_Allreduce/grad.1 ...]\n"
           "[1,0]<stderr>:4 is not in the list\n"),
      ElementsAre("missing-ranks error medium 2,3"));
  EXPECT_THAT(told("DistributedAllreduce_3 [missing ranks: 1, 3]\n"), ElementsAre("missing-ranks error medium 1,3"));
}

TEST(Absent, TheCoordinationServiceNamesThem) {
  EXPECT_THAT(told("DEADLINE_EXCEEDED: Barrier timed out. # of tasks that reached the barrier: 15/16. Some timed out "
                   "task names:\n/job:jax_worker/replica:0/task:12\n"),
              ElementsAre("missing-ranks error medium 12"));
}

TEST(Absent, LogsThatAreHereTellWhichOfThreeCameToTheStore) {
  const std::string of_zero =
      "[rank0]: Traceback (most recent call last):\n[rank0]:   File \"train.py\", line 88, in <module>\n"
      "[rank0]: torch.distributed.DistStoreError: Timed out after 901 seconds waiting for clients. 3/4 clients "
      "joined.\n";
  EXPECT_THAT(told(Files{{"rank_0.log", of_zero},
                         {"rank_1.log", "[rank1]: init_process_group(backend=nccl)\n"},
                         {"rank_3.log", "[rank3]: init_process_group(backend=nccl)\n"}}),
              ElementsAre("rank-missing error low 2"));
  EXPECT_THAT(told(Files{{"rank_0.log", of_zero}}), ElementsAre("rank-missing error low none"));
}

// ---- devices, ports, disks ------------------------------------------------------------------------------------------

TEST(Machine, TheDriversWordAndTheBusIdNameTheRank) {
  std::string text;
  for (const char* at :
       {"node-a:902:992 [2] NCCL INFO comm 0x552 rank 0", "node-b:906:996 [2] NCCL INFO comm 0x556 rank 1"})
    text += std::string(at) + " nranks 2 cudaDev 2 nvmlDev 2 busId 9d000 commId 0xab1 - Init COMPLETE\n";
  text += timeout_of(0, 881);
  const std::string xid =
      "[Tue Jan  2 13:20:11 2024] NVRM: GPU at PCI:0000:9d:00: GPU-3f1e7b11-0000-0000-0000-000000000000\n"
      "[Tue Jan  2 13:20:11 2024] NVRM: Xid (PCI:0000:9d:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off "
      "the "
      "bus.\n";
  EXPECT_THAT(told(Files{{"job.log", text}, {"dmesg.node-b.txt", xid}}), ElementsAre("gpu-fault error high 1"));
  // Of either host: nobody.
  EXPECT_THAT(told(Files{{"job.log", text}, {"dmesg.txt", xid}}), ElementsAre("gpu-fault error medium none"));
}

TEST(Machine, AProgramsOwnFaultIsNotTheDevices) {
  EXPECT_THAT(
      told("[Wed May  1 10:00:00 2024] NVRM: Xid (PCI:0000:1b:00): 45, pid=4711, Ch 00000008\n" + timeout_of(0, 9)),
      ElementsAre("timeout error low none"));
}

TEST(Machine, ARanksOwnWordOfItsMemory) {
  EXPECT_THAT(told("[rank5]: Traceback (most recent call last):\n[rank5]:   File \"/app/train.py\", line 12, in main\n"
                   "[rank5]: RuntimeError: CUDA error: uncorrectable ECC error encountered\n" +
                   timeout_of(0, 41) + timeout_of(1, 41)),
              ElementsAre("gpu-fault error high 5"));
}

TEST(Machine, APortThatIsTaken) {
  const auto findings =
      findings_of({{"job.log",
                    "[rank0]: torch.distributed.DistNetworkError: The server socket has failed to listen on any local "
                    "network address. "
                    "port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use\n"}});
  ASSERT_THAT(brief(findings), ElementsAre("port-blocked error high none"));
  EXPECT_THAT(findings[0].summary, HasSubstr("29500"));
}

TEST(Machine, APortThatIsTakenForOneFamilyOnlyIsHealthy) {
  EXPECT_THAT(told("[W socket.cpp:436] [c10d] The server socket has failed to bind to [::]:29500 (errno: 98 - Address "
                   "already in use).\nstep 1 loss 2.3\n"),
              IsEmpty());
}

TEST(Machine, ADeviceThatIsNotThere) {
  EXPECT_THAT(
      told("[rank5]: Traceback (most recent call last):\n[rank5]:   File \"/app/train.py\", line 12, in main\n"
           "[rank5]:     torch.cuda.set_device(5)\n[rank5]: RuntimeError: CUDA error: invalid device ordinal\n"),
      ElementsAre("device-ordinal error high 5"));
}

TEST(Machine, AFullDisk) {
  EXPECT_THAT(told(Files{{"rank_2.log",
                          "Traceback (most recent call last):\n  File \"/app/ckpt.py\", line 8, in save\n    x()\n"
                          "OSError: [Errno 28] No space left on device\n"},
                         {"rank_1.log", "step 9 loss 2.31\n"}}),
              ElementsAre("disk-low error high 2"));
}

TEST(Machine, TwoHostsOnTheLoopbackNeverMeet) {
  std::string text;
  for (const char* rank : {"0", "1"}) {
    const std::string process = "node" + std::string(rank) + ":100:200 [0] NCCL INFO ";
    text += process + "NET/Socket : Using [0]lo:127.0.0.1<0>\n" + process + "ncclCommInitRank comm 0x55 rank " + rank +
            " nranks 2 cudaDev 0 busId b000 commId 0xabc - Init START\n";
  }
  EXPECT_THAT(told(text), ElementsAre("iface-loopback error high none"));
}

TEST(Machine, NcclsLastErrorAsPyTorchQuotesIt) {
  std::string text;
  for (const char* rank : {"3", "7"}) {
    const std::string prefix = "[rank" + std::string(rank) + "]: ";
    text += prefix +
            "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1727, invalid usage, NCCL version "
            "2.19.3\n" +
            prefix + "Last error:\n" + prefix + "Duplicate GPU detected : rank " + rank +
            " and rank 0 both on CUDA device f000\n";
  }
  EXPECT_THAT(told(text), ElementsAre("device-duplicate error high 0,3,7"));
}

TEST(Machine, TwoRanksOnOneGpuOfWhomNcclNamesNone) {
  const std::string warning =
      " [0] init.cc:1141 (initTransportsRank) NCCL WARN Multiple Ranks are using the same GPU/Partition. Set "
      "NCCL_MULTI_RANK_GPU_ENABLE=1 to enable this configuration.\n";
  EXPECT_THAT(told("node-a:11:21" + warning + "node-a:12:22" + warning),
              ElementsAre("device-duplicate error high none"));
}

TEST(Machine, WhoWarnsOfTheSharedGpuHasCome) {
  const std::string text =
      "node-a:101:201 [0] NCCL INFO comm 0x55a0 rank 0 nranks 8 cudaDev 0 nvmlDev 0 busId 1b000 commId 0x9d2f1 - Init "
      "START\n"
      "node-b:305:401 [0] init.cc:943 NCCL WARN Duplicate GPU detected : rank 4 and rank 5 both on CUDA device 1b000\n";
  EXPECT_THAT(told(text), ElementsAre("device-duplicate error high 4,5"));
}

TEST(Machine, TheEndsOfAConnectionDisagreeOnASize) {
  EXPECT_THAT(told("node-a:1307367:1307586 [0] transport/net_ib.cc:1038 NCCL WARN NET/IB : req 0/1 tag 0 peer "
                   "192.0.2.6<58683> collective mismatch error, local size 496640 remote size 65536\n"),
              ElementsAre("mismatch-size error low none"));
  EXPECT_THAT(
      told("node-a:12:13 [0] NCCL WARN NET/Socket : peer 192.0.2.6<58683> message truncated : receiving 4096 bytes "
           "instead of 1024\n"),
      ElementsAre("mismatch-size error low none"));
}

// ---- checkers -------------------------------------------------------------------------------------------------------

TEST(Checkers, AMeasureWithoutSamplesIsNoNan) {
  EXPECT_THAT(told("[rank0]: step 10 val_acc: nan (no samples)\n[rank0]: step 11 loss 2.31\n"), IsEmpty());
  EXPECT_THAT(told("[rank0]: step 10 val_loss: nan\n"), ElementsAre("nan-values error low none"));
}

TEST(Checkers, RasNamesARankOfWhichItHasNothingElse) {
  const std::string text =
      "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
      "    #  in group  per comm  per node  per comm  in group\n"
      "    0         1         4       7-8        32        31   RUNNING  INCOMPLETE\n\n"
      "DEAD\n  1 job process is considered dead (unreachable via the RAS network)\n"
      "  Process 3487984 on node 192.0.2.13 managing GPU 5\n\n";
  const std::string section =
      "#0-0 (cf264af53edbe986) INCOMPLETE\n  Missing communicator data from 1 rank\n"
      "  The missing rank: 21\n";
  EXPECT_THAT(told(Files{{"ras.txt", text + section}}), ElementsAre("dead-rank error high 21"));
  EXPECT_THAT(told(Files{{"ras.txt", text}}), ElementsAre("dead-rank error medium none"));
}

TEST(Checkers, OneRasReportInTwoFilesIsOneReport) {
  const auto report = [](const std::string& time) {
    return (time.empty() ? "" : "Timestamp: 2025-06-03 " + time + "\n") +
           "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
           "    #  in group  per comm  per node  per comm  in group\n"
           "    0         1         4         8        32        32   RUNNING  MISMATCH\n\n"
           "#0-0 (00000000deadbeef) MISMATCH\n  Communicator ranks have different AllGather operation counts\n"
           "  30 ranks have launched up to operation 640\n  2 ranks have launched up to operation 641\n"
           "  Rank 12 -- GPU 4 managed by process 3230 on node 192.0.2.124\n"
           "  Rank 13 -- GPU 5 managed by process 3231 on node 192.0.2.124\n";
  };
  EXPECT_THAT(told(Files{{"a.txt", report("")}, {"b.txt", report("")}}), IsEmpty());
  EXPECT_THAT(told(Files{{"a.txt", report("17:10:00")}, {"b.txt", report("17:10:00")}}), IsEmpty());
  const auto findings = findings_of({{"a.txt", report("17:10:00")}, {"b.txt", report("17:15:00")}});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].code, "missing-ranks");
}

TEST(Checkers, OneSideOfAMismatchWithoutShapeIsUnknown) {
  EXPECT_THAT(
      told("RuntimeError: Detected mismatch between collectives on ranks. Rank 26 is running collective: "
           "CollectiveFingerPrint(SequenceNumber=683057617, OpType=BROADCAST, TensorShape=[1], TensorDtypes=Long, "
           "TensorDeviceTypes=TensorOptions(dtype=float (default), device=cpu)), but Rank 1 is running collective: "
           "CollectiveFingerPrint(SequenceNumber=513876813OpType=BROADCAST).\n"),
      ElementsAre("checker-suspect warning high none"));
}

TEST(Launch, TwoGroupsOfEightMayBePartsOfOneJob) {
  std::string text;
  for (int process = 0; process < 4; ++process) {
    const std::string host = process < 2 ? "node-a" : "node-b";
    text += host + ":" + std::to_string(1000 + process) + ":2000 [0] NCCL INFO ncclCommInitRank comm 0x55 rank " +
            std::to_string(process % 2) + " nranks 2 cudaDev " + std::to_string(process % 2) + " busId " +
            std::to_string(process % 2) + "b000 commId 0xaa" + (process < 2 ? "0" : "1") + " - Init COMPLETE\n";
  }
  EXPECT_THAT(told(text + "step 1 loss 2.3\n"), IsEmpty());
}

}  // namespace
}  // namespace ddx::analyzers
