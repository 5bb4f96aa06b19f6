#include "traces/formats/nccl_log.h"

#include <gtest/gtest.h>

#include "tests/traces/formats/log/log_test_support.h"

namespace ddx::formats {
namespace {

const std::string kInfo = "node-a:502:507 [2] NCCL INFO ";

TEST(NcclLog, PrefixOfALine) {
  const NcclLine info = split_nccl_line("node-a:502:507 [2] NCCL INFO hello");
  EXPECT_EQ(info.host, "node-a");
  EXPECT_EQ(info.pid, 502);
  EXPECT_EQ(info.device, 2);
  EXPECT_EQ(info.level, "INFO");
  EXPECT_EQ(info.message, "hello");
  const NcclLine warn = split_nccl_line("192.0.2.9: node-b:1:2 [0] init.cc:497 (initTransportsRank) NCCL WARN text");
  EXPECT_EQ(warn.host, "node-b");
  EXPECT_EQ(warn.source, "init.cc:497");
  EXPECT_EQ(warn.level, "WARN");
  EXPECT_EQ(warn.message, "text");
  const NcclLine bare = split_nccl_line("NCCL WARN");
  EXPECT_EQ(bare.host, "");
  EXPECT_EQ(bare.pid, std::nullopt);
  EXPECT_EQ(bare.message, "");
}

// NCCL_DEBUG_TIMESTAMP_FORMAT, loggers and syslog write times in front, whose colons are no process's.
TEST(NcclLog, TheProcessIsTheLastWordThatLooksLikeOne) {
  for (const std::string before : {"", "[10:15:20] ", "10:15:20 ", "Nov 29 10:15:20 ", "[Nov 29 10:15:20] ",
                                   "[11/29/26 10:15:20] ", "11/29/26-10:15:20 ", "2026-11-29T10:15:20 ",
                                   "[2026-11-29 10:15:20.123] ", "192.0.2.9: ", "node-b:77:78 ", "10:15:20: "}) {
    SCOPED_TRACE(before);
    const std::string text = before + "node-a:502:507 [2] init.cc:497 (initTransportsRank) NCCL WARN text";
    const NcclLine line = split_nccl_line(text);
    EXPECT_EQ(line.host, "node-a");
    EXPECT_EQ(line.pid, 502);
    EXPECT_EQ(line.device, 2);
    EXPECT_EQ(line.source, "init.cc:497");
  }
  EXPECT_EQ(split_nccl_line("10:15:20 [2] NCCL INFO text").pid, std::nullopt);
  EXPECT_EQ(split_nccl_line("node-a:0:7 [2] NCCL INFO text").pid, std::nullopt);
}

TEST(NcclLog, StampsLeaveTheWriterAsItIs) {
  for (const std::string before : {"", "[Nov 29 10:15:20] ", "Nov 29 10:15:20 ", "[10:15:20] "}) {
    SCOPED_TRACE(before);
    const auto events = events_of<ReturnCode>(read_log_text(before + kInfo + "group.cc:72 -> 3\n"));
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].host, "node-a");
    EXPECT_EQ(events[0].pid, 502);
    EXPECT_EQ(events[0].cuda_device, 2);
  }
}

TEST(NcclLog, ARankBeyond32BitsIsCountedNotWrapped) {
  for (const std::string numbers : {"rank 4294967297 nranks 8", "rank 1 nranks 4294967304"}) {
    const Evidence evidence = read_log_text(kInfo + "ncclCommInitRank comm 0x1 " + numbers +
                                            " cudaDev 0 busId 1 commId 0x1 - Init COMPLETE\n");
    EXPECT_TRUE(evidence.events.empty()) << numbers;
    EXPECT_EQ(evidence.diagnostics.count_of("nccl_log.bad_init"), 1U) << numbers;
  }
}

TEST(NcclLog, InitOfACommunicator) {
  const auto init =
      only<CommInit>(kInfo +
                     "ncclCommInitRankConfig comm 0x55d0a1 rank 3 nranks 8 cudaDev 3 nvmlDev 5 busId 8b000 "
                     "commId 0x7f3a9c11 - Init COMPLETE");
  EXPECT_EQ(init.function, "ncclCommInitRankConfig");
  EXPECT_EQ(init.comm, "0x55d0a1");
  EXPECT_EQ(init.rank, 3);
  EXPECT_EQ(init.nranks, 8);
  EXPECT_EQ(init.cuda_device, 3);
  EXPECT_EQ(init.bus_id, "8b000");
  EXPECT_EQ(init.comm_id, "0x7f3a9c11");
  EXPECT_TRUE(init.complete);

  const auto old = only<CommInit>(kInfo + "comm 0x7fd694002360 rank 1 nranks 16 cudaDev 1 nvmlDev 1 - Init START");
  EXPECT_EQ(old.function, "");
  EXPECT_EQ(old.rank, 1);
  EXPECT_EQ(old.nranks, 16);
  EXPECT_EQ(old.comm_id, "");
  EXPECT_FALSE(old.complete);

  const auto split =
      only<CommInit>(kInfo +
                     "[Rank 1] ncclCommSplit comm 0x5951 rank 1 nranks 2 cudaDev 0 nvmlDev 0 busId 1a000 "
                     "parent 0x5a51 childCount 4 color 1684518034 key 7- Init COMPLETE");
  EXPECT_EQ(split.function, "ncclCommSplit");
  EXPECT_EQ(split.parent, "0x5a51");
  EXPECT_EQ(split.child_count, 4);
  EXPECT_EQ(split.color, 1'684'518'034);
  EXPECT_EQ(split.key, 7);
  EXPECT_TRUE(split.complete);
}

TEST(NcclLog, AnEventKnowsItsProcess) {
  const auto events = events_of<ReturnCode>(
      read_log_text("[1,9]<stderr>:node-b:1830:1832 [1] NCCL INFO transport/net_socket.cc:368 -> 6\n"));
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].host, "node-b");
  EXPECT_EQ(events[0].pid, 1'830);
  EXPECT_EQ(events[0].cuda_device, 1);
  EXPECT_EQ(events[0].rank, RankId(9));
}

TEST(NcclLog, ReturnCodes) {
  EXPECT_EQ(only<ReturnCode>(kInfo + "group.cc:72 -> 3 [Async thread]").code, 3);
  EXPECT_EQ(only<ReturnCode>(kInfo + "group.cc:72 -> 3 [Async thread]").source, "group.cc:72");
  EXPECT_TRUE(facts_of<ReturnCode>(read_log_text(kInfo + "Tree 0 : -1 -> 0 -> 1/-1/-1")).empty());
}

TEST(NcclLog, Adapters) {
  const auto net =
      only<NetAdapters>(kInfo + "NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/IB [RO]; OOB eth0:192.0.2.5<0>");
  ASSERT_EQ(net.adapters.size(), 2U);
  EXPECT_EQ(net.adapters[0].name, "mlx5_0");
  EXPECT_EQ(net.adapters[0].transport, "RoCE");
  EXPECT_EQ(net.adapters[1].index, 1);
  EXPECT_EQ(net.adapters[1].name, "mlx5_1");
  EXPECT_EQ(net.adapters[1].transport, "IB");
  EXPECT_EQ(net.out_of_band, "eth0:192.0.2.5<0>");
  const auto socket = only<NetAdapters>(kInfo + "NET/Socket : Using [0]eth0:192.0.2.5<0> [1]eth1:192.0.2.6<0>");
  ASSERT_EQ(socket.adapters.size(), 2U);
  EXPECT_EQ(socket.adapters[1].name, "eth1");
  EXPECT_EQ(socket.adapters[1].transport, "Socket");
}

TEST(NcclLog, Channels) {
  const auto channel = only<NetChannel>(kInfo + "Channel 01/0 : 8[0] -> 1[0] [send] via NET/IB/1/GDRDMA");
  EXPECT_EQ(channel.channel, 1);
  EXPECT_EQ(channel.from, 8);
  EXPECT_EQ(channel.to, 1);
  EXPECT_TRUE(channel.sends);
  EXPECT_EQ(channel.transport, "NET/IB");
  EXPECT_EQ(channel.adapter, 1);
  const auto old = only<NetChannel>(kInfo + "Channel 03 : 0[1b000] -> 1[1c000] [receive] via NET/Socket/0");
  EXPECT_EQ(old.channel, 3);
  EXPECT_FALSE(old.sends);
  EXPECT_EQ(old.transport, "NET/Socket");
  EXPECT_TRUE(facts_of<NetChannel>(read_log_text(kInfo + "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read")).empty());
}

TEST(NcclLog, Tuning) {
  const auto old = only<TuningChoice>("node-b:2:2 [0] NCCL TRACE 1048576 Bytes -> Algo 1 proto 2 time 92.1");
  EXPECT_EQ(old.op, "");
  EXPECT_EQ(old.bytes, 1'048'576U);
  EXPECT_EQ(old.algorithm, 1);
  EXPECT_EQ(old.protocol, 2);
  const auto named =
      only<TuningChoice>(kInfo + "AllReduce: 32768 Bytes -> Algo RING proto LL128 channel{Lo..Hi}={0..3}");
  EXPECT_EQ(named.op, "AllReduce");
  EXPECT_EQ(named.algorithm, 1);
  EXPECT_EQ(named.protocol, 1);
  EXPECT_EQ(only<TuningChoice>(kInfo + "AllGather: 8 Bytes -> Algo Tree proto Simple channel{Lo..Hi}={0..0}").protocol,
            2);
}

TEST(NcclLog, Versions) {
  EXPECT_EQ(only<LibraryVersion>("NCCL version 2.21.5+cuda12.4").version, "2.21.5+cuda12.4");
  EXPECT_EQ(only<LibraryVersion>("[1,0]<stdout>:RCCL version 2.18.6+hip6.1 HEAD:1").version, "2.18.6+hip6.1");
  EXPECT_EQ(only<LibraryVersion>("NCCL version 2.26.2 compiled with CUDA 12.6").version, "2.26.2");
}

TEST(NcclLog, DevicesAndBootstrap) {
  const auto device = only<DeviceDuplicate>(
      "node-a:7:8 [0] init.cc:497 NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000");
  EXPECT_EQ(device.rank, RankId(1));
  EXPECT_EQ(device.other, RankId(0));
  EXPECT_EQ(device.bus_id, "1000");
  EXPECT_EQ(device.cuda_device, 0);

  const auto twice = only<BootstrapDuplicate>(
      "node-a:7:8 [0] bootstrap.cc:1 NCCL WARN Bootstrap Root : rank 3 of 8 ranks has already checked in");
  EXPECT_EQ(twice.rank, RankId(3));
  EXPECT_EQ(twice.nranks, 8);

  const auto now = only<BootstrapSizeMismatch>(
      "node-a:7:8 [0] b.cc:1 NCCL WARN Bootstrap Root : mismatch in info from procs, nranks 8 vs 4, nroots 1 vs 1");
  EXPECT_EQ(now.nranks, 8);
  EXPECT_EQ(now.other, 4);
  const auto old = only<BootstrapSizeMismatch>(
      "node-a:7:8 [0] b.cc:1 NCCL WARN Bootstrap Root : mismatch in rank count from procs 16 : 8");
  EXPECT_EQ(old.nranks, 16);
  EXPECT_EQ(old.other, 8);

  const auto version = only<VersionMismatch>(
      "node-a:7:8 [0] init.cc:1 NCCL WARN Mismatched NCCL version detected : rank 0 version 22105 rank 1 version "
      "21903");
  EXPECT_NE(version.text.find("rank 1 version 21903"), std::string::npos);
}

TEST(NcclLog, NewerVersionsNameNobodyWhereTwoRanksShareADevice) {
  const std::string init = " nranks 2 cudaDev 0 nvmlDev 0 busId 3b000 commId 0xabc1 - Init START\n";
  const Evidence evidence =
      read_log_text("node-a:10:10 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 0" + init +
                    "node-a:11:11 [0] NCCL INFO ncclCommInitRank comm 0x2 rank 1" + init +
                    "node-a:11:11 [0] init.cc:1141 (initTransportsRank) NCCL WARN Multiple Ranks are using the same "
                    "GPU/Partition. Set NCCL_MULTI_RANK_GPU_ENABLE=1 to enable this configuration.\n");
  const auto devices = facts_of<DeviceDuplicate>(evidence);
  ASSERT_EQ(devices.size(), 1U);
  EXPECT_EQ(devices[0].rank, RankId(1));
  EXPECT_EQ(devices[0].other, RankId(0));
  EXPECT_EQ(devices[0].bus_id, "3b000");
}

struct SocketCase {
  std::string text;
  std::string call, peer, error;
};

TEST(NcclLog, BrokenConnections) {
  const std::vector<SocketCase> cases{
      {"Net : Call to recv from 192.0.2.21<58355> failed : Broken pipe", "recv", "192.0.2.21", "Broken pipe"},
      {"socketProgressOpt: Call to recv from node-b.lan<41234> failed : Connection reset by peer", "recv", "node-b.lan",
       "Connection reset by peer"},
      {"socketProgress: Connection closed by remote peer node-b.lan<41234>", "", "node-b.lan",
       "Connection closed by remote peer"},
      {"Connect to 192.0.2.1<4567> failed : Connection refused", "connect", "192.0.2.1", "Connection refused"},
      {"Call to connect to 2001:db8::7<4567> failed : No route to host", "connect", "2001:db8::7", "No route to host"},
      {"Call to connect returned Connection timed out, retrying", "connect", "", "Connection timed out"},
  };
  for (const SocketCase& c : cases) {
    SCOPED_TRACE(c.text);
    const auto error = only<NetSocketError>("node-a:7:8 [0] misc/socket.cc:518 NCCL WARN " + c.text);
    EXPECT_EQ(error.call, c.call);
    EXPECT_EQ(error.peer, c.peer);
    EXPECT_EQ(error.error, c.error);
  }
}

TEST(NcclLog, CompletionErrorsInBothWordings) {
  const auto old = only<NetCompletionError>(
      "node-a:946:988 [0] transport/net_ib.cc:839 NCCL WARN NET/IB : Got completion from peer 192.0.2.147<38560> with "
      "error 12, opcode 0, len 0, vendor err 129");
  EXPECT_EQ(old.peer, "192.0.2.147");
  EXPECT_EQ(old.status, 12);
  EXPECT_EQ(old.vendor_error, 129);
  const auto now = only<NetCompletionError>(
      "node-a:3468:3905 [4] ib_plugin.c:1615 NCCL WARN NET/IB : Got completion from peer 192.0.2.9<54862> with "
      "status=5 opcode=0 len=0 vendor err 249 (Recv) localGid ::ffff:192.0.2.1");
  EXPECT_EQ(now.peer, "192.0.2.9");
  EXPECT_EQ(now.status, 5);
  EXPECT_EQ(now.vendor_error, 249);
  const auto oldest = only<NetCompletionError>(
      "node-a:1:2 [0] transport/net_ib.cu:788 NCCL WARN NET/IB : Got completion with error 4, opcode 1, len 21938, "
      "vendor err 81");
  EXPECT_EQ(oldest.peer, "");
  EXPECT_EQ(oldest.status, 4);
}

TEST(NcclLog, AdapterErrorsAndSharedMemory) {
  EXPECT_EQ(only<NetAdapterError>("node-b:12:41 [0] NCCL WARN NET/IB : Unable to open device rdma_1").device, "rdma_1");
  EXPECT_EQ(only<NetAdapterError>(
                "node-b:12:41 [0] transport/net_ib.cc:85 NCCL WARN NET/IB : mlx5_2:1 Got async event : port error")
                .device,
            "mlx5_2");
  EXPECT_EQ(only<NetAdapterError>("node-b:12:41 [0] NCCL INFO NET/IB : No device found.").device, "");
  EXPECT_NE(only<NetAdapterError>("node-b:12:41 [0] NCCL INFO NET/IB : No device found.").text, "");

  const auto segment = only<SharedMemoryError>(
      "pod-0:21:25 [1] include/shm.h:48 NCCL WARN Error while creating shared memory segment nccl-shm-recv-0-1-3 (size "
      "9637888)");
  EXPECT_EQ(segment.segment, "nccl-shm-recv-0-1-3");
  EXPECT_EQ(segment.size, 9'637'888U);
  const auto extended = only<SharedMemoryError>(
      "pod-0:21:25 [1] misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-AbCdEf to 4194660 bytes");
  EXPECT_EQ(extended.segment, "/dev/shm/nccl-AbCdEf");
  EXPECT_EQ(extended.size, 4'194'660U);
  EXPECT_NE(only<SharedMemoryError>(
                "pod-0:21:25 [1] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device")
                .text,
            "");
}

TEST(NcclLog, OtherWarningsAreKeptAsTheyAre) {
  const auto warning = only<NcclWarning>(
      "node-a:3:4 [0] init.cc:1247 NCCL WARN Mismatched collective detected, please check your collective calls at and "
      "around rank 39.");
  EXPECT_EQ(warning.source, "init.cc:1247");
  EXPECT_EQ(warning.text, "Mismatched collective detected, please check your collective calls at and around rank 39.");
  EXPECT_EQ(only<NcclWarning>("[2026-11-29 10:00:00] node-a:3:4 [0] proxy.cc:1119 (proxyService) NCCL WARN [Proxy "
                              "Service 9] Failed to execute operation Connect from rank 9, retcode 6")
                .source,
            "proxy.cc:1119");
}

TEST(NcclLog, TestsBannersStayApart) {
  const Evidence evidence = read_log_text(
      "# nThread 1 nGpus 2 minBytes 8 maxBytes 8 step: 2(factor)\n#\n# Using devices\n"
      "#  Rank  0 Group  0 Pid    798 on     node-a device  0 [0x0f] NVIDIA H800\n"
      "#  Rank  1 Group  0 Pid    798 on     node-a device  1 [0x1f] NVIDIA H800\n"
      "# Using devices\n"
      "#   Rank  0 Pid    811 on node-b device  0 [0000:0f:00] NVIDIA A100\n"
      "#\n#       size         count\n");
  const auto banners = facts_of<TestsBanner>(evidence);
  ASSERT_EQ(banners.size(), 2U);
  ASSERT_EQ(banners[0].rows.size(), 2U);
  EXPECT_EQ(banners[0].rows[1].rank, RankId(1));
  EXPECT_EQ(banners[0].rows[1].pid, 798);
  EXPECT_EQ(banners[0].rows[1].host, "node-a");
  EXPECT_EQ(banners[0].rows[1].device, 1);
  EXPECT_EQ(banners[0].rows[1].bus_id, "0x1f");
  ASSERT_EQ(banners[1].rows.size(), 1U);
  EXPECT_EQ(banners[1].rows[0].bus_id, "0000:0f:00");
}

}  // namespace
}  // namespace ddx::formats
