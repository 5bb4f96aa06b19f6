// Traces are made byte by byte from the schema's field numbers; counts of real files are those that a decoder which is
// not ours gives (tests/traces/formats/chakra/data/SOURCES.md).
#include "traces/formats/chakra.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "base/error.h"
#include "tests/support/chakra_bytes.h"
#include "traces/formats/loader.h"
#include "traces/formats/ops.h"

namespace ddx::formats {
namespace {

using namespace ddx::testing::chakra;

using ::testing::HasSubstr;

Evidence read(const std::string& text, const std::string& path = "job.3.et", std::uint64_t max_ops = 1000) {
  Evidence evidence;
  evidence.inputs.emplace_back().path = path;
  ImportOptions options;
  options.max_ops_per_file = max_ops;
  chakra_importer().read({path, text}, options, evidence);
  return evidence;
}

// The program as ops text, without what stands before the first operation.
std::string ops_of(const Evidence& evidence) {
  std::ostringstream out;
  write_ops(evidence.trace, out);
  return out.str();
}

Signature first_call(const Evidence& evidence) {
  const Program& program = evidence.trace.programs.at(0);
  return evidence.trace.signature(program.signature(0));
}

TEST(Chakra, every_kind_of_collective_has_its_number) {
  constexpr OpKind kKinds[] = {OpKind::all_reduce,     OpKind::reduce,    OpKind::all_gather, OpKind::gather,
                               OpKind::scatter,        OpKind::broadcast, OpKind::all_to_all, OpKind::reduce_scatter,
                               OpKind::reduce_scatter, OpKind::barrier};
  for (std::uint64_t kind = 0; kind < 10; ++kind) {
    const Signature call = first_call(read(kHead + collective(0, kind, 1 << 20)));
    EXPECT_EQ(call.kind, kKinds[kind]);
    EXPECT_EQ(call.count_in, std::uint64_t{1} << 20);
    EXPECT_EQ(call.type_in, DataType::u8);
  }
  const Evidence unknown = read(kHead + collective(0, 10, 8));
  EXPECT_EQ(first_call(unknown).kind, OpKind::unknown);
  EXPECT_EQ(unknown.diagnostics.count_of("chakra.unknown_collective"), 1U);
}

TEST(Chakra, numbers_may_come_in_any_integer_kind) {
  const auto fixed = [](unsigned field, unsigned wire, std::size_t size, std::uint64_t value) {
    std::string out = varint(field << 3 | wire);
    for (std::size_t i = 0; i < size; ++i, value >>= 8) out += static_cast<char>(value);
    return out;
  };
  const std::uint64_t minus_five = static_cast<std::uint64_t>(std::int64_t{-5});
  const std::pair<std::string, std::int64_t> values[] = {{number(7, 300), 300},
                                                         {number(7, minus_five), -5},
                                                         {number(9, minus_five), -5},
                                                         {number(11, 300), 300},
                                                         {number(13, 300), 300},
                                                         {number(15, 9), -5},
                                                         {number(17, 600), 300},
                                                         {fixed(19, 5, 4, 300), 300},
                                                         {fixed(21, 1, 8, 300), 300},
                                                         {fixed(23, 5, 4, minus_five), -5},
                                                         {fixed(25, 1, 8, minus_five), -5},
                                                         {number(27, 1), 1},
                                                         {fixed(3, 1, 8, 0x4072C00000000000), 300},
                                                         {fixed(5, 5, 4, 0x43960000), 300}};  // 300.0 as double, float
  for (const auto& [value, expected] : values) {
    const Evidence evidence = read(kHead + node(0, 5,
                                                attribute("comm_dst", 9, 1) + attribute("comm_size", 9, 8) +
                                                    bytes(10, bytes(1, "comm_tag") + value)));
    EXPECT_EQ(first_call(evidence).tag, expected) << ::testing::PrintToString(value);
  }
}

TEST(Chakra, computation_calls_and_waits_in_the_order_of_dependencies) {
  const Evidence evidence = read(kHead + node(0, 4, number(7, 15)) + collective(1, 0, 64, on(0)) +
                                 node(2, 4, number(7, 3) + on(1)) + node(3, 4, number(7, 4) + on(0)));
  EXPECT_THAT(ops_of(evidence), HasSubstr("3 compute 15us stream=0 async name=\"n0\"\n"
                                          "3 wait 0\n"
                                          "3 all_reduce u8 64 world async"));
  const Program& program = evidence.trace.programs.at(0);
  std::vector<OpKind> kinds;
  for (std::size_t row = 0; row < program.size(); ++row) {
    kinds.push_back(evidence.trace.signature(program.signature(row)).kind);
  }
  EXPECT_EQ(kinds, (std::vector{OpKind::compute, OpKind::wait, OpKind::all_reduce, OpKind::compute, OpKind::wait,
                                OpKind::compute}))
      << "node 3 is on the stream of node 0 and needs no wait, node 1 is not and does, and so does node 2";
  EXPECT_EQ(evidence.trace.ranks.at(0).rank, RankId(std::int64_t{3}));
  EXPECT_TRUE(evidence.trace.ranks.at(0).whole_program);
}

TEST(Chakra, sends_and_receives_name_global_ranks_and_who_depends_on_them_waits) {
  const Evidence evidence = read(
      kHead + node(0, 5, attribute("comm_dst", 7, 4) + attribute("comm_size", 13, 8) + attribute("comm_tag", 7, 2)) +
      node(1, 6, attribute("comm_src", 11, 2) + attribute("comm_size", 13, 8) + on(0)) + node(2, 4, on(1)));
  EXPECT_EQ(evidence.trace.ranks.at(0).peers, (std::vector<std::int32_t>{4, 2}));
  const Program& program = evidence.trace.programs.at(0);
  ASSERT_EQ(program.size(), 5U);
  for (const std::uint32_t call : {0U, 1U}) {
    EXPECT_EQ(evidence.trace.signature(program.signature(2 * call + 1)).kind, OpKind::wait);
    EXPECT_EQ(evidence.trace.signature(program.signature(2 * call + 1)).handle, call);
  }
  EXPECT_TRUE(evidence.trace.ranks.at(0).sends_end_locally) << "the wait for the send holds up nobody";
  EXPECT_EQ(read(kHead + node(0, 5, attribute("comm_size", 9, 8))).diagnostics.count_of("chakra.no_peer"), 1U);
}

TEST(Chakra, groups_come_from_metadata_nodes_in_json_python_or_escaped) {
  const std::string notes[] = {R"([{"pg_name": "7", "pg_desc": "tp", "ranks": [1, 3], "group_size": 2}])",
                               R"([[{'pg_name': '7', 'ranks': [1, 3]}, {'pg_name': '8', 'ranks': [0]}]])",
                               R"(["[{\"pg_name\": \"7\", \"ranks\": [1, 3], \"group_size\": 2}]"])"};
  for (const std::string& note : notes) {
    const Evidence evidence =
        read(kHead + node(0, 1, bytes(8, bytes(1, note))) + collective(1, 2, 64, text_attribute("pg_name", "7")));
    const RankRecord& record = evidence.trace.ranks.at(0);
    ASSERT_EQ(record.comms.size(), 1U) << note;
    EXPECT_EQ(evidence.trace.communicator(record.comms[0]).members,
              (std::vector{RankId(std::int64_t{1}), RankId(std::int64_t{3})}))
        << note;
    EXPECT_EQ(record.comm_rank, std::vector<std::uint32_t>{1});
    EXPECT_EQ(first_call(evidence).count_out, 128U) << "each rank gives 64";
  }
  const Evidence sized =
      read(kHead + node(0, 1, bytes(8, bytes(1, R"([{"pg_name": "0", "ranks": [], "group_size": 4}])"))) +
           collective(1, 0, 64, text_attribute("pg_name", "0")));
  EXPECT_EQ(sized.trace.communicator(sized.trace.ranks.at(0).comms.at(0)).members.size(), 4U);
}

TEST(Chakra, a_size_in_a_note_does_not_cost_memory_without_end) {
  std::string text = kHead;
  const std::string note = R"([{"pg_name": "NAME", "ranks": [], "group_size": 1000000}])";
  for (int i = 0; i < 2000; ++i) {
    std::string named = note;
    named.replace(named.find("NAME"), 4, std::to_string(i));
    text += node(static_cast<std::uint64_t>(i), 1, bytes(8, bytes(1, named)));
  }
  read(text + collective(9000, 0, 8), "job.0.et", 10'000);  // 8 GB if every list were made
}

TEST(Chakra, circles_are_told_with_their_nodes) {
  const Evidence hard = read(kHead + node(4, 4, on(5)) + node(5, 4, on(4)));
  ASSERT_EQ(hard.cycles.size(), 1U);
  EXPECT_THAT(hard.cycles[0].nodes, ::testing::ElementsAre(4U, 5U));
  EXPECT_FALSE(hard.cycles[0].control);
  EXPECT_EQ(hard.diagnostics.count_of("chakra.dependency_cycle"), 1U);
  const Evidence soft = read(kHead + node(4, 4, control(5)) + node(5, 4, on(4)));
  EXPECT_TRUE(soft.cycles.at(0).control);
  EXPECT_EQ(soft.diagnostics.count_of("chakra.control_cycle"), 1U);
}

TEST(Chakra, a_cut_file_is_read_up_to_the_cut_and_is_no_whole_program) {
  const std::string whole = kHead + collective(0, 0, 8) + collective(1, 0, 8);
  for (std::size_t size = kHead.size() + collective(0, 0, 8).size() + 1; size < whole.size(); ++size) {
    const Evidence evidence = read(whole.substr(0, size));
    EXPECT_EQ(evidence.trace.programs.at(0).size(), 1U) << size;
    EXPECT_EQ(evidence.diagnostics.count_of("chakra.truncated_file"), 1U) << size;
    EXPECT_TRUE(evidence.trace.ranks.at(0).tail_lost);
    EXPECT_FALSE(evidence.trace.ranks.at(0).whole_program);
  }
  EXPECT_EQ(read(whole, "job.0.et", 1).diagnostics.count_of("chakra.too_many_nodes"), 1U);
}

TEST(Chakra, what_is_none_says_what_was_expected) {
  for (const std::string& text : {std::string(), std::string("garbage\xff\xff"), kHead, std::string(100, '\0')}) {
    EXPECT_THROW(read(text), Error) << ::testing::PrintToString(text);
  }
}

TEST(Chakra, unknown_types_and_missing_sizes_are_counted) {
  const Evidence evidence = read(kHead + node(0, 9, "") + node(1, 7, "") + node(2, 7, attribute("comm_type", 9, 0)) +
                                 node(3, 7, attribute("comm_type", 9, 0) + attribute("comm_size", 9, 1ULL << 63)));
  EXPECT_EQ(evidence.diagnostics.count_of("chakra.unknown_node_type"), 1U);
  EXPECT_EQ(evidence.diagnostics.count_of("chakra.no_comm_type"), 1U);
  EXPECT_EQ(evidence.diagnostics.count_of("chakra.no_size"), 1U);
  EXPECT_EQ(evidence.diagnostics.count_of("chakra.negative_size"), 1U) << "an int64 of its largest bit alone";
}

std::vector<std::optional<std::uint32_t>> streams_of(const Evidence& evidence) {
  std::vector<std::optional<std::uint32_t>> streams;
  const Program& program = evidence.trace.programs.at(0);
  for (std::size_t row = 0; row < program.size(); ++row) {
    const Signature& call = evidence.trace.signature(program.signature(row));
    if (call.kind == OpKind::compute) streams.push_back(call.stream);
  }
  return streams;
}

TEST(Chakra, threads_and_streams_run_beside_each_other) {
  const auto at = [](const char* name, std::uint64_t value) { return attribute(name, 9, value); };
  const Evidence evidence =
      read(kHead + node(0, 4, micros(1) + on_cpu() + at("tid", 1)) + node(1, 4, micros(1) + on_cpu() + at("tid", 2)) +
           node(2, 4, micros(1) + at("stream", 7)) + node(3, 4, micros(1) + at("stream", 20)) +
           node(4, 4, micros(1) + on_cpu() + at("tid", 1)) + node(5, 4, micros(1) + at("stream", 7)));
  const auto streams = streams_of(evidence);
  ASSERT_EQ(streams.size(), 6U);
  EXPECT_EQ(std::set(streams.begin(), streams.begin() + 4).size(), 4U);
  EXPECT_EQ(streams[4], streams[0]);
  EXPECT_EQ(streams[5], streams[2]);
  const auto plain = streams_of(read(kHead + node(0, 4, micros(1) + on_cpu()) + node(1, 4, micros(1)) +
                                     node(2, 4, micros(1) + attribute("is_cpu_op", 27, 0))));
  EXPECT_NE(plain[0], plain[1]);
  EXPECT_EQ(plain[1], plain[2]) << "not said to be on the CPU is on the GPU";
}

std::vector<std::optional<Nanos>> lengths_of(const Evidence& evidence) {
  std::vector<std::optional<Nanos>> lengths;
  const Program& program = evidence.trace.programs.at(0);
  for (std::size_t row = 0; row < program.size(); ++row) {
    const Signature& call = evidence.trace.signature(program.signature(row));
    if (call.kind == OpKind::compute) lengths.push_back(call.compute_time);
  }
  return lengths;
}

TEST(Chakra, a_computation_without_a_duration_takes_no_known_time) {
  const std::string work = attribute("num_ops", 13, 1'000'000'000'000);
  const auto none = read(kHead + node(0, 4, work) + node(1, 4, ""));
  EXPECT_THAT(lengths_of(none), ::testing::Each(::testing::Eq(std::nullopt)));
  EXPECT_EQ(none.diagnostics.count_of("chakra.no_duration"), 2U);
  EXPECT_THAT(ops_of(none), HasSubstr("3 compute ? "));
  // Where others have one, a node without is shorter than the format's microsecond, unless it has work to do.
  const auto some = read(kHead + node(0, 4, work) + node(1, 4, "") + node(2, 4, micros(5)) +
                         node(3, 2, attribute("tensor_size", 9, 64)));
  EXPECT_THAT(lengths_of(some), ::testing::UnorderedElementsAre(::testing::Eq(std::nullopt), 0, 5 * kMicrosecond,
                                                                ::testing::Eq(std::nullopt)));
}

TEST(Chakra, ranks_of_unequal_speed_make_their_calls_in_one_order) {
  // Two all_reduces of one group that depend on two streams: whichever computation ends first, node 2 comes first.
  const auto calls = [](std::uint64_t first, std::uint64_t second) {
    const Evidence evidence = read(kHead + node(0, 4, micros(first) + attribute("stream", 9, 1)) +
                                   node(1, 4, micros(second) + attribute("stream", 9, 2)) + collective(2, 0, 8, on(0)) +
                                   collective(3, 0, 16, on(1)));
    std::vector<std::optional<std::uint64_t>> counts;
    const Program& program = evidence.trace.programs.at(0);
    for (std::size_t row = 0; row < program.size(); ++row) {
      const Signature& call = evidence.trace.signature(program.signature(row));
      if (call.kind == OpKind::all_reduce) counts.push_back(call.count_in);
    }
    return counts;
  };
  EXPECT_THAT(calls(10, 20), ::testing::ElementsAre(8U, 16U));
  EXPECT_THAT(calls(20, 10), ::testing::ElementsAre(8U, 16U));
}

const std::string kData = std::string(DDX_SOURCE_DIR) + "/tests/traces/formats/chakra/data";

TEST(ChakraFiles, a_set_of_ranks_is_one_job) {
  std::vector<std::string> paths;
  for (int rank = 0; rank < 8; ++rank) paths.push_back(kData + "/all_reduce." + std::to_string(rank) + ".et");
  const Evidence evidence = load(paths, {});
  ASSERT_EQ(evidence.trace.ranks.size(), 8U);
  ASSERT_EQ(evidence.trace.communicators().size(), 1U);
  EXPECT_EQ(evidence.trace.communicators()[0].members.size(), 8U);
  EXPECT_EQ(evidence.trace.world_size, 8U) << "its nodes are called all_reduce_8npus_1MB";
  for (std::uint32_t rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(evidence.trace.ranks[rank].comm_rank, std::vector<std::uint32_t>{rank});
  }
  EXPECT_EQ(first_call(evidence).count_in, std::uint64_t{1} << 20);
  EXPECT_TRUE(evidence.diagnostics.empty());
}

TEST(ChakraFiles, a_real_one_with_holes_is_read) {
  const Evidence evidence = load({kData + "/pytorch_part.0.et"}, {});
  EXPECT_EQ(evidence.inputs.front().format, "chakra");
  std::size_t all_reduces = 0, broadcasts = 0;
  const Program& program = evidence.trace.programs.at(0);
  for (std::size_t row = 0; row < program.size(); ++row) {
    const OpKind kind = evidence.trace.signature(program.signature(row)).kind;
    all_reduces += kind == OpKind::all_reduce ? 1U : 0U;
    broadcasts += kind == OpKind::broadcast ? 1U : 0U;
  }
  EXPECT_EQ(all_reduces, 5U);
  EXPECT_EQ(broadcasts, 2U);
  EXPECT_EQ(evidence.diagnostics.count_of("chakra.no_comm_type"), 14U);
  EXPECT_GT(evidence.diagnostics.count_of("chakra.dangling_dependency"), 0U);
  ASSERT_FALSE(evidence.cycles.empty());
  EXPECT_THAT(evidence.cycles.front().nodes, ::testing::ElementsAre(3317U, 3318U));
  EXPECT_TRUE(evidence.cycles.front().control);
}

}  // namespace
}  // namespace ddx::formats
