#include "traces/formats/megatrace.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace ddx::formats {
namespace {

Evidence read(const std::string& text) {
  Evidence evidence;
  evidence.inputs.emplace_back();
  evidence.inputs.front().path = "rank_0.log";
  megatrace_importer().read({"rank_0.log", text}, {}, evidence);
  return evidence;
}

constexpr const char* kTwoStreams =
    "[save_count 1] [1755590104.253968145] [Rank 3] Fun AllReduce Data 1 stream 0x55 opCount 0\n"
    "[save_count 1] [1755590104.300000000] [Rank 3] Fun Send Data 25165824 stream 0x66 opCount 0\n"
    "[save_count 1] [1755590104.300000007] [Rank 3] Fun Recv Data 25165824 stream 0x66 opCount 0\n"
    "[save_count 7] [1755590112.989118525] [Rank 3] Fun Broadcast Data 24 stream 0x55 opCount 29\n";

TEST(Megatrace, a_line_is_a_call_with_its_time_of_issue) {
  const Evidence evidence = read(kTwoStreams);
  ASSERT_EQ(evidence.trace.ranks.size(), 1U);
  const RankRecord& record = evidence.trace.ranks[0];
  EXPECT_EQ(record.rank, RankId(3));
  EXPECT_EQ(record.backend, "nccl");
  EXPECT_TRUE(record.head_lost) << "a ring";
  EXPECT_TRUE(record.tail_lost) << "and nothing says where it ends";
  const Program& program = evidence.trace.program(record);
  ASSERT_EQ(program.size(), 4U);
  EXPECT_EQ(program.issue(0), 1'755'590'104'253'968'145);
  EXPECT_EQ(program.start(0), std::nullopt);
  EXPECT_EQ(program.seq(3), 29U);
  const Signature& broadcast = evidence.trace.signature(program.signature(3));
  EXPECT_EQ(broadcast.kind, OpKind::broadcast);
  EXPECT_EQ(broadcast.count_in, 24U);
  EXPECT_EQ(evidence.trace.signature(program.signature(1)).kind, OpKind::send);
  EXPECT_TRUE(evidence.inputs[0].ranks.contains(RankId(3)));
}

TEST(Megatrace, a_stream_is_a_communicator_of_which_nothing_is_known) {
  const Evidence evidence = read(kTwoStreams);
  const RankRecord& record = evidence.trace.ranks[0];
  ASSERT_EQ(record.comms.size(), 2U);
  const Communicator& first = evidence.trace.communicator(record.comms[0]);
  EXPECT_TRUE(first.synthesized);
  EXPECT_TRUE(first.members.empty());
  EXPECT_EQ(first.declared_size, std::nullopt);
  EXPECT_EQ(evidence.trace.text(first.name), "rank 3 stream 0x55");
}

// Several communicators on one stream: opCount is no place in one list.
TEST(Megatrace, counts_that_begin_again_are_no_sequence) {
  const Evidence evidence = read(
      "[save_count 1] [1.000000000] [Rank 0] Fun AllReduce Data 1 stream 0x1 opCount 0\n"
      "[save_count 1] [2.000000000] [Rank 0] Fun AllGather Data 1 stream 0x1 opCount 0\n");
  const Program& program = evidence.trace.programs[0];
  EXPECT_EQ(program.seq(0), std::nullopt);
  EXPECT_EQ(program.seq(1), std::nullopt);
}

TEST(Megatrace, ranks_of_one_file_are_apart) {
  const Evidence evidence = read(
      "[save_count 1] [1.000000000] [Rank 0] Fun AllReduce Data 1 stream 0x1 opCount 0\n"
      "[save_count 1] [1.000000000] [Rank 1] Fun AllReduce Data 1 stream 0x1 opCount 0\n");
  ASSERT_EQ(evidence.trace.ranks.size(), 2U);
  EXPECT_EQ(evidence.trace.ranks[1].rank, RankId(1));
}

TEST(Megatrace, bad_lines_are_counted) {
  const std::string good = "[save_count 1] [1.000000000] [Rank 0] Fun AllReduce Data 1 stream 0x1 opCount 0\n";
  for (const char* bad : {
           "[save_count 1] [1.5] [Rank 0] Fun AllReduce Data 1 stream 0x1 opCount 1",
           "[save_count 1] [1.0000000000] [Rank 0] Fun AllReduce Data 1 stream 0x1 opCount 1",
           "[save_count 1] [99999999999999.000000000] [Rank 0] Fun AllReduce Data 1 stream 0x1 opCount 1",
           "[save_count 1] [1.000000000] [Rank -1] Fun AllReduce Data 1 stream 0x1 opCount 1",
           "[save_count 1] [1.000000000] [Rank 4294967296] Fun AllReduce Data 1 stream 0x1 opCount 1",
           "[save_count 1] [1.000000000] [Rank 0] Fun AllReduce Data -1 stream 0x1 opCount 1",
           "[save_count 1] [1.000000000] [Rank 0] Fun AllReduce Data 1 stream 0x1 opCount 4294967295",
           "[save_count 1] [1.000000000] [Rank 0] Fun AllReduce Data 1 stream 0x1 opCount 1 more",
           "[save_count 1] [1.000000000] [Rank 0] Fun AllReduce Data 1 stream 0x1",
           "[save_count 1] [1.000000000] [Rank 0] Fun AllRe",
           "nothing of the kind",
       }) {
    const Evidence evidence = read(good + bad + "\n");
    EXPECT_EQ(evidence.trace.programs[0].size(), 1U) << bad;
    EXPECT_EQ(evidence.diagnostics.count_of("megatrace.bad_line"), 1U) << bad;
  }
  EXPECT_EQ(read(good + "\n \r\n").diagnostics.count_of("megatrace.bad_line"), 0U) << "empty lines are none";
}

TEST(Megatrace, an_unknown_function_is_kept_by_name) {
  const Evidence evidence = read("[save_count 1] [1.000000000] [Rank 0] Fun PutSignal Data 1 stream 0x1 opCount 0\n");
  const Signature& signature = evidence.trace.signature(evidence.trace.programs[0].signature(0));
  EXPECT_EQ(signature.kind, OpKind::unknown);
  EXPECT_EQ(evidence.trace.text(signature.name), "PutSignal");
}

TEST(Megatrace, nothing_of_it_is_an_error) { EXPECT_THROW(read("a line\nanother\n"), Error); }

TEST(Megatrace, what_is_beyond_the_bounds_is_counted) {
  ImportOptions options;
  options.max_ops_per_file = 2;
  Evidence evidence;
  evidence.inputs.emplace_back();
  megatrace_importer().read({"a.log", kTwoStreams}, options, evidence);
  EXPECT_EQ(evidence.trace.programs[0].size(), 2U);
  EXPECT_EQ(evidence.diagnostics.count_of("megatrace.too_much"), 2U);
}

TEST(Megatrace, is_told_from_other_logs) {
  const Importer importer = megatrace_importer();
  EXPECT_EQ(importer.sniff("rank_0.log", kTwoStreams), Sniff::sure);
  EXPECT_EQ(importer.sniff("rank_0.log", std::string("cut off at the front\n") + kTwoStreams), Sniff::sure);
  EXPECT_EQ(importer.sniff("rank_0.log", "node-a:1:1 [0] NCCL INFO AllReduce: opCount 0\n"), Sniff::no);
  EXPECT_EQ(importer.sniff("rank_0.log", ""), Sniff::no);
}

}  // namespace
}  // namespace ddx::formats
