#include "base/hash.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "base/ids.h"

namespace ddx {
namespace {

// The worst bucket of 2^12 that 2^12 keys fall into: by chance about 7.
template <class Keys>
std::size_t fullest_bucket(const Keys& keys) {
  const KeyedHash hash;
  std::vector<std::size_t> buckets(4096);
  std::size_t most = 0;
  for (const auto& key : keys) most = std::max(most, ++buckets[hash(key) & 4095]);
  return most;
}

TEST(KeyedHash, spreads_keys_that_are_alike_in_most_bits) {
  for (const unsigned shift : {0U, 12U, 32U, 52U}) {
    std::vector<std::uint64_t> numbers;
    for (std::uint64_t i = 0; i < 4096; ++i) numbers.push_back(i << shift);
    EXPECT_LT(fullest_bucket(numbers), 20U) << "shift " << shift;
  }
  std::vector<std::string> texts;
  for (int i = 0; i < 4096; ++i) texts.push_back("group_" + std::to_string(i) + "_of_the_job");
  EXPECT_LT(fullest_bucket(texts), 20U);
}

TEST(KeyedHash, is_one_for_equal_keys_alone) {
  const KeyedHash hash;
  EXPECT_EQ(hash(std::string_view("abcdefgh")), KeyedHash()(std::string(("abcdefgh"))));
  // Texts that end in zeros, and one whose last word another one has for its first.
  const std::set<std::size_t> hashes{hash(std::string_view()), hash(std::string_view("\0", 1)),
                                     hash(std::string_view("\0\0", 2)), hash(std::string_view("abcdefgh")),
                                     hash(std::string_view("abcdefgh\0", 9))};
  EXPECT_EQ(hashes.size(), 5U);
}

TEST(RowHash, tells_the_order_of_words) {
  const auto of = [](std::initializer_list<std::uint64_t> words) {
    RowHash hash;
    for (const std::uint64_t word : words) hash.add(word);
    return hash.value();
  };
  EXPECT_EQ(of({1, 2}), of({1, 2}));
  EXPECT_NE(of({1, 2}), of({2, 1}));
  EXPECT_NE(of({0}), of({0, 0}));
}

TEST(RankId, no_number_becomes_another_ranks) {
  EXPECT_EQ(RankId::from(7), RankId(7));
  EXPECT_EQ(RankId::from(-1), RankId(-1));
  for (const std::int64_t number :
       {std::int64_t{1} << 32, -(std::int64_t{1} << 32), std::int64_t{INT32_MAX} + 1, INT64_MIN}) {
    EXPECT_EQ(RankId::from(number), std::nullopt) << number;
    EXPECT_NE(RankId(number), RankId(0));
  }
  EXPECT_EQ(RankId((std::int64_t{1} << 32) + 3).value, INT32_MAX);
}

}  // namespace
}  // namespace ddx
