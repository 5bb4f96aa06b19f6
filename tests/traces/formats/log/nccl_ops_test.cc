#include "traces/formats/nccl_ops.h"

#include <gtest/gtest.h>

#include "tests/traces/formats/log/log_test_support.h"

namespace ddx::formats {
namespace {

struct Call {
  int process = 0;  // pid 500 + process, device = process
  std::string op = "AllReduce";
  std::string op_count = "0";
  int count = 512;
  std::string comm = "0x10";
  int nranks = 2;
  int root = 0;
  int datatype = 7;
  int redop = 0;
};

std::string text_of(const Call& call, const std::string& host = "node-a") {
  const std::string pid = std::to_string(500 + call.process);
  return host + ":" + pid + ":" + pid + " [" + std::to_string(call.process) + "] NCCL INFO " + call.op + ": opCount " +
         call.op_count + " sendbuff 0x7f01 recvbuff 0x7f02 count " + std::to_string(call.count) + " datatype " +
         std::to_string(call.datatype) + " op " + std::to_string(call.redop) + " root " + std::to_string(call.root) +
         " comm " + call.comm + " [nranks=" + std::to_string(call.nranks) + "] stream 0x9" +
         std::to_string(call.process) + "\n";
}

std::string init(int process, const std::string& comm, int rank, int nranks, const std::string& rest,
                 const std::string& host = "node-a") {
  const std::string pid = std::to_string(500 + process);
  return host + ":" + pid + ":" + pid + " [" + std::to_string(process) + "] NCCL INFO ncclCommInitRank comm " + comm +
         " rank " + std::to_string(rank) + " nranks " + std::to_string(nranks) + " cudaDev " + std::to_string(process) +
         " nvmlDev 0 busId 1000 " + rest + " - Init COMPLETE\n";
}

const RankRecord* record_of(const Evidence& evidence, int rank) {
  for (const RankRecord& record : evidence.trace.ranks) {
    if (record.rank == RankId(std::int64_t{rank})) return &record;
  }
  return nullptr;
}

Signature signature(const Evidence& evidence, const RankRecord& record, std::size_t row) {
  return evidence.trace.signature(evidence.trace.program(record).signature(row));
}

TEST(NcclOps, FieldsOfALine) {
  const Evidence evidence =
      read_log_text(text_of({.op = "ReduceScatter", .op_count = "1e7", .count = 1048576, .datatype = 9, .redop = 4}));
  ASSERT_EQ(evidence.trace.ranks.size(), 1U);
  const RankRecord& record = evidence.trace.ranks[0];
  EXPECT_EQ(record.host, "node-a");
  EXPECT_EQ(record.pid, 500);
  EXPECT_EQ(record.backend, "nccl");
  EXPECT_TRUE(record.stream_ordered);
  EXPECT_FALSE(record.snapshot);
  const Program& program = evidence.trace.program(record);
  ASSERT_EQ(program.size(), 1U);
  EXPECT_EQ(program.seq(0), 0x1e7U);
  EXPECT_EQ(program.state(0), OpState::unknown);
  const Signature s = signature(evidence, record, 0);
  EXPECT_EQ(s.kind, OpKind::reduce_scatter);
  EXPECT_EQ(s.type_in, DataType::bf16);
  EXPECT_EQ(s.redop, RedOp::avg);
  EXPECT_EQ(s.count_out, 1'048'576U);
  EXPECT_EQ(s.count_in, 2 * 1'048'576U);
  EXPECT_EQ(evidence.trace.text(s.name), "ReduceScatter");
}

struct CountCase {
  std::string op;
  OpKind kind;
  std::optional<std::uint64_t> in, out;
};

TEST(NcclOps, WhatTheCountMeans) {
  const std::vector<CountCase> cases{
      {"AllReduce", OpKind::all_reduce, 5, 5},
      {"AllGather", OpKind::all_gather, 5, 20},
      {"ReduceScatter", OpKind::reduce_scatter, 20, 5},
      {"Broadcast", OpKind::broadcast, 5, 5},
      {"Reduce", OpKind::reduce, 5, 5},
      {"AlltoAll", OpKind::all_to_all, 20, 20},
      {"Send", OpKind::send, 5, std::nullopt},
      {"Recv", OpKind::recv, std::nullopt, 5},
      {"PutSignal", OpKind::unknown, 5, 5},
  };
  for (const CountCase& c : cases) {
    SCOPED_TRACE(c.op);
    const Evidence evidence = read_log_text(text_of({.op = c.op, .count = 5, .nranks = 4}));
    ASSERT_EQ(evidence.trace.ranks.size(), 1U);
    const Signature s = signature(evidence, evidence.trace.ranks[0], 0);
    EXPECT_EQ(s.kind, c.kind);
    EXPECT_EQ(s.count_in, c.in);
    EXPECT_EQ(s.count_out, c.out);
  }
}

TEST(NcclOps, RootsAndPeersArePositions) {
  const Evidence evidence = read_log_text(text_of({.op = "Broadcast", .op_count = "0", .root = 3}) +
                                          text_of({.op = "Send", .op_count = "1", .root = 1}) +
                                          text_of({.op = "AllReduce", .op_count = "2", .root = 0}));
  ASSERT_EQ(evidence.trace.ranks.size(), 1U);
  const RankRecord& record = evidence.trace.ranks[0];
  EXPECT_EQ(evidence.trace.peer(record, signature(evidence, record, 0)), 3);
  EXPECT_EQ(evidence.trace.peer(record, signature(evidence, record, 1)), 1);
  EXPECT_EQ(evidence.trace.peer(record, signature(evidence, record, 2)), std::nullopt);
  EXPECT_EQ(signature(evidence, record, 1).redop, RedOp::unknown);
}

TEST(NcclOps, OpsOfOnePlanAreAGroup) {
  const Evidence evidence = read_log_text(text_of({.op = "Send", .op_count = "a", .root = 1}) +
                                          text_of({.op = "Recv", .op_count = "a", .root = 1}) +
                                          text_of({.op = "Send", .op_count = "b", .root = 1}));
  const Program& program = evidence.trace.programs.at(0);
  ASSERT_EQ(program.size(), 3U);
  EXPECT_TRUE(program.group(0).has_value());
  EXPECT_EQ(program.group(0), program.group(1));
  EXPECT_FALSE(program.group(2).has_value());
}

TEST(NcclOps, InitLinesGiveRanksNamesAndMembers) {
  const std::string id = "commId 0xfeed";
  const Evidence evidence =
      read_log_text(init(0, "0x10", 1, 2, id) + init(1, "0x20", 0, 2, id) + text_of({.process = 0, .comm = "0x10"}) +
                    text_of({.process = 1, .comm = "0x20"}));
  const RankRecord* one = record_of(evidence, 1);
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->pid, 500);
  EXPECT_FALSE(one->rank_guessed);
  EXPECT_FALSE(one->head_lost);
  ASSERT_EQ(one->comms.size(), 1U);
  EXPECT_EQ(one->comm_rank[0], 1U);
  const Communicator& comm = evidence.trace.communicator(one->comms[0]);
  EXPECT_EQ(evidence.trace.text(comm.name), "0xfeed");
  EXPECT_FALSE(comm.synthesized);
  EXPECT_EQ(comm.members, (std::vector<RankId>{RankId(0), RankId(1)}));
  ASSERT_NE(record_of(evidence, 0), nullptr);
  EXPECT_EQ(record_of(evidence, 0)->comms, one->comms);
  EXPECT_EQ(evidence.inputs[0].ranks, (RankSet{RankId(0), RankId(1)}));
}

TEST(NcclOps, OneRanksFileKnowsItsSizeButNotItsMembers) {
  const Evidence evidence =
      read_log_text(init(0, "0x10", 3, 8, "commId 0xfeed") + text_of({.process = 0, .comm = "0x10", .nranks = 8}));
  ASSERT_EQ(evidence.trace.ranks.size(), 1U);
  const RankRecord& record = evidence.trace.ranks[0];
  EXPECT_EQ(record.rank, RankId(3));
  EXPECT_EQ(record.comm_rank[0], 3U);
  const Communicator& comm = evidence.trace.communicator(record.comms[0]);
  EXPECT_TRUE(comm.members.empty());
  EXPECT_EQ(comm.declared_size, 8U);
}

TEST(NcclOps, SplitsAreNamedByParentNumberAndColour) {
  const std::string split = "parent 0x10 childCount 1 color ";
  const Evidence evidence =
      read_log_text(init(0, "0x10", 0, 2, "commId 0xfeed") + init(0, "0x11", 0, 1, split + "7 key 0") +
                    text_of({.process = 0, .comm = "0x11", .nranks = 1}));
  ASSERT_EQ(evidence.trace.ranks.size(), 1U);
  const RankRecord& record = evidence.trace.ranks[0];
  ASSERT_EQ(record.comms.size(), 2U);
  EXPECT_EQ(evidence.trace.text(evidence.trace.communicator(record.comms[1]).name), "0xfeed/split1/color7");
  EXPECT_FALSE(evidence.trace.communicator(record.comms[1]).synthesized);
  EXPECT_EQ(record.rank, RankId(0));
}

TEST(NcclOps, WithoutInitTheOrderOfUseNamesACommunicator) {
  const Evidence evidence =
      read_log_text(text_of({.comm = "0xa", .nranks = 4}) + text_of({.comm = "0xb", .nranks = 2}) +
                    text_of({.comm = "0xc", .nranks = 4}));
  ASSERT_EQ(evidence.trace.ranks.size(), 1U);
  const RankRecord& record = evidence.trace.ranks[0];
  ASSERT_EQ(record.comms.size(), 3U);
  std::vector<std::string> names;
  for (CommId id : record.comms) names.emplace_back(evidence.trace.text(evidence.trace.communicator(id).name));
  EXPECT_NE(names[0], names[2]);
  EXPECT_NE(names[0], names[1]);
  EXPECT_TRUE(evidence.trace.communicator(record.comms[0]).synthesized);
  // The same order on another rank gives the same names.
  const Evidence other = read_log_text(text_of({.process = 1, .comm = "0x1a", .nranks = 4}) +
                                       text_of({.process = 1, .comm = "0x1b", .nranks = 2}));
  EXPECT_EQ(other.trace.text(other.trace.communicator(other.trace.ranks.at(0).comms[0]).name), names[0]);
  EXPECT_EQ(other.trace.text(other.trace.communicator(other.trace.ranks.at(0).comms[1]).name), names[1]);
}

TEST(NcclOps, DevicesOfOneHostAreAGuessAtRanks) {
  std::string text;
  for (const char* op_count : {"280", "281"}) {
    for (int process : {2, 0, 3, 1})
      text += text_of({.process = process, .op_count = op_count, .comm = "0x5" + std::to_string(process), .nranks = 4});
  }
  const Evidence evidence = read_log_text(text);
  ASSERT_EQ(evidence.trace.ranks.size(), 4U);
  const RankRecord* three = record_of(evidence, 3);
  ASSERT_NE(three, nullptr);
  EXPECT_TRUE(three->rank_guessed);
  EXPECT_TRUE(three->head_lost);  // the log begins at opCount 0x280
  EXPECT_EQ(three->pid, 503);
  EXPECT_EQ(three->comm_rank[0], 3U);
  EXPECT_EQ(evidence.trace.communicator(three->comms[0]).members.size(), 4U);
}

TEST(NcclOps, DevicesOfOneOfSeveralHostsAreNoRanks) {
  std::string text;
  for (int process : {0, 1})
    text += text_of({.process = process, .comm = "0x5" + std::to_string(process), .nranks = 16});
  for (int process : {0, 1})
    text += text_of({.process = process, .comm = "0x5" + std::to_string(process), .nranks = 16}, "node-b");
  const Evidence evidence = read_log_text(text);
  ASSERT_EQ(evidence.trace.ranks.size(), 4U);
  for (const RankRecord& record : evidence.trace.ranks) EXPECT_EQ(record.rank, std::nullopt);
}

TEST(NcclOps, LauncherAndFileNameStateARank) {
  const Evidence tagged = read_log_text("[1,12]<stdout>:" + init(0, "0x10", 4, 8, "commId 0xfeed") +
                                        "[1,12]<stdout>:" + text_of({.comm = "0x10", .nranks = 8}));
  ASSERT_EQ(tagged.trace.ranks.size(), 1U);
  EXPECT_EQ(tagged.trace.ranks[0].rank, RankId(12));
  EXPECT_EQ(tagged.trace.ranks[0].comm_rank[0], 4U);
  const Evidence named = read_log_text(text_of({}), "logs/rank6.log");
  ASSERT_EQ(named.trace.ranks.size(), 1U);
  EXPECT_EQ(named.trace.ranks[0].rank, RankId(6));
  const Evidence amd = read_log_text(
      "node-a:1:1 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x1 count 1 datatype 7 op 0 root 0 comm 0x3 "
      "[nranks=8] stream 0x0 task 0 globalrank 5\n");
  ASSERT_EQ(amd.trace.ranks.size(), 1U);
  EXPECT_EQ(amd.trace.ranks[0].rank, RankId(5));
}

TEST(NcclOps, AFileNamedAfterOneRankThatHoldsSeveralProcesses) {
  const std::string id = "commId 0xfeed";
  const Evidence evidence =
      read_log_text(init(0, "0x10", 0, 2, id) + init(1, "0x20", 1, 2, id) + text_of({.process = 0, .comm = "0x10"}) +
                        text_of({.process = 1, .comm = "0x20"}),
                    "node_rank0/rank0.log");
  ASSERT_EQ(evidence.trace.ranks.size(), 2U);
  EXPECT_EQ(evidence.trace.ranks[0].rank, RankId(0));
  EXPECT_EQ(evidence.trace.ranks[1].rank, RankId(1));
}

TEST(NcclOps, OneProcessMayDriveSeveralRanks) {
  const auto line = [](int device, const std::string& comm, const std::string& op_count) {
    return "node-a:13135:1392" + std::to_string(device) + " [" + std::to_string(device) +
           "] NCCL INFO AllReduce: opCount " + op_count +
           " sendbuff 0x1 recvbuff 0x1 count 64 datatype 7 op 0 root 0 comm " + comm + " [nranks=2] stream 0x7\n";
  };
  const Evidence evidence = read_log_text(line(0, "0xa0", "0") + line(1, "0xb0", "0") + line(0, "0xa0", "1"));
  ASSERT_EQ(evidence.trace.ranks.size(), 2U);
  const RankRecord* zero = record_of(evidence, 0);
  const RankRecord* one = record_of(evidence, 1);
  ASSERT_TRUE(zero != nullptr && one != nullptr);
  EXPECT_EQ(evidence.trace.program(*zero).size(), 2U);
  EXPECT_EQ(evidence.trace.program(*one).size(), 1U);
  EXPECT_EQ(zero->comms, one->comms);

  // With INIT lines the ranks are stated, whatever the devices.
  const std::string init_line = " nranks 2 cudaDev ";
  const Evidence stated = read_log_text("node-a:9:9 [0] NCCL INFO ncclCommInitRank comm 0xa0 rank 1" + init_line +
                                        "0 nvmlDev 0 busId 1 commId 0xfe - Init COMPLETE\n" +
                                        "node-a:9:9 [1] NCCL INFO ncclCommInitRank comm 0xb0 rank 0" + init_line +
                                        "1 nvmlDev 1 busId 2 commId 0xfe - Init COMPLETE\n" +
                                        "node-a:9:9 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x1 count "
                                        "64 datatype 7 op 0 root 0 comm 0xa0 [nranks=2] stream 0x7\n");
  ASSERT_EQ(stated.trace.ranks.size(), 2U);
  ASSERT_NE(record_of(stated, 1), nullptr);
  EXPECT_EQ(stated.trace.program(*record_of(stated, 1)).size(), 1U);
  EXPECT_EQ(stated.trace.program(*record_of(stated, 0)).size(), 0U);
}

TEST(NcclOps, ManyDevicesOfOneProcessCostOnePass) {
  // 20,000 devices with 20,000 communicators and calls: each device looking at all would be 400 million looks, twice.
  std::string text;
  for (int device = 0; device < 20'000; ++device) {
    const std::string n = std::to_string(device);
    const std::string head = "node-a:1:1 [" + n + "] NCCL INFO ";
    text += head + "ncclCommInitRank comm 0x" + n + " rank " + n + " nranks 20000 cudaDev " + n +
            " nvmlDev 0 busId 1 commId 0x1 - Init COMPLETE\n";
    text += head + "AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x1 count 1 datatype 7 op 0 root 0 comm 0x" + n +
            " [nranks=20000] stream 0x7\n";
  }
  const Evidence evidence = read_log_text(text);
  ASSERT_EQ(evidence.trace.ranks.size(), 1U);
  EXPECT_EQ(evidence.trace.program(evidence.trace.ranks[0]).size(), 20'000U);
  EXPECT_EQ(evidence.diagnostics.count_of("nccl_log.too_many_devices"), 1U);
}

TEST(NcclOps, CommunicatorsBeyondASlotsRangeAreCounted) {
  std::string text;
  for (int i = 0; i < 65'536; ++i) text += text_of({.comm = "0x" + std::to_string(i)});
  const Evidence evidence = read_log_text(text);
  ASSERT_EQ(evidence.trace.ranks.size(), 1U);
  EXPECT_EQ(evidence.trace.program(evidence.trace.ranks[0]).size(), 65'534U);
  EXPECT_EQ(evidence.diagnostics.count_of("nccl_log.too_many_comms"), 2U);
}

TEST(NcclOps, MemoryOfAFreedCommunicatorIsUsedAgain) {
  const Evidence evidence =
      read_log_text(init(0, "0x10", 0, 2, "commId 0xaaaa") + text_of({.comm = "0x10"}) +
                    init(0, "0x10", 1, 4, "commId 0xbbbb") + text_of({.comm = "0x10", .nranks = 4}));
  ASSERT_EQ(evidence.trace.ranks.size(), 1U);
  const RankRecord& record = evidence.trace.ranks[0];
  ASSERT_EQ(record.comms.size(), 2U);
  const Program& program = evidence.trace.program(record);
  EXPECT_EQ(program.comm_slot(0), 0);
  EXPECT_EQ(program.comm_slot(1), 1);
  EXPECT_EQ(evidence.trace.text(evidence.trace.communicator(record.comms[1]).name), "0xbbbb");
}

TEST(NcclOps, EventsOfAProcessTakeItsRank) {
  const Evidence evidence = read_log_text(init(0, "0x10", 5, 8, "commId 0xfeed") +
                                          "node-a:500:509 [0] misc/socket.cc:518 NCCL WARN Net : Call to recv from "
                                          "192.0.2.21<58355> failed : Broken pipe\n");
  const auto events = events_of<NetSocketError>(evidence);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].rank, RankId(5));
  EXPECT_TRUE(evidence.trace.ranks.empty());  // nothing was called
}

TEST(NcclOps, CutAndOddLines) {
  const std::string whole = text_of({});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Evidence evidence = read_log_text(whole.substr(0, size));
    EXPECT_LE(evidence.trace.ranks.size(), 1U);
  }
  const Evidence wide = read_log_text(text_of({.op_count = "123456789abcdef"}));
  ASSERT_EQ(wide.trace.ranks.size(), 1U);
  EXPECT_EQ(wide.trace.programs[0].seq(0), std::nullopt);
  EXPECT_EQ(wide.diagnostics.count_of("nccl_log.wide_op_count"), 1U);
  ImportOptions options;
  options.max_ops_per_file = 2;
  const Evidence bounded = read_log_text(whole + whole + whole, "job.log", options);
  EXPECT_EQ(bounded.trace.programs.at(0).size(), 2U);
  EXPECT_EQ(bounded.diagnostics.count_of("nccl_log.too_many_ops"), 1U);
}

}  // namespace
}  // namespace ddx::formats
