#include "base/rank_set.h"

#include <gtest/gtest.h>

namespace ddx {
namespace {

RankSet set_of(std::initializer_list<int> ranks) {
  RankSet set;
  for (int rank : ranks) set.insert(RankId(rank));
  return set;
}

TEST(RankSet, prints_ranges) {
  EXPECT_EQ(RankSet().text(), "none");
  EXPECT_EQ(set_of({3}).text(), "3");
  EXPECT_EQ(set_of({1, 0}).text(), "0,1");
  EXPECT_EQ(set_of({15, 0, 1, 2, 8, 9, 10}).text(), "0-2,8-10,15");
  EXPECT_EQ(set_of({0, 2, 4, 6}).text(2), "0,2,... (4 ranks)");
  EXPECT_EQ(set_of({5}).label(), "rank 5");
  EXPECT_EQ(set_of({5, 6, 7}).label(), "ranks 5-7");
}

TEST(RankSet, reads_what_it_prints) {
  for (const RankSet& set :
       {set_of({0}), set_of({0, 1}), set_of({0, 1, 2, 8, 15}), RankSet::range(RankId(3), RankId(4000))}) {
    EXPECT_EQ(RankSet::parse(set.text()), set);
  }
}

TEST(RankSet, refuses_what_is_no_list) {
  for (const char* text : {"", ",", "1,", "a", "1-", "3-1", "1--2", "0-99999999999", "1 2"}) {
    EXPECT_EQ(RankSet::parse(text), std::nullopt) << text;
  }
  EXPECT_EQ(RankSet::parse("0-2147483647"), std::nullopt) << "a bound on what one list may make us hold";
}

TEST(RankSet, set_operations) {
  const RankSet all = RankSet::range(RankId(0), RankId(7));
  EXPECT_EQ(all.without(set_of({3})).text(), "0-2,4-7");
  EXPECT_EQ(all.common(set_of({3, 9})), set_of({3}));
  RankSet grown = set_of({1});
  grown.insert(set_of({0, 1, 2}));
  EXPECT_EQ(grown, set_of({0, 1, 2}));
  grown.erase(RankId(1));
  EXPECT_FALSE(grown.contains(RankId(1)));
}

}  // namespace
}  // namespace ddx
