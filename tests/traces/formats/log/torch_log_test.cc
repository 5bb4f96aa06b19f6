#include "traces/formats/torch_log.h"

#include <gtest/gtest.h>

#include "tests/traces/formats/log/log_test_support.h"

namespace ddx::formats {
namespace {

TEST(TorchLog, WatchdogTimeoutsOfSeveralVersions) {
  const auto now = only<WatchdogTimeout>(
      "[rank5]:[E1129 10:00:00.123 ProcessGroupNCCL.cpp:632] [Rank 5] Watchdog caught collective operation timeout: "
      "WorkNCCL(SeqNum=120049, OpType=_ALLGATHER_BASE, NumelIn=16384000, NumelOut=131072000, Timeout(ms)=1800000) ran "
      "for 1800037 milliseconds before timing out.");
  EXPECT_EQ(now.seq, 120'049U);
  EXPECT_EQ(now.op_type, "_ALLGATHER_BASE");
  EXPECT_EQ(now.numel_in, 16'384'000U);
  EXPECT_EQ(now.numel_out, 131'072'000U);
  EXPECT_EQ(now.timeout, 1'800 * kSecond);
  EXPECT_EQ(now.elapsed, 1'800'037 * kMillisecond);

  const auto older = only<WatchdogTimeout>(
      "[E ProcessGroupNCCL.cpp:828] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, "
      "OpType=ALLREDUCE, TensorShape=[20, 10], Timeout(ms)=10000) ran for 10006 milliseconds before timing out.");
  EXPECT_EQ(older.seq, 7U);
  EXPECT_EQ(older.numel_in, 200U);
  EXPECT_EQ(older.numel_out, std::nullopt);

  const auto oldest = only<WatchdogTimeout>(
      "[E ProcessGroupNCCL.cpp:587] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(OpType=BROADCAST, "
      "Timeout(ms)=1800000) ran for 1808499 milliseconds before timing out.");
  EXPECT_EQ(oldest.op_type, "BROADCAST");
  EXPECT_EQ(oldest.timeout, 1'800 * kSecond);

  const auto blocking = only<WatchdogTimeout>(
      "[rank1]: torch.distributed.DistBackendError: Work WorkNCCL(SeqNum=3, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
      "Timeout(ms)=1000) timed out in blocking wait (TORCH_NCCL_BLOCKING_WAIT=1).");
  EXPECT_EQ(blocking.seq, 3U);
  EXPECT_EQ(blocking.numel_in, 1U);

  const auto cut =
      only<WatchdogTimeout>("[rank1]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpTy");
  EXPECT_EQ(cut.seq, 9U);
  EXPECT_EQ(cut.op_type, "");
}

TEST(TorchLog, OneTimeoutIsOneEventAndTakesItsGroupFromTheLinesThatQuoteIt) {
  const std::string watchdog =
      "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=610, OpType=COALESCED, NumelIn=56320, "
      "NumelOut=450560, Timeout(ms)=600000) ran for 600086 milliseconds before timing out.";
  const std::string text =
      "[rank4]:[E318 07:39:53.792630246 ProcessGroupNCCL.cpp:616] [Rank 0] " + watchdog +
      "\n"
      "[rank4]:[E318 07:39:53.792772442 ProcessGroupNCCL.cpp:1785] [PG ID 2 PG GUID 9 Rank 0] Exception (either an "
      "error "
      "or timeout) detected by watchdog at work: 610, last enqueued NCCL work: 616, last completed NCCL work: 609.\n"
      "[rank4]:[E318 07:39:53.792780659 ProcessGroupNCCL.cpp:1834] [PG ID 2 PG GUID 9 Rank 0] Timeout at NCCL work: "
      "610, "
      "last enqueued NCCL work: 616, last completed NCCL work: 609.\n"
      "[rank4]:[E318 07:39:53.8 ProcessGroupNCCL.cpp:1595] [PG ID 2 PG GUID 9 Rank 0] Process group watchdog thread "
      "terminated with exception: [Rank 0] " +
      watchdog + "\n";
  const Evidence evidence = read_log_text(text);
  const auto timeouts = events_of<WatchdogTimeout>(evidence);
  ASSERT_EQ(timeouts.size(), 1U);
  EXPECT_EQ(timeouts[0].rank, RankId(4));
  EXPECT_EQ(timeouts[0].group, "9");
  const auto states = facts_of<WatchdogStatus>(evidence);
  ASSERT_EQ(states.size(), 1U);
  EXPECT_EQ(states[0].failed_seq, 610U);
  EXPECT_EQ(states[0].last_enqueued, 616U);
  EXPECT_EQ(states[0].last_started, std::nullopt);
  EXPECT_EQ(states[0].last_completed, 609U);
}

struct StatusCase {
  std::string line;
  WatchdogStatus status;
  std::string group;
};

TEST(TorchLog, StatusOfAGroupInAllWordings) {
  const std::vector<StatusCase> cases{
      {"[rank5] failure detected by watchdog at work sequence id: 37876 PG status: last enqueued work: 37877, last "
       "completed work: 37875",
       {37'876, 37'877, std::nullopt, 37'875},
       ""},
      {"[rank0]:[E1129 10:00:00.1 ProcessGroupNCCL.cpp:2268] [PG ID 2 PG GUID 3(mesh_dp) Rank 4]  failure detected by "
       "watchdog at work sequence id: 5 PG status: last enqueued work: 7, last started work: 5, last completed work: 4",
       {5, 7, 5, 4},
       "3"},
      {"[rank0]: PG status: last completed work: 4, last started work: 5, last enqueued work: 7",
       {std::nullopt, 7, 5, 4},
       ""},
      {"[rank3]:[E909 09:55:46.996672294 ProcessGroupNCCL.cpp:1709] [PG 0 (default_pg) Rank 3] Timeout at NCCL work: "
       "2070, last enqueued NCCL work: 2082, last completed NCCL work: 2069.",
       {2'070, 2'082, std::nullopt, 2'069},
       "0"},
      {"[rank0]:[E1129 10:00:00.1 ProcessGroupNCCL.cpp:1] [PG 1 Rank 0] Timeout at NCCL work: 1, last enqueued NCCL "
       "work: 2, last completed NCCL work: -1.",
       {1, 2, std::nullopt, 0},
       "1"},
  };
  for (const StatusCase& c : cases) {
    SCOPED_TRACE(c.line);
    const auto events = events_of<WatchdogStatus>(read_log_text(c.line));
    ASSERT_EQ(events.size(), 1U);
    const auto& status = std::get<WatchdogStatus>(events[0].fact);
    EXPECT_EQ(status.failed_seq, c.status.failed_seq);
    EXPECT_EQ(status.last_enqueued, c.status.last_enqueued);
    EXPECT_EQ(status.last_started, c.status.last_started);
    EXPECT_EQ(status.last_completed, c.status.last_completed);
    EXPECT_EQ(events[0].group, c.group);
  }
}

struct BarrierCase {
  std::string line;
  int rank;
  std::int64_t world, joined;
  std::optional<Nanos> timeout;
  bool timed_out;
};

TEST(TorchLog, StoreBarriers) {
  const std::string key = "store_based_barrier_key:1";
  const std::vector<BarrierCase> cases{
      {"[rank0] Waiting in store based barrier to initialize process group for rank: 0, key: " + key +
           " (world_size=2, worker_count=1, timeout=0:10:00)",
       0, 2, 1, 600 * kSecond, false},
      {"INFO:torch.distributed.distributed_c10d:Waiting in store based barrier to initialize process group for rank: "
       "2, "
       "key: " +
           key + " (world_size=4, worker_count=16, timeout=0:01:00)",
       2, 4, 16, 60 * kSecond, false},
      {"Waiting in store based barrier to initialize process group for 10.2 secondsrank: 3, key: " + key +
           " (world_size=8, num_workers_joined=7, timeout=1 day, 0:30:00 error=wait timeout)",
       3, 8, 7, 88'200 * kSecond, false},
      {"RuntimeError: Timed out initializing process group in store based barrier on rank: 2, for key: " + key +
           " (world_size=2, worker_count=4, timeout=0:30:00)",
       2, 2, 4, 1'800 * kSecond, true},
      {"torch.distributed.DistStoreError: Timed out initializing process group in store based barrier on rank 5, for "
       "key: " +
           key + " (world_size=8, num_workers_joined=7, timeout=0:30:00 error=wait)",
       5, 8, 7, 1'800 * kSecond, true},
  };
  for (const BarrierCase& c : cases) {
    SCOPED_TRACE(c.line);
    const auto events = events_of<StoreBarrier>(read_log_text(c.line));
    ASSERT_EQ(events.size(), 1U);
    const auto& barrier = std::get<StoreBarrier>(events[0].fact);
    EXPECT_EQ(barrier.rank, RankId(std::int64_t{c.rank}));
    EXPECT_EQ(events[0].rank, RankId(std::int64_t{c.rank}));
    EXPECT_EQ(barrier.key, key);
    EXPECT_EQ(barrier.world_size, c.world);
    EXPECT_EQ(barrier.worker_count, c.joined);
    EXPECT_EQ(barrier.timeout, c.timeout);
    EXPECT_EQ(barrier.timed_out, c.timed_out);
  }
}

TEST(TorchLog, WhoCameToTheStore) {
  const auto join = only<StoreJoin>(
      "INFO:torch.distributed.distributed_c10d:Added key: store_based_barrier_key:1 to store for rank: 6");
  EXPECT_EQ(join.rank, RankId(6));
  EXPECT_EQ(join.key, "store_based_barrier_key:1");
  const auto clients = only<StoreBarrier>(
      "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.");
  EXPECT_EQ(clients.world_size, 2);
  EXPECT_EQ(clients.worker_count, 1);
  EXPECT_EQ(clients.timeout, 601 * kSecond);
  EXPECT_TRUE(clients.timed_out);
}

struct DeviceCase {
  std::string line;
  std::int64_t device;
  int rank;
};

TEST(TorchLog, GuessedDeviceOfABarrier) {
  const std::vector<DeviceCase> cases{
      {"[rank1] using GPU 0 as device used by this process is currently unknown. This can potentially cause a hang", 0,
       1},
      {"[rank6]:[W1109 22:19:24.164824990 ProcessGroupNCCL.cpp:4561] [PG ID 0 PG GUID 0 Rank 6]  using GPU 2 to "
       "perform "
       "barrier as devices used by this process are currently unknown. This can potentially cause a hang",
       2, 6},
      {"[W ProcessGroupNCCL.cpp:1569] Rank 1 using best-guess GPU 3 to perform barrier as devices used by this process "
       "are currently unknown.",
       3, 1},
  };
  for (const DeviceCase& c : cases) {
    SCOPED_TRACE(c.line);
    const auto events = events_of<BarrierDeviceGuess>(read_log_text(c.line));
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(std::get<BarrierDeviceGuess>(events[0].fact).device, c.device);
    EXPECT_EQ(events[0].rank, RankId(std::int64_t{c.rank}));
  }
}

TEST(TorchLog, WrapperMismatchWithBothSides) {
  const auto mismatch = only<WrapperMismatch>(
      "[rank1]: RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: "
      "CollectiveFingerPrint(SequenceNumber=3104, OpType=ALLREDUCE, TensorShape=[20, 10], TensorDtypes=BFloat16, "
      "TensorDeviceTypes=TensorOptions(dtype=float (default), device=cuda, layout=Strided (default))), but Rank 0 is "
      "running collective: CollectiveFingerPrint(SequenceNumber=3105, OpType=REDUCE, TensorShape=[5], "
      "TensorDtypes=Float, "
      "TensorDeviceTypes=TensorOptions(dtype=float (default), device=cpu)).Collectives differ in the following "
      "aspects: "
      "\tOp type: ALLREDUCEvs REDUCE");
  EXPECT_EQ(mismatch.reporter.rank, RankId(1));
  EXPECT_EQ(mismatch.reporter.seq, 3'104U);
  EXPECT_EQ(mismatch.reporter.op_type, "ALLREDUCE");
  EXPECT_EQ(mismatch.reporter.shape, "[20, 10]");
  EXPECT_EQ(mismatch.reporter.dtypes, "BFloat16");
  EXPECT_EQ(mismatch.reporter.devices, "cuda");
  ASSERT_TRUE(mismatch.other.has_value());
  EXPECT_EQ(mismatch.other->rank, RankId(0));
  EXPECT_EQ(mismatch.other->seq, 3'105U);
  EXPECT_EQ(mismatch.other->op_type, "REDUCE");
  EXPECT_EQ(mismatch.other->shape, "[5]");
  EXPECT_EQ(mismatch.other->devices, "cpu");
  EXPECT_EQ(mismatch.difference, "Op type: ALLREDUCEvs REDUCE");
}

TEST(TorchLog, WrapperMismatchOfOldVersionsAndCutLines) {
  const auto one_side = parse_wrapper_mismatch(
      "Detected mismatch between collectives on ranks. Rank 3 is running inconsistent collective: "
      "CollectiveFingerPrint(OpType=BARRIER)");
  ASSERT_TRUE(one_side.has_value());
  EXPECT_EQ(one_side->reporter.rank, RankId(3));
  EXPECT_EQ(one_side->reporter.op_type, "BARRIER");
  EXPECT_FALSE(one_side->other.has_value());

  const auto name_only = parse_wrapper_mismatch(
      "Detected mismatch between collectives on ranks. Rank 0 is running collective: "
      "CollectiveFingerPrint(SequenceNumber=5OpType=ALLREDUCE), but Rank 1 is running collective: REDUCE.");
  ASSERT_TRUE(name_only.has_value() && name_only->other.has_value());
  EXPECT_EQ(name_only->reporter.seq, 5U);
  EXPECT_EQ(name_only->reporter.op_type, "ALLREDUCE");
  EXPECT_EQ(name_only->other->op_type, "REDUCE");

  const auto cut = parse_wrapper_mismatch(
      "Detected mismatch between collectives on ranks. Rank 2 is running collective: CollectiveFingerPrint("
      "SequenceNumber=5, OpType=ALLREDUCE, TensorShape=[20, 1");
  ASSERT_TRUE(cut.has_value());
  EXPECT_EQ(cut->reporter.shape, "[20, 1");
  EXPECT_FALSE(cut->other.has_value());

  EXPECT_FALSE(parse_wrapper_mismatch("Detected mismatch between collectives on ranks.").has_value());
}

TEST(TorchLog, DeepSpeedSaysWhereRanksAre) {
  const auto addresses = facts_of<RankAddress>(read_log_text(
      "[2026-11-29 10:00:00,000] [INFO] [launch.py:229:main] WORLD INFO DICT: {'node-a': [0, 1], 'node-b': [0]}"));
  ASSERT_EQ(addresses.size(), 3U);
  EXPECT_EQ(addresses[1].rank, RankId(1));
  EXPECT_EQ(addresses[1].host, "node-a");
  EXPECT_EQ(addresses[2].rank, RankId(2));
  EXPECT_EQ(addresses[2].host, "node-b");
}

}  // namespace
}  // namespace ddx::formats
