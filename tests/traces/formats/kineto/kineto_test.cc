// Right values: the JSON itself, read by hand or by Python's json (counts and times of the files in data/).
#include "traces/formats/kineto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/scratch_folder.h"
#include "traces/formats/loader.h"
#include "traces/formats/nccl_kernel_name.h"

namespace ddx::formats {
namespace {

using ::testing::HasSubstr;

Evidence read(const std::string& text, std::uint64_t max_ops = 1000) {
  Evidence evidence;
  evidence.inputs.emplace_back().path = "trace_rank5.json";
  ImportOptions options;
  options.max_ops_per_file = max_ops;
  kineto_importer().read({"trace_rank5.json", text}, options, evidence);
  return evidence;
}

// Events and further keys of the top level in a profile.
std::string profile(const std::string& events, const std::string& rest = "") {
  return R"({"schemaVersion": 1, )" + rest + R"("traceEvents": [)" + events + "]}";
}
std::string call(int id, const std::string& arguments, const std::string& time = "100") {
  return R"({"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 1, "tid": 2, "ts": )" + time +
         R"(, "dur": 5, "args": {"External id": )" + std::to_string(id) + ", " + arguments + "}}";
}
std::string kernel(int id, const std::string& name, const std::string& time, const std::string& length,
                   int stream = 7) {
  return R"({"ph": "X", "cat": "kernel", "name": ")" + name + R"(", "ts": )" + time + R"(, "dur": )" + length +
         R"(, "args": {"External id": )" + std::to_string(id) + R"(, "stream": )" + std::to_string(stream) + "}}";
}

Signature signature(const Evidence& evidence, std::size_t row = 0) {
  return evidence.trace.signature(evidence.trace.programs.at(0).signature(row));
}

TEST(NcclKernelName, says_kind_reduction_and_type_in_both_orders) {
  const auto expect = [](std::string_view name, OpKind kind, RedOp redop, DataType type) {
    const NcclKernelName parsed = parse_nccl_kernel(name);
    EXPECT_EQ(parsed.kind, kind) << name;
    EXPECT_EQ(parsed.redop, redop) << name;
    EXPECT_EQ(parsed.type, type) << name;
  };
  expect("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", OpKind::all_reduce, RedOp::sum,
         DataType::f32);
  expect("ncclDevKernel_AllReduce_Sum_bf16_TREE_LL", OpKind::all_reduce, RedOp::sum, DataType::bf16);
  expect("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)", OpKind::all_reduce,
         RedOp::sum, DataType::f32);
  expect("ncclDevKernel_ReduceScatter_SumPostDiv_u32_RING_LL", OpKind::reduce_scatter, RedOp::avg, DataType::u32);
  expect("ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)", OpKind::broadcast,
         RedOp::unknown, DataType::unknown);
  expect("ncclDevKernel_AllGather_RING_LL", OpKind::all_gather, RedOp::unknown, DataType::unknown);
  expect("ncclDevKernel_SendRecv(x)", OpKind::coalesced, RedOp::unknown, DataType::unknown);
  expect("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(x)", OpKind::coalesced, RedOp::unknown, DataType::unknown);
  expect("ncclDevKernel_Generic(x)", OpKind::unknown, RedOp::unknown, DataType::unknown);
  expect("void at::native::Sum_f32_kernel()", OpKind::unknown, RedOp::unknown, DataType::unknown);
}

TEST(Kineto, joins_a_call_with_its_kernel_to_the_nanosecond) {
  const Evidence evidence = read(
      profile(call(9, R"("Collective name": "allreduce", "dtype": "Float", "In msg nelems": 64, "Out msg nelems": 64,
                 "Group size": 2, "Process Group Name": "tp", "Process Group Description": "mesh_tp",
                 "Process Group Ranks": "[1, 5]", "Seq": 3)",
                   "4458676524648.797") +
                  "," + kernel(9, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", "4458676524700.001", "12.5", 40),
              R"("baseTimeNanoseconds": 1711964646000000000, )"));
  const Program& program = evidence.trace.programs.at(0);
  ASSERT_EQ(program.size(), 1U);
  const Signature s = signature(evidence);
  EXPECT_EQ(s.kind, OpKind::all_reduce);
  EXPECT_EQ(s.redop, RedOp::sum);
  EXPECT_EQ(s.type_in, DataType::f32);
  EXPECT_EQ(s.count_in, 64U);
  EXPECT_EQ(s.stream, 40U);
  EXPECT_EQ(program.issue(0), 1711964646000000000 + 4458676524648797);
  EXPECT_EQ(program.start(0), 1711964646000000000 + 4458676524700001);
  EXPECT_EQ(program.end(0), 1711964646000000000 + 4458676524712501);
  EXPECT_EQ(program.state(0), OpState::completed);
  EXPECT_EQ(program.seq(0), 3U);
  const RankRecord& record = evidence.trace.ranks.at(0);
  EXPECT_EQ(record.rank, RankId(std::int64_t{5}));
  const Communicator& group = evidence.trace.communicator(record.comms.at(0));
  EXPECT_EQ(evidence.trace.text(group.name), "tp");
  EXPECT_EQ(group.members.size(), 2U);
  EXPECT_EQ(record.comm_rank, std::vector<std::uint32_t>{1});
  EXPECT_TRUE(record.head_lost && record.tail_lost);
  EXPECT_FALSE(record.whole_program || record.snapshot);
}

TEST(Kineto, groups_come_whole_from_pg_config_where_the_list_is_cut) {
  const std::string arguments = R"("Collective name": "_allgather_base", "In msg nelems": 1, "Out msg nelems": 40,
      "Group size": 40, "Process Group Name": "3", "Process Group Ranks": "[0, 2, ..., 58, ...]")";
  std::string ranks;
  for (int rank = 0; rank < 80; rank += 2) ranks += (rank == 0 ? "" : ", ") + std::to_string(rank);
  for (const std::string& list : {"[" + ranks + "]", "\"[" + ranks + "]\""}) {  // on-demand profiles write text
    const Evidence evidence = read(profile(
        call(1, arguments), R"("distributedInfo": {"backend": "nccl", "rank": 4, "world_size": 80, "pg_config": [
             {"pg_name": "3", "pg_desc": "undefined", "pg_size": 40, "ranks": )" +
                                list + "}]}, "));
    EXPECT_EQ(evidence.trace.communicators().at(0).members.size(), 40U);
    EXPECT_EQ(evidence.trace.ranks.at(0).rank, RankId(std::int64_t{4})) << "stated, before the file's name";
    EXPECT_EQ(evidence.trace.ranks.at(0).comm_rank, std::vector<std::uint32_t>{2});
    EXPECT_EQ(evidence.trace.world_size, 80U);
    EXPECT_EQ(evidence.diagnostics.count_of("kineto.cut_rank_list"), 0U);
  }
  const Evidence evidence = read(profile(call(1, arguments)));
  EXPECT_TRUE(evidence.trace.communicators().at(0).members.empty());
  EXPECT_EQ(evidence.trace.communicators().at(0).declared_size, 40U);
  EXPECT_EQ(evidence.diagnostics.count_of("kineto.cut_rank_list"), 1U);
}

TEST(Kineto, sends_name_their_peer_by_its_global_rank) {
  const Evidence evidence = read(profile(call(
      1, R"("Collective name": "send", "In msg nelems": 8, "Process Group Name": "pp", "Process Group Ranks": [5, 9],
                 "Dst Rank": 9)")));
  EXPECT_EQ(signature(evidence).kind, OpKind::send);
  EXPECT_EQ(evidence.trace.ranks.at(0).peers, std::vector<std::int32_t>{1});
}

TEST(Kineto, uneven_all_to_all_keeps_its_splits) {
  const Evidence evidence = read(profile(
      call(1, R"("Collective name": "all_to_allv", "In msg nelems": 6, "Out msg nelems": 4, "In split size": "[1, 5]",
                 "Out split size": "[2, 2]", "Process Group Name": "ep", "Process Group Ranks": "[4, 5]")")));
  EXPECT_EQ(signature(evidence).split_in, (std::vector<std::uint64_t>{1, 5}));
  EXPECT_EQ(signature(evidence).split_out, (std::vector<std::uint64_t>{2, 2}));
}

TEST(Kineto, computation_is_merged_within_ten_microseconds_and_a_millisecond) {
  const Evidence evidence = read(profile(kernel(1, "a", "100", "5") + "," + kernel(2, "b", "114", "20") + "," +  // 9 us
                                         kernel(3, "c", "145", "1") + "," +     // 11 us: apart
                                         kernel(4, "d", "148", "1500") + "," +  // too long
                                         kernel(5, "e", "100", "1", 8)));       // other stream
  const Program& program = evidence.trace.programs.at(0);
  ASSERT_EQ(program.size(), 4U);
  std::vector<std::pair<std::string_view, Nanos>> rows;
  for (std::size_t row = 0; row < 4; ++row) {
    const Signature s = signature(evidence, row);
    EXPECT_EQ(s.kind, OpKind::compute);
    rows.emplace_back(evidence.trace.text(s.name), *s.compute_time);
  }
  EXPECT_THAT(rows, ::testing::UnorderedElementsAre(std::pair("b", Nanos{34'000}), std::pair("c", Nanos{1'000}),
                                                    std::pair("d", Nanos{1'500'000}), std::pair("e", Nanos{1'000})));
}

// A profile is a window: the kernel of a call may lie behind its end.
TEST(Kineto, a_call_without_a_kernel_is_not_known_to_be_open) {
  const Evidence evidence = read(profile(call(1, R"("Collective name": "allreduce", "In msg nelems": 8)")));
  EXPECT_EQ(evidence.trace.programs.at(0).state(0), OpState::unknown);
  EXPECT_FALSE(evidence.trace.programs.at(0).start(0) || evidence.trace.programs.at(0).end(0));
}

std::string p2p_call(int id, const std::string& name, const std::string& peer, const std::string& time) {
  return call(id,
              R"("Collective name": ")" + name + R"(", "In msg nelems": 8, "dtype": "Float", "Process Group Name": "pp",
                 "Process Group Ranks": "[5, 9]", )" +
                  peer,
              time);
}
std::string batch_kernel(int id) {
  return R"--({"ph": "X", "cat": "kernel", "name": "ncclDevKernel_SendRecv(x)", "ts": 150, "dur": 50, "args": {)--"
         R"--("Collective name": "coalesced", "Process Group Name": "pp", "Process Group Ranks": "[5, 9]",)--"
         R"--("stream": 20, "External id": )--" +
         std::to_string(id) + "}}";
}

TEST(Kineto, what_is_posted_together_shares_its_kernel) {
  const std::string send = p2p_call(1, "send", R"("Dst Rank": 9)", "100");
  const std::string recv = p2p_call(2, "recv", R"("Src Rank": 9)", "102");
  const std::string end = p2p_call(3, "coalesced", R"("Rank": 5)", "104");
  // The kernel is recorded with the last call, or with one for all.
  for (const std::string& events :
       {send + "," + recv + "," + batch_kernel(2), send + "," + recv + "," + end + "," + batch_kernel(3)}) {
    const Evidence evidence = read(profile(events));
    const Program& program = evidence.trace.programs.at(0);
    ASSERT_EQ(program.size(), 2U);
    for (std::size_t row = 0; row < 2; ++row) {
      EXPECT_EQ(signature(evidence, row).kind, row == 0 ? OpKind::send : OpKind::recv);
      EXPECT_EQ(signature(evidence, row).stream, 20U);
      EXPECT_EQ(program.state(row), OpState::completed);
      EXPECT_EQ(program.start(row), 150'000);
      EXPECT_EQ(program.end(row), 200'000);
      EXPECT_EQ(program.group(row), 0U);
    }
  }
}

TEST(Kineto, a_send_of_its_own_is_in_no_batch) {
  const Evidence evidence = read(profile(p2p_call(1, "send", R"("Dst Rank": 9)", "100") + "," +
                                         p2p_call(2, "recv", R"("Src Rank": 9)", "110") + "," +
                                         kernel(2, "ncclDevKernel_SendRecv(x)", "150", "50")));
  const Program& program = evidence.trace.programs.at(0);
  ASSERT_EQ(program.size(), 2U);
  EXPECT_FALSE(program.group(0) || program.group(1));
  EXPECT_FALSE(program.start(0)) << "its kernel is not recorded";
  EXPECT_EQ(program.start(1), 150'000);
}

TEST(Kineto, without_arguments_the_kernels_tell_what_they_can) {
  const Evidence evidence = read(profile(call(1, R"("Ev Idx": 2)") + "," +
                                         kernel(2, "ncclDevKernel_AllReduce_Max_f16_RING_LL(x)", "10", "1") + "," +
                                         kernel(3, "ncclDevKernel_SendRecv(x)", "20", "1")));
  ASSERT_EQ(evidence.trace.programs.at(0).size(), 2U);
  EXPECT_EQ(signature(evidence, 0).kind, OpKind::all_reduce);
  EXPECT_EQ(signature(evidence, 0).redop, RedOp::max);
  EXPECT_EQ(signature(evidence, 1).kind, OpKind::coalesced);
  EXPECT_EQ(evidence.trace.text(signature(evidence, 1).name), "ncclDevKernel_SendRecv");
  EXPECT_EQ(evidence.diagnostics.count_of("kineto.no_arguments"), 1U);
  EXPECT_EQ(evidence.diagnostics.count_of("kineto.kernel_alone"), 2U);
  EXPECT_THAT(evidence.diagnostics.entries().back().detail, HasSubstr("record_shapes=True"));
}

TEST(Kineto, waits_of_the_host_are_no_calls_and_unknown_names_are_told) {
  const Evidence evidence = read(profile(call(1, R"("Collective name": "wait", "In msg nelems": 0)") + "," +
                                         call(2, R"("Collective name": "teleport", "dtype": "Quaternion")")));
  ASSERT_EQ(evidence.trace.programs.at(0).size(), 1U);
  EXPECT_EQ(signature(evidence).kind, OpKind::unknown);
  EXPECT_EQ(evidence.diagnostics.count_of("kineto.unknown_op"), 1U);
  EXPECT_EQ(evidence.diagnostics.count_of("kineto.unknown_dtype"), 1U);
}

TEST(Kineto, text_that_is_no_strict_json_is_mended_and_told) {
  const Evidence evidence =
      read(profile(call(1, R"("Collective name": "barrier", "est. occupancy": NaN, "path": "C:\dir",)") + ","));
  EXPECT_EQ(evidence.trace.programs.at(0).size(), 1U);
  EXPECT_EQ(evidence.diagnostics.count_of("kineto.mended_json"), 4U);
  EXPECT_EQ(evidence.diagnostics.count_of("kineto.truncated_file"), 0U);
}

TEST(Kineto, a_cut_file_gives_what_stands_before_the_cut) {
  const std::string one = call(1, R"("Collective name": "barrier")");
  const std::string whole = profile(one + "," + one);
  const std::size_t second = whole.rfind("{\"ph\"");
  for (std::size_t size = second; size + 3 < whole.size(); ++size) {
    const Evidence evidence = read(whole.substr(0, size));
    EXPECT_EQ(evidence.trace.programs.at(0).size(), 1U) << size;
    EXPECT_EQ(evidence.diagnostics.count_of("kineto.truncated_file"), 1U) << size;
  }
  EXPECT_THROW(read(whole.substr(0, 40)), Error);
  EXPECT_THROW(read(profile("")), Error);
  EXPECT_THROW(read(""), Error);
  EXPECT_EQ(read(whole, 1).diagnostics.count_of("kineto.too_many_events"), 1U);
}

TEST(Kineto, times_that_cannot_be_are_left_out_and_their_kernels_are_not) {
  const Evidence evidence =
      read(profile(kernel(1, "a", "1e300", "5") + "," + kernel(2, "b", "99999999999999999999", "5") + "," +
                   kernel(3, "c", "1", "-5") + "," + kernel(4, "d", "9223372036854775", "1") + "," +
                   call(5, R"("Collective name": "barrier")", "\"soon\"")));
  EXPECT_EQ(evidence.diagnostics.count_of("kineto.bad_event"), 4U);
  const Program& program = evidence.trace.programs.at(0);
  ASSERT_EQ(program.size(), 5U);
  for (std::size_t row = 0; row < program.size(); ++row) {
    EXPECT_FALSE(signature(evidence, row).compute_time) << row;
    EXPECT_FALSE(program.start(row) || program.end(row) || program.issue(row)) << row;
  }
}

TEST(Kineto, sizes_that_cannot_be_are_counted) {
  for (const char* size : {"-3", "1e30", "18446744073709551615", "\"-3\""}) {
    const Evidence evidence =
        read(profile(call(1, R"("Collective name": "allreduce", "In msg nelems": )" + std::string(size))));
    EXPECT_EQ(evidence.diagnostics.count_of("kineto.bad_number"), 1U) << size;
    EXPECT_FALSE(signature(evidence).count_in) << size;
  }
  EXPECT_EQ(read(profile(call(1, R"("Collective name": "allreduce", "In msg nelems": 0)")))
                .diagnostics.count_of("kineto.bad_number"),
            0U);
}

TEST(Kineto, calls_without_a_time_beside_such_as_have_one_are_counted) {
  const std::string barrier = R"("Collective name": "barrier")";
  const Evidence evidence =
      read(profile(call(1, barrier) + "," + call(2, barrier, "NaN") + "," + call(3, barrier, "9e99") + "," +
                   kernel(4, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "1", "-5")));
  EXPECT_EQ(evidence.diagnostics.count_of("kineto.unplaced_call"), 3U);
}

TEST(HostTrace, gives_the_collectives_of_a_rank_in_their_order) {
  const auto node = [](int id, const std::string& name, const std::string& rest) {
    return R"({"id": )" + std::to_string(id) + R"(, "name": ")" + name + R"(", "ctrl_deps": 1, )" + rest + "}";
  };
  const std::string text =
      R"({"schema": "1.1.0-chakra.0.0.4", "pid": 7, "nodes": [)" +
      node(4, "## process_group:init ##",
           R"("inputs": {"values": ["[{\"pg_name\": \"0\", \"ranks\": [], \"group_size\": 2}]"]}, "attrs": [])") +
      "," +
      node(9, "record_param_comms",
           R"("inputs": {"values": [33]}, "attrs": [{"name": "collective_name", "type": "string", "value": "broadcast"},
              {"name": "dtype", "type": "string", "value": "Float"}, {"name": "in_msg_nelems", "type": "uint64", "value": 53120},
              {"name": "pg_name", "type": "string", "value": "0"}, {"name": "pg_size", "type": "uint64", "value": 2}])") +
      "," + node(11, "aten::mul", R"("attrs": [])") + "]}";
  EXPECT_EQ(host_trace_importer().sniff("et.json", text), Sniff::sure);
  Evidence evidence;
  evidence.inputs.emplace_back().path = "et_rank1.json";
  host_trace_importer().read({"et_rank1.json", text}, {}, evidence);
  ASSERT_EQ(evidence.trace.programs.at(0).size(), 1U);
  EXPECT_EQ(signature(evidence).kind, OpKind::broadcast);
  EXPECT_EQ(signature(evidence).count_in, 53120U);
  EXPECT_EQ(evidence.trace.communicators().at(0).members.size(), 2U);
  EXPECT_EQ(evidence.trace.ranks.at(0).comm_rank, std::vector<std::uint32_t>{1});
  EXPECT_FALSE(evidence.trace.programs.at(0).issue(0));
}

const std::string kData = std::string(DDX_SOURCE_DIR) + "/tests/traces/formats/kineto/data";

TEST(KinetoFiles, a_rank_of_a_ddp_job) {
  const Evidence evidence = load({kData + "/ddp_rank0_of_2.json"}, {});
  EXPECT_EQ(evidence.inputs.front().format, "kineto");
  EXPECT_TRUE(evidence.diagnostics.empty());
  const Program& program = evidence.trace.programs.at(0);
  std::vector<std::uint64_t> counts;
  std::size_t computations = 0;
  Nanos busy = 0;
  for (std::size_t row = 0; row < program.size(); ++row) {
    const Signature s = signature(evidence, row);
    if (s.kind == OpKind::compute) {
      ++computations;
      busy += *s.compute_time;
    } else {
      counts.push_back(*s.count_in);
    }
  }
  EXPECT_EQ(counts, (std::vector<std::uint64_t>{53120, 53, 2049000, 7875584, 6563840, 6637568, 2431040}));
  EXPECT_EQ(signature(evidence, 1).type_in, DataType::i64);
  EXPECT_EQ(program.start(0), 1711964646000000000 + 4458676423385774);
  EXPECT_EQ(program.end(0), 1711964646000000000 + 4458676423385774 + 30975);
  EXPECT_EQ(computations, 14U);
  EXPECT_EQ(busy, 869'877);
  EXPECT_EQ(evidence.trace.ranks.at(0).library_version, "2.17.1");
}

TEST(KinetoFiles, a_rank_with_many_groups) {
  const Evidence evidence = load({kData + "/many_groups_rank0_of_8.json"}, {});
  const Signature s = signature(evidence, evidence.trace.programs.at(0).size() - 1);
  EXPECT_EQ(s.kind, OpKind::all_gather);
  EXPECT_EQ(s.count_in, 25136U);
  EXPECT_EQ(s.count_out, 201088U);
  EXPECT_EQ(s.type_in, DataType::bf16);
  EXPECT_EQ(evidence.trace.communicators().size(), 1U);
}

TEST(KinetoFiles, profiles_of_old_pytorch_say_what_is_missing) {
  const Evidence evidence =
      load({kData + "/old_format_worker0.pt.trace.json", kData + "/old_format_worker1.pt.trace.json"}, {});
  ASSERT_EQ(evidence.trace.ranks.size(), 2U);
  EXPECT_EQ(evidence.trace.ranks[1].rank, RankId(std::int64_t{1}));
  EXPECT_EQ(evidence.trace.world_size, 8U);
  EXPECT_EQ(evidence.diagnostics.count_of("kineto.no_arguments"), 26U);
  EXPECT_EQ(evidence.diagnostics.count_of("kineto.kernel_alone"), 16U);
}

TEST(Kineto, names_the_gpu_where_all_are_of_one_model) {
  const std::string barrier = call(1, R"("Collective name": "barrier")");
  const auto device = [&](const std::string& list) {
    return read(profile(barrier, R"("deviceProperties": [)" + list + "], ")).trace.ranks.at(0).device;
  };
  EXPECT_EQ(device(R"({"id": 0, "name": "NVIDIA H100", "computeMajor": 9}, {"id": 1, "name": "NVIDIA H100"})"),
            "NVIDIA H100");
  EXPECT_EQ(device(R"({"id": 0, "name": "NVIDIA H100"}, {"id": 1, "name": "NVIDIA A100"}, {"name": "NVIDIA A100"})"),
            "");
  EXPECT_EQ(device(""), "");
}

// Profiles of two ranks, one file each: what is called, in its order, in groups 0 and tp.
class KinetoSets : public ::testing::Test {
 protected:
  void write(int rank, const std::vector<std::pair<std::string, std::string>>& calls, int first_seq = -1) const {
    std::string events;
    int id = 0;
    for (const auto& [name, group] : calls) {
      std::string arguments = R"("Collective name": ")" + name + R"(", "dtype": "Float", "In msg nelems": 8,
          "Out msg nelems": 8, "Process Group Name": ")" +
                              group + R"(", "Process Group Ranks": "[0, 1]")";
      if (first_seq >= 0) arguments += R"(, "Seq": )" + std::to_string(first_seq + id);
      events += (id == 0 ? "" : ",") + call(id, arguments, std::to_string(100 + 10 * id + rank));
      ++id;
    }
    folder_.write("rank" + std::to_string(rank) + ".json",
                  profile(events, R"("distributedInfo": {"backend": "nccl", "rank": )" + std::to_string(rank) +
                                      R"(, "world_size": 2}, )"));
  }
  Evidence loaded() const { return load({folder_.path()}, {}); }
  // By rank: "group/number kind" in order of rows.
  static std::vector<std::string> told(const Evidence& evidence, std::size_t rank) {
    std::vector<std::string> rows;
    const RankRecord& record = evidence.trace.ranks.at(rank);
    const Program& program = evidence.trace.program(record);
    for (std::size_t row = 0; row < program.size(); ++row) {
      const auto& group = evidence.trace.communicator(record.comms[*program.comm_slot(row)]);
      const auto seq = program.seq(row);
      rows.push_back(std::string(evidence.trace.text(group.name)) + "/" + (seq ? std::to_string(*seq) : "?") + " " +
                     std::string(name_of(evidence.trace.signature(program.signature(row)).kind)));
    }
    return rows;
  }

 private:
  const ddx::testing::ScratchFolder folder_;
};

TEST_F(KinetoSets, without_numbers_calls_are_matched_by_their_order_in_the_group) {
  write(0, {{"allreduce", "0"}, {"allreduce", "tp"}, {"barrier", "0"}, {"allreduce", "tp"}});
  write(1, {{"allreduce", "tp"}, {"allreduce", "0"}, {"allreduce", "tp"}, {"barrier", "0"}});
  const Evidence evidence = loaded();
  EXPECT_THAT(told(evidence, 0),
              ::testing::ElementsAre("0/1 all_reduce", "tp/1 all_reduce", "0/2 barrier", "tp/2 all_reduce"));
  EXPECT_THAT(told(evidence, 1),
              ::testing::ElementsAre("tp/1 all_reduce", "0/1 all_reduce", "tp/2 all_reduce", "0/2 barrier"));
  EXPECT_EQ(evidence.diagnostics.count_of("kineto.matched_by_order"), 4U);
  EXPECT_EQ(evidence.diagnostics.count_of("kineto.not_matched"), 0U);
}

TEST_F(KinetoSets, numbers_that_are_there_stay) {
  write(0, {{"allreduce", "0"}, {"barrier", "0"}}, 7);
  write(1, {{"barrier", "0"}, {"allreduce", "0"}}, 8);
  const Evidence evidence = loaded();
  EXPECT_THAT(told(evidence, 0), ::testing::ElementsAre("0/7 all_reduce", "0/8 barrier"));
  EXPECT_THAT(told(evidence, 1), ::testing::ElementsAre("0/8 barrier", "0/9 all_reduce"));
  EXPECT_EQ(evidence.diagnostics.count_of("kineto.matched_by_order"), 0U);
}

TEST_F(KinetoSets, windows_that_differ_are_not_matched) {
  write(0, {{"allreduce", "0"}, {"barrier", "0"}, {"allreduce", "tp"}});
  write(1, {{"barrier", "0"}, {"allreduce", "tp"}});
  const Evidence evidence = loaded();
  EXPECT_THAT(told(evidence, 0), ::testing::ElementsAre("0/? all_reduce", "0/? barrier", "tp/1 all_reduce"));
  EXPECT_EQ(evidence.diagnostics.count_of("kineto.not_matched"), 1U);
  EXPECT_EQ(evidence.diagnostics.count_of("kineto.matched_by_order"), 1U);
}

TEST_F(KinetoSets, a_single_profile_and_a_mixed_set_keep_what_they_have) {
  write(0, {{"allreduce", "0"}});
  EXPECT_THAT(told(loaded(), 0), ::testing::ElementsAre("0/? all_reduce"));
  write(1, {{"allreduce", "0"}}, 3);
  EXPECT_THAT(told(loaded(), 0), ::testing::ElementsAre("0/? all_reduce"));
  EXPECT_THAT(told(loaded(), 1), ::testing::ElementsAre("0/3 all_reduce"));
}

}  // namespace
}  // namespace ddx::formats
