#include "traces/model/trace.h"

#include <gtest/gtest.h>

namespace ddx {
namespace {

Signature all_reduce(std::uint64_t count) {
  Signature signature;
  signature.kind = OpKind::all_reduce;
  signature.count_in = count;
  return signature;
}

TEST(StringTable, interns_once_and_keeps_its_views) {
  StringTable table;
  EXPECT_EQ(table.at(StringId()), "") << "id 0 is the empty string";
  const StringId a = table.intern("a");
  const std::string_view view = table.at(a);
  for (int i = 0; i < 10'000; ++i) table.intern(std::to_string(i));
  EXPECT_EQ(view, "a");
  EXPECT_EQ(view.data(), table.at(a).data());
  EXPECT_EQ(table.intern("a"), a);
  EXPECT_EQ(table.size(), 10'002U);
}

TEST(StringTable, a_copy_stands_alone) {
  StringTable copy;
  {
    StringTable table;
    table.intern("first");
    table.intern("second");
    copy = table;
    table.intern("third");
  }
  EXPECT_EQ(copy.size(), 3U);
  EXPECT_EQ(copy.at(StringId(2)), "second");
  EXPECT_EQ(copy.intern("first"), StringId(1)) << "its index points into itself";
  StringTable moved = std::move(copy);
  EXPECT_EQ(moved.intern("second"), StringId(2));
  EXPECT_EQ(moved.size(), 3U);
}

TEST(Trace, interns_rows_that_are_alike) {
  Trace trace;
  const SignatureId eight = trace.intern(all_reduce(8));
  EXPECT_NE(trace.intern(all_reduce(9)), eight);
  EXPECT_EQ(trace.intern(all_reduce(8)), eight);
  Signature unknown = all_reduce(0);
  EXPECT_NE(trace.intern(unknown), eight);
  unknown.count_in.reset();
  EXPECT_EQ(trace.signatures().size(), 3U);
  trace.intern(unknown);
  EXPECT_EQ(trace.signatures().size(), 4U) << "not recorded is not 0";

  Communicator pair;
  pair.name = trace.strings.intern("pair");
  pair.members = {RankId(0), RankId(1)};
  const CommId forward = trace.intern(pair);
  std::swap(pair.members[0], pair.members[1]);
  EXPECT_NE(trace.intern(pair), forward) << "the order of members tells communicators apart";
}

TEST(Program, keeps_what_is_given_and_tells_what_is_not) {
  Program program;
  program.append({});
  Op op;
  op.signature = SignatureId(5);
  op.comm_slot = 3;
  op.seq = 0;
  op.group = 7;
  op.call_site = CallSiteId(2);
  op.issue = -10;  // before the clock's zero
  op.end = 0;
  op.state = OpState::started;
  op.retired = true;
  program.append(op);
  program.append({});

  EXPECT_EQ(program.seq(0), std::nullopt) << "a column that begins late is absent before";
  EXPECT_EQ(program.seq(2), std::nullopt);
  const Op back = program.at(OpId(1));
  EXPECT_EQ(back.signature, op.signature);
  EXPECT_EQ(back.comm_slot, op.comm_slot);
  EXPECT_EQ(back.seq, 0U) << "0 is a value";
  EXPECT_EQ(back.group, op.group);
  EXPECT_EQ(back.call_site, op.call_site);
  EXPECT_EQ(back.issue, -10);
  EXPECT_EQ(back.start, std::nullopt);
  EXPECT_EQ(back.end, 0);
  EXPECT_EQ(back.state, OpState::started);
  EXPECT_TRUE(back.retired);
  program.set_state(1, OpState::completed);
  EXPECT_EQ(program.state(1), OpState::completed);
  EXPECT_TRUE(program.retired(1)) << "untouched by the state";
}

TEST(Program, holds_a_row_in_forty_bytes_without_its_call_site) {
  Program program;
  Op op;
  op.comm_slot = 0;
  op.seq = op.group = 1;
  op.issue = op.start = op.end = 1;
  constexpr std::size_t kRows = 1 << 16;  // a power of two: vectors that grew by doubling are full
  for (std::size_t i = 0; i < kRows; ++i) program.append(op);
  EXPECT_LE(program.bytes(), 40 * kRows);
  // Where their number is known before, any number: columns that come later have room for as many.
  Program reserved;
  constexpr std::size_t kOdd = 100'003;
  reserved.reserve(kOdd);
  reserved.append({});
  for (std::size_t i = 1; i < kOdd; ++i) reserved.append(op);
  EXPECT_LE(reserved.bytes(), 40 * kOdd);
  // Columns that no row has a value for cost nothing: signature 4, flags 1, slot 2.
  Program lean;
  op = {};
  op.comm_slot = 0;
  for (std::size_t i = 0; i < kRows; ++i) lean.append(op);
  EXPECT_EQ(lean.bytes(), 7 * kRows);
}

TEST(Trace, finds_peers_by_slot) {
  Trace trace;
  RankRecord record;
  record.peers = {4, -3};
  Signature send;
  send.kind = OpKind::send;
  EXPECT_EQ(trace.peer(record, send), std::nullopt);
  send.peer_slot = 1;
  EXPECT_EQ(trace.peer(record, send), -3);
  send.peer_slot = 2;
  EXPECT_EQ(trace.peer(record, send), std::nullopt) << "a slot that is not bound";
}

}  // namespace
}  // namespace ddx
