#include "analyzers/match/alignment.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace ddx::analyzers {
namespace {

// One letter a call.
std::vector<std::uint64_t> calls(std::string_view letters) { return {letters.begin(), letters.end()}; }

Edit explain(std::string_view odd, std::string_view reference) {
  const auto a = calls(odd), b = calls(reference);
  return explain_difference(a, b);
}

Edit order(std::string_view odd, std::string_view reference) {
  const auto a = calls(odd), b = calls(reference);
  return explain_order(a, b);
}

TEST(Order, is_that_of_the_fewest_calls_that_are_the_same) {
  EXPECT_EQ(order("ba", "ab").length, 2u);
  EXPECT_EQ(order("babababa", "abababab").length, 2u);
  EXPECT_EQ(order("bacbac", "abcabc").length, 3u);
  EXPECT_EQ(order("cba", "abc").length, 3u);
  EXPECT_EQ(order("cbaxyzxyz", "abcxyzxyz").kind, Edit::Kind::reorder);
  // Once, and the end of the lists is no whole block.
  EXPECT_EQ(order("baxyz", "abxyz").length, 2u);
}

TEST(Order, explains_nothing_that_was_left_out_added_or_changed) {
  for (const auto& [odd, reference] : std::vector<std::pair<std::string_view, std::string_view>>{
           {"bab", "abab"}, {"aab", "abb"}, {"axc", "abc"}, {"bcdea", "xbcde"}, {"a", "b"}, {"", ""}}) {
    EXPECT_EQ(order(odd, reference).kind, Edit::Kind::none) << odd << " " << reference;
  }
}

TEST(Alignment, one_call_left_out) {
  const Edit edit = explain("bcdef", "abcdef");
  EXPECT_EQ(edit.kind, Edit::Kind::skip);
  EXPECT_EQ(edit.length, 1u);
  EXPECT_EQ(edit.support, 5u);
}

TEST(Alignment, several_calls_left_out) {
  const Edit edit = explain("def", "abcdef");
  EXPECT_EQ(edit.kind, Edit::Kind::skip);
  EXPECT_EQ(edit.length, 3u);
  EXPECT_EQ(edit.support, 3u);
}

TEST(Alignment, one_call_more) {
  const Edit edit = explain("xabc", "abcd");
  EXPECT_EQ(edit.kind, Edit::Kind::extra);
  EXPECT_EQ(edit.length, 1u);
  EXPECT_EQ(edit.support, 3u);
}

TEST(Alignment, two_calls_swapped) {
  const Edit edit = explain("bacd", "abcd");
  EXPECT_EQ(edit.kind, Edit::Kind::swap);
  EXPECT_EQ(edit.support, 4u);
}

TEST(Alignment, one_call_changed) {
  const Edit edit = explain("xbcd", "abcd");
  EXPECT_EQ(edit.kind, Edit::Kind::replace);
  EXPECT_EQ(edit.support, 3u);
}

TEST(Alignment, a_rank_that_stopped_right_there_supports_nothing) {
  const Edit edit = explain("x", "a");
  EXPECT_EQ(edit.support, 0u);
}

TEST(Alignment, no_single_edit) { EXPECT_EQ(explain("xyzw", "abcd").kind, Edit::Kind::none); }

TEST(Alignment, empty_lists) {
  EXPECT_EQ(explain("", "a").kind, Edit::Kind::none);
  EXPECT_EQ(explain("a", "").kind, Edit::Kind::none);
}

struct PatternCase {
  const char* before;
  std::size_t period, repeats;
};

TEST(Pattern, what_covers_most_counts) {
  for (const PatternCase& c : {PatternCase{"aaaaa", 1, 5},
                               {"abab", 2, 2},
                               {"xabbabb", 3, 2},
                               {"abcabd", 0, 0},
                               {"a", 0, 0},
                               {"", 0, 0},
                               {"qwabababa", 2, 3}}) {
    const auto before = calls(c.before);
    const Pattern pattern = pattern_before(before);
    EXPECT_EQ(pattern.period, c.period) << c.before;
    if (c.period != 0) {
      EXPECT_EQ(pattern.repeats, c.repeats) << c.before;
    }
  }
}

}  // namespace
}  // namespace ddx::analyzers
