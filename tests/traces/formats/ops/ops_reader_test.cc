// Reading the ops notation: what each line becomes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/ops_text.h"
#include "traces/formats/ops.h"

namespace ddx::formats {
namespace {

using ddx::testing::evidence_of;
using ddx::testing::trace_of;

// One rank's list.
struct List {
  const Trace& trace;
  const RankRecord& record;
  const Program& program;

  List(const Trace& from, std::size_t rank) : trace(from), record(from.ranks.at(rank)), program(from.program(record)) {}
  const Signature& at(std::size_t row) const { return trace.signature(program.signature(row)); }
  std::string group(std::size_t row) const {
    return std::string(trace.text(trace.communicator(record.comms.at(*program.comm_slot(row))).name));
  }
  std::optional<std::int32_t> peer(std::size_t row) const { return trace.peer(record, at(row)); }
};

TEST(OpsReader, ranks_groups_and_counts) {
  const Evidence evidence = evidence_of(
      "# two pairs\n"
      "\n"
      "world 4\n"
      "pg pair = 3,1   # in this order\n"
      "all all_reduce f32 8 redop=sum pg0\n"
      "1,3 all_gather bf16 9000 pair\n"
      "1,3 reduce_scatter f16 10 pair\n"
      "0-2 barrier pg0\n");
  const Trace& trace = evidence.trace;
  EXPECT_EQ(trace.world_size, 4U);
  ASSERT_EQ(trace.ranks.size(), 4U);
  EXPECT_EQ(evidence.inputs[0].ranks.text(), "0-3");

  const List one(trace, 1);
  EXPECT_EQ(one.record.rank, RankId(1));
  EXPECT_FALSE(one.record.snapshot);
  EXPECT_TRUE(one.record.whole_program);
  EXPECT_FALSE(one.record.stream_ordered);
  ASSERT_EQ(one.program.size(), 4U);
  EXPECT_EQ(one.at(0).kind, OpKind::all_reduce);
  EXPECT_EQ(one.at(0).redop, RedOp::sum);
  EXPECT_EQ(one.at(0).count_in, 8U);
  EXPECT_EQ(one.at(0).count_out, 8U);
  EXPECT_EQ(one.group(0), "pg0");
  EXPECT_EQ(one.at(1).type_in, DataType::bf16);
  EXPECT_EQ(one.at(1).type_out, DataType::bf16);
  EXPECT_EQ(one.at(1).count_in, 9000U);
  EXPECT_EQ(one.at(1).count_out, 18000U) << "two members";
  EXPECT_EQ(one.group(1), "pair");
  EXPECT_EQ(one.at(2).count_out, 5U);
  EXPECT_EQ(one.at(3).kind, OpKind::barrier);
  EXPECT_EQ(one.at(3).count_in, std::nullopt);

  const Communicator& pair = trace.communicator(one.record.comms[1]);
  EXPECT_EQ(pair.members, (std::vector<RankId>{RankId(3), RankId(1)}));
  EXPECT_EQ(one.record.comm_rank, (std::vector<std::uint32_t>{1, 1}));
  EXPECT_EQ(List(trace, 3).record.comm_rank, (std::vector<std::uint32_t>{3, 0}));
  EXPECT_EQ(List(trace, 3).program.size(), 3U);
}

TEST(OpsReader, output_counts_follow_the_operation) {
  const Trace trace = trace_of(
      "world 4\n"
      "0 all_gather f32 6\n"
      "0 gather f32 6 root=1\n"
      "0 reduce_scatter f32 8\n"
      "0 scatter f32 8 root=1\n"
      "0 broadcast f32 6 root=1\n"
      "0 reduce f32 6 root=1\n"
      "0 all_to_all f32 6\n"
      "0 all_gather f32 6 out=25\n"
      "0 all_gather f32 6 out=?\n"
      "0 all_gather f32 ?\n"
      "0 send f32 6 to 1\n"
      "0 reduce_scatter f32 10\n");
  const std::optional<std::uint64_t> none;
  const std::optional<std::uint64_t> expected[] = {24, 24, 2, 2, 6, 6, 6, 25, none, none, none, 2};
  const List list(trace, 0);
  for (std::size_t row = 0; row < std::size(expected); ++row) EXPECT_EQ(list.at(row).count_out, expected[row]) << row;
}

TEST(OpsReader, roots_and_peers_are_positions) {
  const Trace trace = trace_of(
      "world 6\n"
      "pg tp = 5,4,3\n"
      "4 broadcast f32 1 root=3 tp\n"
      "4 send f32 1 to 5 tp tag=7\n"
      "4 recv f32 1 from 0 pg0\n"
      "4 broadcast f32 1 root=1 tp\n"  // no member, and its number would be a position
      "4 broadcast f32 1 root=9 tp\n"  // no member of anything
      "4 send f32 1 to pos:-2 tp\n");
  const List list(trace, 4);
  EXPECT_EQ(list.peer(0), 2);
  EXPECT_EQ(list.peer(1), 0);
  EXPECT_EQ(list.at(1).tag, 7);
  EXPECT_EQ(list.peer(2), 0);
  for (const std::size_t row : {3U, 4U, 5U}) {
    EXPECT_TRUE(*list.peer(row) < 0 || *list.peer(row) >= 3) << "a position that is none, row " << row;
  }
}

TEST(OpsReader, every_other_word) {
  const Trace trace = trace_of(
      "world 2\n"
      "0 all_to_all f32 6 splits=2,4 stream=3 async=a @train.py:12:step @\"my lib/x.py:3:C::f\"\n"
      "0 all_to_all f32 6 in_splits=2,4 out_splits=1,5 async\n"
      "0 wait a\n"
      "0 wait 1\n"
      "0 compute 1.5ms stream=1 name=\"matmul # 3\"\n"
      "0 host_sync\n"
      "0 new_group 1,0\n"
      "0 split color=1 key=-2 pg0\n"
      "0 all_reduce f32 12 in_shapes=2x3,6 out_shapes=- seq=812 issue=5 start=6 end=7 [completed] [retired]\n"
      "0 raise \"KeyError: \\\"x\\\" # not a comment\"   # a comment\n"
      "1 stuck in the data loader   # a comment\n");
  const List list(trace, 0);
  EXPECT_EQ(list.at(0).split_in, (std::vector<std::uint64_t>{2, 4}));
  EXPECT_EQ(list.at(0).split_out, (std::vector<std::uint64_t>{2, 4}));
  EXPECT_EQ(list.at(0).stream, 3U);
  EXPECT_TRUE(list.at(0).async);
  const CallSite& site = trace.call_site(*list.program.call_site(0));
  ASSERT_EQ(site.frames.size(), 2U);
  EXPECT_EQ(trace.text(site.frames[0].file), "train.py");
  EXPECT_EQ(site.frames[0].line, 12U);
  EXPECT_EQ(trace.text(site.frames[0].function), "step");
  EXPECT_EQ(trace.text(site.frames[1].file), "my lib/x.py");
  EXPECT_EQ(trace.text(site.frames[1].function), "C::f");
  EXPECT_EQ(list.at(1).split_out, (std::vector<std::uint64_t>{1, 5}));
  EXPECT_EQ(list.at(2).handle, 0U);
  EXPECT_EQ(list.at(3).handle, 1U);
  EXPECT_EQ(list.at(4).compute_time, 1'500'000);
  EXPECT_EQ(trace.text(list.at(4).name), "matmul # 3");
  EXPECT_EQ(list.at(5).kind, OpKind::host_sync);
  EXPECT_EQ(list.at(6).members, (std::vector<std::int32_t>{1, 0}));
  EXPECT_EQ(list.group(6), "pg0*") << "creations are counted apart from the world's other calls";
  EXPECT_EQ(list.at(7).color, 1);
  EXPECT_EQ(list.at(7).key, -2);
  EXPECT_EQ(list.at(8).shape_in, (std::vector<std::vector<std::int64_t>>{{2, 3}, {6}}));
  EXPECT_EQ(list.at(8).shape_out, (std::vector<std::vector<std::int64_t>>{{}}));
  EXPECT_EQ(list.program.seq(8), 812U);
  EXPECT_EQ(list.program.issue(8), 5);
  EXPECT_EQ(list.program.end(8), 7);
  EXPECT_EQ(list.program.state(8), OpState::completed);
  EXPECT_TRUE(list.program.retired(8));
  EXPECT_EQ(list.at(9).stop_reason, StopReason::raise);
  EXPECT_EQ(trace.text(list.at(9).name), "KeyError: \"x\" # not a comment");
  EXPECT_EQ(List(trace, 1).at(0).stop_reason, StopReason::stuck);
  EXPECT_EQ(trace.text(List(trace, 1).at(0).name), "in the data loader");
}

TEST(OpsReader, times_have_units) {
  const Trace trace = trace_of("world 1\n0 compute 7ns\n0 compute 20us\n0 compute 0.25s\n0 compute 3ms\n");
  const List list(trace, 0);
  EXPECT_EQ(list.at(0).compute_time, 7);
  EXPECT_EQ(list.at(1).compute_time, 20'000);
  EXPECT_EQ(list.at(2).compute_time, 250'000'000);
  EXPECT_EQ(list.at(3).compute_time, 3'000'000);
}

TEST(OpsReader, loops_stay_loops) {
  const Trace trace = trace_of(
      "world 3\n"
      "repeat 1000\n"
      "  all barrier\n"
      "  0-1 repeat 4\n"
      "    0 all_reduce f32 1\n"
      "  end\n"
      "end\n"
      "2 barrier\n");
  EXPECT_EQ(List(trace, 0).program.size(), 2U);
  EXPECT_EQ(List(trace, 0).program.loops, (std::vector<Loop>{{0, 2, 1000}, {1, 2, 4}}));
  EXPECT_EQ(List(trace, 1).program.loops, (std::vector<Loop>{{0, 1, 1000}})) << "nothing of its own in the inner one";
  EXPECT_EQ(List(trace, 2).program.loops, (std::vector<Loop>{{0, 1, 1000}}));
  EXPECT_EQ(List(trace, 2).program.size(), 2U);
}

TEST(OpsReader, calls_of_a_group_have_its_number) {
  const Trace trace = trace_of(
      "world 2\n"
      "0 group_begin\n"
      "0 send f32 1 to 1\n"
      "0 group_begin\n"  // an inner one changes nothing
      "0 recv f32 1 from 1\n"
      "0 group_end\n"
      "0 group_end\n"
      "0 barrier\n"
      "0 group_begin\n"
      "0 send f32 1 to 1\n"
      "0 group_end\n");
  const Program& program = List(trace, 0).program;
  const std::optional<std::uint32_t> none;
  const std::optional<std::uint32_t> expected[] = {none, 0, none, 0, none, none, none, none, 1, none};
  for (std::size_t row = 0; row < std::size(expected); ++row) EXPECT_EQ(program.group(row), expected[row]) << row;
}

TEST(OpsReader, ranks_that_do_the_same_share_a_program) {
  const Trace trace = trace_of(
      "world 8\n"
      "pg even = 0,2,4,6\n"
      "pg odd = 1,3,5,7\n"
      "0,2,4,6 all_reduce f32 1 even\n"
      "1,3,5,7 all_reduce f32 1 odd\n"
      "0 send f32 1 to 1\n2 send f32 1 to 3\n4 send f32 1 to 5\n6 send f32 1 to 7\n"
      "1 recv f32 1 from 0\n3 recv f32 1 from 2\n5 recv f32 1 from 4\n7 recv f32 1 from 6\n");
  EXPECT_EQ(trace.programs.size(), 2U) << "communicators and peers are bound by slot";
  EXPECT_EQ(List(trace, 4).group(0), "even");
  EXPECT_EQ(List(trace, 5).group(0), "odd");
  EXPECT_EQ(List(trace, 4).peer(1), 5);
  EXPECT_EQ(List(trace, 5).peer(1), 4);
}

TEST(OpsReader, a_million_ranks_cost_their_bindings) {
  const Trace trace = trace_of(
      "world 1000000\n"
      "repeat 1000000\n"
      "all all_reduce bf16 4096\n"
      "end\n"
      "77 crash\n");
  EXPECT_EQ(trace.ranks.size(), 1'000'000U);
  EXPECT_EQ(trace.programs.size(), 2U);
  EXPECT_EQ(trace.programs[0].size(), 1U);
  EXPECT_EQ(trace.communicators().size(), 1U);
}

TEST(OpsReader, groups_of_one_name_can_differ_between_ranks) {
  const Trace trace = trace_of(
      "world 4\n"
      "0-1 pg tp = 0,1,2\n"
      "2 pg tp = 0-3\n"
      "0-2 barrier tp\n"
      "0 pg tp = 0,3\n"
      "0 barrier tp\n");
  const auto size = [&](std::size_t rank, std::size_t row) {
    const List list(trace, rank);
    return trace.communicator(list.record.comms[*list.program.comm_slot(row)]).members.size();
  };
  EXPECT_EQ(size(0, 0), 3U);
  EXPECT_EQ(size(0, 1), 2U) << "from its line on";
  EXPECT_EQ(size(1, 0), 3U);
  EXPECT_EQ(size(2, 0), 4U);
}

TEST(OpsReader, what_a_recorder_adds) {
  const Trace trace = trace_of(
      "world 4\n"
      "absent 1,3\n"
      "pg tp = ? size=2 desc=\"tensor parallel\" synthesized\n"
      "0 record snapshot head_lost timing=off host=node-a pid=12 backend=nccl library=2.21.5\n"
      "0 in tp enqueued=9 started=8 completed=7 timeout=90s since=4 pos=1\n"
      "0 barrier tp seq=9 [scheduled]\n");
  ASSERT_EQ(trace.ranks.size(), 2U);
  const RankRecord& record = trace.ranks[0];
  EXPECT_TRUE(record.snapshot);
  EXPECT_FALSE(record.whole_program);
  EXPECT_TRUE(record.head_lost);
  EXPECT_EQ(record.timing, false);
  EXPECT_EQ(record.host, "node-a");
  EXPECT_EQ(record.pid, 12);
  EXPECT_EQ(record.backend, "nccl");
  EXPECT_EQ(record.library_version, "2.21.5");
  EXPECT_EQ(record.comm_rank, std::vector<std::uint32_t>{1});
  EXPECT_EQ(record.progress[0].last_enqueued, 9U);
  EXPECT_EQ(record.progress[0].last_completed, 7U);
  ASSERT_TRUE(record.progress[0].limit);
  EXPECT_EQ(record.progress[0].limit->timeout, 90'000'000'000);
  EXPECT_EQ(record.progress[0].limit->since, 4U);
  const Communicator& tp = trace.communicator(record.comms[0]);
  EXPECT_TRUE(tp.members.empty());
  EXPECT_EQ(tp.declared_size, 2U);
  EXPECT_EQ(trace.text(tp.description), "tensor parallel");
  EXPECT_TRUE(tp.synthesized);
}

TEST(OpsReader, a_call_on_a_foreign_group_is_kept_and_told) {
  const Evidence evidence = evidence_of("world 3\npg a = 0,1\n2 barrier a\n");
  EXPECT_EQ(evidence.diagnostics.count_of("ops.not_a_member"), 1U);
  EXPECT_EQ(evidence.trace.ranks[2].comm_rank, std::vector<std::uint32_t>{RankRecord::kNoPosition});
}

TEST(OpsReader, sniffs_its_first_statement) {
  const auto sniff = [](std::string_view text) { return ops_importer().sniff("x", text); };
  EXPECT_EQ(sniff("world 8\n"), Sniff::sure);
  EXPECT_EQ(sniff("\xef\xbb\xbf# title\n\n   # more\n  world 8 # ranks\r\n"), Sniff::sure);
  EXPECT_EQ(sniff(""), Sniff::no);
  EXPECT_EQ(sniff("# only a comment"), Sniff::no);
  EXPECT_EQ(sniff("world peace\n"), Sniff::no);
  EXPECT_EQ(sniff("worldwide 8\n"), Sniff::no);
  EXPECT_EQ(sniff("{\"version\": \"2.4\"}"), Sniff::no);
}

// Its reader then says what is expected where.
TEST(OpsReader, sniffs_what_lacks_its_world) {
  const auto named = [](std::string_view text) { return ops_importer().sniff("in/job.ops", text); };
  EXPECT_EQ(named("0 all_reduce f32 8 pg0\n"), Sniff::likely);
  EXPECT_EQ(named("wrld 2\n"), Sniff::likely);
  EXPECT_EQ(named("# only a comment"), Sniff::likely);
  EXPECT_EQ(named("world 2\n"), Sniff::sure);
  EXPECT_EQ(named(std::string_view("\x80\x02\0", 3)), Sniff::no) << "no text";
  const auto unnamed = [](std::string_view text) { return ops_importer().sniff("in/job.txt", text); };
  for (const char* text :
       {"pg tp = 0,1\n", "# job\n0,2-4 all_reduce f32 8 tp", "all barrier\r\n", "3 send f32 8 to 1"}) {
    EXPECT_EQ(unnamed(text), Sniff::maybe) << text;
  }
  for (const char* text : {"pg_dump", "pg = 3", "0 loss 1.5", "2024-05-01 barrier reached", "all ranks are up",
                           "3 wait what", "1,2,3\n", "- all_reduce", "12 stop"}) {
    EXPECT_EQ(unnamed(text), Sniff::no) << text;
  }
}

}  // namespace
}  // namespace ddx::formats
