// Folding: what is run once must come to what running every rank comes to.
#include "sim/replay/folding.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/replay/reference_replay.h"
#include "tests/support/ops_text.h"
#include "tests/support/random_program.h"

namespace ddx::sim {
namespace {

using ddx::testing::trace_of;

std::uint32_t classes_of(const std::string& text) { return replay(trace_of(text)).classes; }

// Everything that a result says.
std::string told(const ReplayResult& result) {
  std::string text = fmt::format("{} unfinished {}\n", name_of(result.outcome), result.unfinished.text());
  for (const ReplayMismatch& mismatch : result.mismatches) {
    text += fmt::format("mismatch {} {} {}", mismatch.comm.value, mismatch.seq, mismatch.p2p);
    for (const auto& variant : mismatch.variants) {
      text += fmt::format(" {}:{}:{}", variant.signature.value, variant.root.value_or(-1), variant.ranks.text());
    }
    text += '\n';
  }
  for (const HeldGroup& held : result.held) {
    text += fmt::format("held {} {} {}\n", held.rank.value, held.awaited.value, held.comm.value);
  }
  return text + ddx::testing::text_of(result.snapshot);
}

void expect_same(const Trace& trace, ReplayOptions options, const std::string& what) {
  const ReplayResult folded = replay(trace, options);
  options.fold = false;
  const ReplayResult whole = replay(trace, options);
  EXPECT_EQ(told(folded), told(whole)) << what;
  EXPECT_EQ(folded.rank_ops, whole.rank_ops) << what;
}

TEST(Folding, ranks_of_one_program_and_one_group_are_one_class) {
  EXPECT_EQ(classes_of("world 4096\nrepeat 10\nall all_reduce f32 1024\nend\n"), 1U);
}

TEST(Folding, a_grid_of_groups_is_one_class) {
  std::string text = "world 64\n";
  for (int g = 0; g < 8; ++g) {
    text += fmt::format("{}-{} pg tp = {}-{}\n", 8 * g, 8 * g + 7, 8 * g, 8 * g + 7);
    std::string column;
    for (int i = 0; i < 8; ++i) column += fmt::format("{}{}", i == 0 ? "" : ",", g + 8 * i);
    text += fmt::format("{} pg dp = {}\n", column, column);
  }
  const std::string calls = "all all_gather bf16 64 tp\nall all_reduce f32 1024 dp\n";
  EXPECT_EQ(classes_of(text + calls), 1U);
  // One rank that does something else: itself, those of its row, those of its column, the rest.
  EXPECT_EQ(classes_of(text + "0-4,6-63 barrier tp\n" + calls), 4U);
}

TEST(Folding, a_ring_of_sends_is_one_class_and_a_line_is_not) {
  std::string ring = "world 6\n", line = "world 6\n";
  for (int r = 0; r < 6; ++r) {
    ring += fmt::format("{} group_begin\n{} send f32 8 to {}\n{} recv f32 8 from {}\n{} group_end\n", r, r, (r + 1) % 6,
                        r, (r + 5) % 6, r);
  }
  for (int r = 1; r < 6; ++r) line += fmt::format("{} recv f32 8 from {}\n", r, r - 1);
  for (int r = 0; r < 5; ++r) line += fmt::format("{} send f32 8 to {}\n", r, r + 1);
  EXPECT_EQ(classes_of(ring), 1U);
  EXPECT_EQ(replay(trace_of(ring)).outcome, ReplayResult::Outcome::completes);
  EXPECT_EQ(classes_of(line), 6U);
  EXPECT_EQ(replay(trace_of(line)).outcome, ReplayResult::Outcome::completes);
}

// Both ranks do "first, second", and have the groups the other way round.
TEST(Folding, alike_is_not_at_peace) {
  const std::string text =
      "world 2\n"
      "pg x = 0,1\n"
      "pg y = 0,1\n"
      "0 all_reduce f32 1 x\n0 all_reduce f32 1 y\n"
      "1 all_reduce f32 1 y\n1 all_reduce f32 1 x\n";
  EXPECT_EQ(replay(trace_of(text)).outcome, ReplayResult::Outcome::deadlock);
  expect_same(trace_of(text), {}, "crossed groups");
}

// Ranks 0 and 2 are alike but for the place in their groups, which a root and a split list name.
TEST(Folding, roots_and_splits_are_compared_in_every_group) {
  const std::string groups = "world 4\n0,1 pg g = 0,1\n2,3 pg g = 2,3\n";
  const std::string roots =
      groups + "0,1 broadcast f32 4 root=0 g\n2 broadcast f32 4 root=2 g\n3 broadcast f32 4 root=3 g\n";
  const ReplayResult mixed = replay(trace_of(roots));
  ASSERT_EQ(mixed.mismatches.size(), 1U);
  EXPECT_EQ(mixed.mismatches[0].variants[0].ranks.text(), "2");
  expect_same(trace_of(roots), {}, "roots");
  const std::string splits = groups +
                             "0 all_to_all f32 3 in_splits=1,2 out_splits=1,2 g\n"
                             "1 all_to_all f32 3 in_splits=2,1 out_splits=2,1 g\n"
                             "2 all_to_all f32 3 in_splits=1,2 out_splits=1,1 g\n"
                             "3 all_to_all f32 3 in_splits=2,1 out_splits=2,1 g\n";
  EXPECT_EQ(replay(trace_of(splits)).mismatches.size(), 1U);
  expect_same(trace_of(splits), {}, "splits");
}

TEST(Folding, comes_to_the_same_as_every_rank_run) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    ddx::testing::ProgramOptions program;
    program.seed = seed;
    ddx::testing::CallLists lists = random_program(program);
    if (seed % 3 != 0) inject(lists, ddx::testing::kAllFaults[seed % std::size(ddx::testing::kAllFaults)], seed);
    ReplayOptions options;
    options.stream_ordered = seed % 2 == 0;
    options.strict_groups = seed % 5 == 0;
    options.visit_seed = seed;
    expect_same(trace_of(lists), options, fmt::format("seed {}", seed));
  }
}

// Many alike ranks with a few that are not: classes of several ranks, some stuck.
TEST(Folding, comes_to_the_same_where_many_are_alike) {
  std::uint32_t folded = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    const auto draw = [&](std::uint64_t bound) { return static_cast<int>(ddx::testing::draw(random, bound)); };
    const int groups = 2 + draw(5), width = 2 + draw(5), world = groups * width;
    std::string text = fmt::format("world {}\n", world);
    for (int g = 0; g < groups; ++g) {
      const std::string members = fmt::format("{}-{}", g * width, g * width + width - 1);
      text += fmt::format("{} pg row = {}\n", members, members);
    }
    const int odd = draw(static_cast<std::uint64_t>(world));
    for (int call = 0; call < 6; ++call) {
      const int count = 1 + draw(3);
      const bool alone = draw(8) == 0;
      const std::string ranks = alone ? fmt::format("{}", odd) : "all";
      if (draw(3) == 0) {
        for (int r = 0; r < world; ++r) {
          const int next = r / width * width + (r + 1) % width, last = r / width * width + (r + width - 1) % width;
          text += fmt::format("{} group_begin\n{} send f32 {} to {} row\n{} recv f32 {} from {} row\n{} group_end\n", r,
                              r, r == odd && alone ? count + 1 : count, next, r, count, last, r);
        }
      } else {
        text += fmt::format("{} all_reduce f32 {} {}\n", ranks, count, draw(2) == 0 ? "row" : "pg0");
      }
    }
    ReplayOptions options;
    options.stream_ordered = seed % 2 == 0;
    options.strict_groups = seed % 3 == 0;
    expect_same(trace_of(text), options, fmt::format("seed {}\n{}", seed, text));
    if (replay(trace_of(text)).classes < static_cast<std::uint32_t>(world)) ++folded;
  }
  EXPECT_GT(folded, 100U);
}

TEST(Folding, a_hundred_thousand_ranks_cost_one) {
  ReplayOptions options;
  options.snapshot_ops = 0;
  const ReplayResult result = replay(trace_of("world 100000\nrepeat 1000\nall all_reduce f32 1024\nend\n"), options);
  EXPECT_EQ(result.outcome, ReplayResult::Outcome::completes);
  EXPECT_EQ(result.classes, 1U);
  EXPECT_EQ(result.rank_ops, 100'000'000U);
}

}  // namespace
}  // namespace ddx::sim
