// A table says the same as ops text: that notation's reader gives the right answers.
#include "traces/formats/op_table.h"

#include <gtest/gtest.h>

#include <sstream>

#include "base/error.h"
#include "traces/formats/ops.h"

namespace ddx::formats {
namespace {

Evidence read_table(const std::string& text, std::uint64_t max_ops = 1000) {
  Evidence evidence;
  evidence.inputs.emplace_back().path = "calls.csv";
  ImportOptions options;
  options.max_ops_per_file = max_ops;
  const Importer importer = op_table_importer();
  importer.read({"calls.csv", text}, options, evidence);
  return evidence;
}

std::string ops_of(const Trace& trace) {
  std::ostringstream out;
  write_ops(trace, out);
  return out.str();
}

void expect_same(const std::string& table, const std::string& ops) {
  EXPECT_EQ(ops_of(read_table(table).trace), ops_of(read_ops(ops).trace)) << table;
}

TEST(OpTable, sends_and_receives_with_tags) {
  expect_same(
      "rank,seq,op,peer,count,tag\n"
      "0,1,send,1,100,1\n0,2,send,1,100,2\n1,1,recv,0,100,2\n1,2,recv,0,100,1\n",
      "world 2\n0 send ? 100 to 1 tag=1\n0 send ? 100 to 1 tag=2\n"
      "1 recv ? 100 from 0 tag=2\n1 recv ? 100 from 0 tag=1\n");
}

TEST(OpTable, columns_in_any_order_with_groups_types_and_roots) {
  expect_same(
      "Root,COUNT,op,dtype,group,rank\r\n"
      ",8,all_gather,bf16,tp,1\r\n,8,AllGather,torch.bfloat16,tp,3\r\n"
      "3,4,broadcast,f32,tp,1\r\n3,4,ncclBroadcast,float32,tp,3\r\n"
      ",16,\"nccl:all_reduce\",Float,,0\r\n",
      "world 4\nabsent 2\npg tp = 1,3\n1,3 all_gather bf16 8 tp\n1,3 broadcast f32 4 tp root=3\n"
      "0 all_reduce f32 16 pg0\n");
}

TEST(OpTable, seq_orders_the_rows_of_a_rank_where_its_numbers_differ) {
  expect_same("rank,seq,op,count\n0,2,barrier,\n0,1,all_reduce,5\n", "world 1\n0 all_reduce ? 5\n0 barrier\n");
  // Counted per group, say: not the order of the rank.
  expect_same("rank,seq,op,count,group\n0,2,all_reduce,5,a\n0,1,all_reduce,6,b\n0,2,all_reduce,7,b\n",
              "world 1\npg a = 0\npg b = 0\n0 all_reduce ? 5 a\n0 all_reduce ? 6 b\n0 all_reduce ? 7 b\n");
}

TEST(OpTable, a_batch_stands_between_group_begin_and_group_end) {
  expect_same(
      "rank,op,peer,count\n0,group_begin,,\n0,isend,1,3\n0,irecv,1,3\n0,group_end,,\n1,recv,0,3\n",
      "world 2\n0 group_begin\n0 send ? 3 to 1 async\n0 recv ? 3 from 1 async\n0 group_end\n1 recv ? 3 from 0\n");
}

TEST(OpTable, a_peer_outside_the_world_stays_a_fault_to_be_found) {
  const Evidence evidence = read_table("rank,op,peer,count\n0,send,7,3\n1,send,-2,3\n");
  EXPECT_EQ(evidence.trace.ranks.at(0).peers, std::vector<std::int32_t>{7});
  EXPECT_LT(evidence.trace.ranks.at(1).peers.at(0), 0);
  EXPECT_EQ(evidence.trace.world_size, 2u);
}

TEST(OpTable, whole_programs_of_the_ranks_that_have_rows) {
  const Evidence evidence = read_table("rank,op,count\n5,barrier,\n2,barrier,\n");
  ASSERT_EQ(evidence.trace.ranks.size(), 2u);
  EXPECT_EQ(evidence.trace.ranks[0].rank, RankId(std::int64_t{2}));
  EXPECT_EQ(evidence.trace.ranks[0].comm_rank, std::vector<std::uint32_t>{2});
  for (const RankRecord& record : evidence.trace.ranks) {
    EXPECT_TRUE(record.whole_program);
    EXPECT_FALSE(record.snapshot);
  }
  EXPECT_TRUE(evidence.inputs.front().ranks.contains(RankId(std::int64_t{5})));
}

TEST(OpTable, what_is_wrong_in_a_row_is_counted_and_the_rest_is_read) {
  const Evidence evidence = read_table(
      "rank,seq,op,peer,count\n"
      "x,1,send,1,1\n-1,1,send,1,1\n2000000000,1,send,1,1\n"  // no rank
      "0,1,compute,,5\n0,2,,,5\n"                             // no call
      "0,3,all_reduce,,five\n0,4,all_reduce,,-5\n"            // bad counts, rows kept
      "0,5,frobnicate,,5\n0,9,recv,,5\n");                    // unknown; without a peer, and a gap
  const auto count = [&](std::string_view name) { return evidence.diagnostics.count_of(name); };
  EXPECT_EQ(count("op_table.bad_rank"), 3u);
  EXPECT_EQ(count("op_table.unsupported_op"), 2u);
  EXPECT_EQ(count("op_table.bad_cell"), 3u);    // "x" is one
  EXPECT_EQ(count("op_table.unknown_op"), 2u);  // the empty name is one
  EXPECT_EQ(count("op_table.no_peer"), 1u);
  EXPECT_EQ(count("op_table.gap"), 1u);
  EXPECT_EQ(evidence.trace.program(evidence.trace.ranks.at(0)).size(), 4u);
}

TEST(OpTable, groups_of_calls_that_do_not_pair_are_mended) {
  const Evidence evidence = read_table("rank,op,peer,count\n0,group_end,,\n0,group_begin,,\n0,send,1,1\n1,recv,0,1\n");
  EXPECT_EQ(evidence.diagnostics.count_of("op_table.unpaired_group"), 2u);
  EXPECT_EQ(ops_of(evidence.trace), ops_of(read_ops("world 2\n0 group_begin\n0 send ? 1 to 1\n0 group_end\n"
                                                    "1 recv ? 1 from 0\n")
                                               .trace));
}

TEST(OpTable, nothing_to_read_is_an_error_and_too_much_is_cut) {
  EXPECT_THROW(read_table("rank,op,count\n"), Error);
  EXPECT_THROW(read_table("host,op\na,b\n"), Error);
  EXPECT_THROW(read_table(""), Error);
  const Evidence evidence = read_table("rank,op,count\n0,barrier,\n0,barrier,\n0,barrier,\n", 2);
  EXPECT_EQ(evidence.trace.program(evidence.trace.ranks.at(0)).size(), 2u);
  EXPECT_EQ(evidence.diagnostics.count_of("op_table.too_long"), 1u);
}

TEST(OpTable, is_told_from_other_tables) {
  const auto sniff = [](const std::string& path, std::string_view head) {
    return op_table_importer().sniff(path, head);
  };
  EXPECT_EQ(sniff("calls.csv", "rank,seq,op,peer,count,tag\n"), Sniff::sure);
  EXPECT_EQ(sniff("calls.csv.gz", "rank,seq,op,peer,count,tag\n"), Sniff::sure);
  EXPECT_EQ(sniff("calls.txt", "rank,seq,op,peer,count,tag\n"), Sniff::no);
  EXPECT_EQ(sniff("hosts.csv", "rank,host,ip\n"), Sniff::no);
  EXPECT_EQ(sniff("env.csv", "RANK,WORLD_SIZE,MASTER_ADDR\n"), Sniff::no);
  EXPECT_EQ(sniff("latency.csv", "rank,op,ms\n"), Sniff::no);
}

}  // namespace
}  // namespace ddx::formats
