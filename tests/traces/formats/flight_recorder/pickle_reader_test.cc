#include "traces/formats/pickle_reader.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace ddx::formats {
namespace {

using ::testing::ElementsAre;
using namespace std::string_literals;
using Kind = PickleValue::Kind;

// Reads {"k": VALUE} and gives the value to `look`.
template <class Look>
void with_value(const std::string& code, Look look) {
  const std::string bytes = "\x80\x04}X\x01\x00\x00\x00k"s + code + "s.";
  PickleReader reader("p", bytes, "items", [](auto) { FAIL() << "no item is due"; });
  reader.run();
  ASSERT_TRUE(reader.whole()) << reader.problem() << " in " << code;
  ASSERT_EQ(reader.top().size(), 2U);
  look(reader, reader.top()[1]);
}

std::int64_t integer_of(const std::string& code) {
  std::int64_t number = -777;
  with_value(code, [&](const PickleReader&, PickleValue value) {
    EXPECT_EQ(value.kind, Kind::integer) << code;
    number = value.integer();
  });
  return number;
}

// Opcodes and their arguments as Python's pickletools documents them.
TEST(PickleReader, Integers) {
  EXPECT_EQ(integer_of("K\xff"), 255);
  EXPECT_EQ(integer_of("M\x01\x02"), 0x0201);
  EXPECT_EQ(integer_of("J\xff\xff\xff\xff"), -1);
  EXPECT_EQ(integer_of("\x8a\x00"s), 0);
  EXPECT_EQ(integer_of("\x8a\x01\xfe"), -2);
  EXPECT_EQ(integer_of("\x8a\x02\xff\x00"s), 255);
  EXPECT_EQ(integer_of("\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80"s), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(integer_of("\x8b\x01\x00\x00\x00\x05"s), 5);
  EXPECT_EQ(integer_of("I-12\n"), -12);
  EXPECT_EQ(integer_of("L34L\n"), 34);
  with_value("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01"s,
             [](const PickleReader&, PickleValue value) { EXPECT_EQ(value.kind, Kind::other); });
}

TEST(PickleReader, OtherScalars) {
  const auto kind = [](const std::string& code) {
    Kind found = Kind::unset;
    with_value(code, [&](const PickleReader&, PickleValue value) { found = value.kind; });
    return found;
  };
  EXPECT_EQ(kind("N"), Kind::none);
  EXPECT_EQ(kind("\x88"), Kind::boolean);
  EXPECT_EQ(kind("I01\n"), Kind::boolean);
  with_value("G\x3f\xe0\x00\x00\x00\x00\x00\x00"s,
             [](const PickleReader&, PickleValue value) { EXPECT_EQ(value.real(), 0.5); });
  with_value("F0.25\n", [](const PickleReader&, PickleValue value) { EXPECT_EQ(value.real(), 0.25); });
  for (const std::string& code : {"X\x02\x00\x00\x00hi"s, "\x8c\x02hi"s, "\x8d\x02\x00\x00\x00\x00\x00\x00\x00hi"s,
                                  "U\x02hi"s, "T\x02\x00\x00\x00hi"s, "C\x02hi"s, "B\x02\x00\x00\x00hi"s}) {
    with_value(code, [](const PickleReader& reader, PickleValue value) { EXPECT_EQ(reader.text(value), "hi"); });
  }
}

std::vector<std::int64_t> integers_of(const PickleReader& reader, PickleValue list) {
  std::vector<std::int64_t> numbers;
  for (const PickleValue& item : reader.items(list)) numbers.push_back(item.integer());
  return numbers;
}

TEST(PickleReader, ListsAndTuplesInAllForms) {
  for (const std::string& code : {"](K\x01K\x02K\x03"
                                  "e"s,
                                  "]K\x01"
                                  "aK\x02"
                                  "aK\x03"
                                  "a"s,
                                  "](K\x01K\x02"
                                  "eK\x03"
                                  "a"s,
                                  "](K\x01"
                                  "e(K\x02K\x03"
                                  "e"s,
                                  "(K\x01K\x02K\x03t"s, "K\x01K\x02K\x03\x87"s,
                                  "K\x01K\x02\x86"
                                  "0](K\x01K\x02K\x03"
                                  "e"s,
                                  "](K\x01K\x02K\x03"
                                  "e(e"s}) {
    with_value(code, [](const PickleReader& reader, PickleValue value) {
      EXPECT_THAT(integers_of(reader, value), ElementsAre(1, 2, 3));
    });
  }
  with_value(
      "](](e)]"
      "e",
      [](const PickleReader& reader, PickleValue value) {
        ASSERT_EQ(reader.items(value).size(), 3U);
        EXPECT_EQ(reader.items(value)[0], reader.items(value)[1]);
        EXPECT_EQ(reader.items(value)[0], reader.items(value)[2]);
      });
}

// PyTorch puts a dict into the memo when it is filled, Python when it is made.
TEST(PickleReader, MemoOfContainers) {
  for (const std::string& code : {"](](K\x07"
                                  "eq\x05h\x05"
                                  "e"s,
                                  "](]q\x05(K\x07"
                                  "eK\x09"
                                  "0h\x05"
                                  "e"s}) {
    with_value(code, [&](const PickleReader& reader, PickleValue value) {
      const auto items = reader.items(value);
      ASSERT_EQ(items.size(), 2U);
      EXPECT_THAT(integers_of(reader, items[0]), ElementsAre(7));
      EXPECT_EQ(items[1], items[0]);
    });
  }
  with_value(
      "(]q\x00(K\x07"
      "e\x85h\x00t"s,
      [](const PickleReader& reader, PickleValue value) {
        const auto items = reader.items(value);
        ASSERT_EQ(items.size(), 2U);
        EXPECT_EQ(reader.items(items[0])[0], items[1]);
        EXPECT_THAT(integers_of(reader, items[1]), ElementsAre(7));
      });
}

TEST(PickleReader, EqualContentHasOneId) {
  with_value(
      "(](X\x01\x00\x00\x00"
      "aK\x01"
      "e](X\x01\x00\x00\x00"
      "aK\x01"
      "e](X\x01\x00\x00\x00"
      "aK\x02"
      "et"s,
      [](const PickleReader& reader, PickleValue value) {
        const auto items = reader.items(value);
        EXPECT_EQ(items[0], items[1]);
        EXPECT_NE(items[0], items[2]);
      });
}

TEST(PickleReader, HandsOnItemsOfOneListAlone) {
  // {"items": [{1: 2}, {3: 4}], "k": [{5: 6}]}
  const std::string bytes =
      "\x80\x02}(X\x05\x00\x00\x00items](}(K\x01K\x02u}(K\x03K\x04u"
      "eX\x01\x00\x00\x00k](}(K\x05K\x06u"
      "eu."s;
  std::vector<std::int64_t> seen;
  PickleReader reader("p", bytes, "items", [&](PickleReader::Pairs pairs) {
    for (const PickleValue& value : pairs) seen.push_back(value.integer());
  });
  reader.run();
  EXPECT_TRUE(reader.whole()) << reader.problem();
  EXPECT_THAT(seen, ElementsAre(1, 2, 3, 4));
  ASSERT_EQ(reader.top().size(), 4U);
  EXPECT_EQ(reader.top()[1].kind, Kind::other);
  EXPECT_EQ(reader.items(reader.top()[3]).size(), 1U);
}

}  // namespace
}  // namespace ddx::formats
