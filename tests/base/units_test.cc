#include "base/units.h"
#include "base/counted.h"

#include <gtest/gtest.h>

namespace ddx {
namespace {

TEST(Units, durations_read_as_people_say_them) {
  EXPECT_EQ(format_duration(0), "0 ns");
  EXPECT_EQ(format_duration(1'500'000), "1.5 ms");
  EXPECT_EQ(format_duration(600 * kSecond), "10 min");
  EXPECT_EQ(format_duration(7500 * kSecond), "2 h 5 min");
  EXPECT_EQ(format_duration(-90 * kSecond), "-1 min 30 s");
  EXPECT_FALSE(format_duration(INT64_MIN).empty());
  EXPECT_FALSE(format_duration(INT64_MAX).empty());
}

TEST(Units, counts_are_grouped) {
  EXPECT_EQ(format_count(7), "7");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(16384000), "16,384,000");
}

TEST(Units, words_agree_with_their_numbers) {
  EXPECT_EQ(counted(0, "rank", "ranks"), "0 ranks");
  EXPECT_EQ(counted(1, "rank", "ranks"), "1 rank");
  EXPECT_EQ(counted(4096, "entry", "entries"), "4,096 entries");
}

}  // namespace
}  // namespace ddx
