#include <gtest/gtest.h>

#include "traces/model/trace.h"

namespace ddx {
namespace {

using Rows = std::vector<std::uint32_t>;

Program program_of(std::size_t rows, std::vector<Loop> loops) {
  Program program;
  for (std::size_t i = 0; i < rows; ++i) program.append({});
  program.loops = std::move(loops);
  return program;
}

Rows walk(const Program& program) {
  Rows rows;
  for (OpCursor cursor(program); !cursor.done() && rows.size() < 1000; cursor.next()) rows.push_back(cursor.op().value);
  return rows;
}

TEST(OpCursor, walks_straight_programs) {
  EXPECT_EQ(walk(program_of(0, {})), Rows{});
  EXPECT_EQ(walk(program_of(3, {})), (Rows{0, 1, 2}));
}

TEST(OpCursor, repeats_a_body) {
  EXPECT_EQ(walk(program_of(4, {{1, 3, 3}})), (Rows{0, 1, 2, 1, 2, 1, 2, 3}));
  EXPECT_EQ(walk(program_of(1, {{0, 1, 4}})), (Rows{0, 0, 0, 0}));
  EXPECT_EQ(walk(program_of(2, {{0, 2, 1}})), (Rows{0, 1}));
}

TEST(OpCursor, nests_loops) {
  // 0 (1 (2)x3 3)x2 4
  EXPECT_EQ(walk(program_of(5, {{1, 4, 2}, {2, 3, 3}})), (Rows{0, 1, 2, 2, 2, 3, 1, 2, 2, 2, 3, 4}));
  // An inner loop that begins and ends with the outer one: ((0)x2)x3.
  EXPECT_EQ(walk(program_of(1, {{0, 1, 3}, {0, 1, 2}})), Rows(6, 0));
  // Two inner ones in a row: ((0)x2 (1)x2)x2.
  EXPECT_EQ(walk(program_of(2, {{0, 2, 2}, {0, 1, 2}, {1, 2, 2}})), (Rows{0, 0, 1, 1, 0, 0, 1, 1}));
  // Three deep, ends shared.
  EXPECT_EQ(walk(program_of(3, {{0, 3, 2}, {1, 3, 2}, {2, 3, 2}})), (Rows{0, 1, 2, 2, 1, 2, 2, 0, 1, 2, 2, 1, 2, 2}));
}

TEST(OpCursor, loops_one_behind_the_other) {
  EXPECT_EQ(walk(program_of(3, {{0, 1, 2}, {1, 2, 3}})), (Rows{0, 0, 1, 1, 1, 2}));
}

TEST(OpCursor, skips_what_runs_never) {
  EXPECT_EQ(walk(program_of(3, {{0, 2, 0}})), Rows{2});
  EXPECT_EQ(walk(program_of(4, {{0, 3, 0}, {1, 2, 5}})), Rows{3}) << "with all that is inside";
  EXPECT_EQ(walk(program_of(2, {{0, 2, 2}, {1, 2, 0}})), (Rows{0, 0}));
  EXPECT_EQ(walk(program_of(2, {{1, 1, 7}})), (Rows{0, 1})) << "an empty body";
}

TEST(OpCursor, does_not_unroll) {
  const Program program = program_of(1, {{0, 1, UINT64_MAX}});
  OpCursor cursor(program);
  for (int i = 0; i < 1'000'000; ++i) cursor.next();
  EXPECT_FALSE(cursor.done());
}

}  // namespace
}  // namespace ddx
