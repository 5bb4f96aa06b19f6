#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/traces/formats/flight_recorder/dump_writer.h"
#include "tests/traces/formats/flight_recorder/reading.h"

namespace ddx::testing {
namespace {

using ::testing::HasSubstr;
using namespace std::string_literals;

std::string error_of(const std::string& bytes) {
  try {
    (void)read_dump(bytes);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

Value three_entries() {
  return dict(dump("[0, 1]", {dict(entry(0, 1, "nccl:all_reduce")), dict(entry(1, 2, "nccl:broadcast")),
                              dict(entry(2, 3, "nccl:barrier"))}));
}

// Cut at every byte: an Error, or the entries that were whole before the cut, and a word about it.
void cut_everywhere(const std::string& whole) {
  const auto expected = row_texts(read_dump(whole));
  ASSERT_EQ(expected.size(), 3U);
  std::size_t most = 0, errors = 0;
  for (std::size_t size = 0; size + 1 < whole.size(); ++size) {
    try {
      const Evidence evidence = read_dump(whole.substr(0, size));
      const auto rows = row_texts(evidence);
      ASSERT_LE(rows.size(), 3U);
      for (std::size_t row = 0; row < rows.size(); ++row) {
        // A cut may lose the group list behind the entries, not what an entry says.
        EXPECT_EQ(rows[row], expected[row]) << "cut at " << size;
      }
      EXPECT_GE(rows.size(), most) << "a longer file must not say less";
      most = rows.size();
      EXPECT_TRUE(evidence.trace.ranks.front().tail_lost);
      EXPECT_THAT(evidence.inputs.front().note, HasSubstr("cut or damaged"));
      EXPECT_EQ(evidence.diagnostics.count_of("flight_recorder.truncated_file"), 1U);
    } catch (const Error& error) {
      ++errors;
      EXPECT_EQ(most, 0U) << error.what();
    }
  }
  EXPECT_EQ(most, 3U);
  EXPECT_GT(errors, 0U);
}
TEST(Truncated, TorchPickle) { cut_everywhere(torch_pickle(three_entries())); }
TEST(Truncated, PythonPickle2) { cut_everywhere(python_pickle(three_entries(), 2)); }
TEST(Truncated, PythonPickle4) { cut_everywhere(python_pickle(three_entries(), 4)); }
TEST(Truncated, Json) { cut_everywhere(json(three_entries())); }

// Python writes a list of one item without a MARK; here the item would get more keys, and the file ends.
TEST(Truncated, BehindTheMarkOfASecondBatch) {
  const std::string one = python_pickle(dict(dump("[0, 1]", {dict(entry(0, 1, "nccl:all_reduce"))})), 2);
  const std::string at_append = one.substr(0, one.size() - 3);  // without "a" (APPEND), "u" of the dump, STOP
  ASSERT_EQ(one.substr(one.size() - 3), "au.");
  EXPECT_EQ(row_texts(read_dump(at_append)).size(), 1U);
  EXPECT_EQ(row_texts(read_dump(at_append + "(")).size(), 0U);
}

TEST(Truncated, SaysWhere) {
  const std::string whole = torch_pickle(three_entries());
  EXPECT_THAT(error_of(whole.substr(0, 12)),
              HasSubstr("dumps/rank_0 at byte 4: nothing of this flight-recorder dump can be used: BINUNICODE wants 7 "
                        "bytes, but 3 are left"));
}

TEST(Flipped, NoBitMakesItCrash) {
  for (const std::string& whole :
       {torch_pickle(three_entries()), python_pickle(three_entries(), 4), json(three_entries())}) {
    std::size_t read = 0;
    for (std::size_t at = 0; at < whole.size(); ++at) {
      for (int bit = 0; bit < 8; ++bit) {
        std::string flipped = whole;
        flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
        if (!flipped.starts_with('\x80') && whole.starts_with('\x80')) continue;  // not for this reader
        try {
          const Evidence evidence = read_dump(flipped);
          ++read;
          EXPECT_EQ(evidence.trace.ranks.size(), 1U);
          // At most one entry may be torn into more by a flip of its structure.
          EXPECT_LE(evidence.trace.programs.front().size(), 4U);
        } catch (const Error& error) {
          EXPECT_STRNE(error.what(), "");
        }
      }
    }
    EXPECT_GT(read, whole.size());  // most flips hit a value, and the rest is of use
  }
}

TEST(Refused, OpcodesThatRunCode) {
  const std::vector<std::pair<std::string, const char*>> cases{{"cos\nsystem\n", "GLOBAL"},
                                                               {"\x93", "STACK_GLOBAL"},
                                                               {"R", "REDUCE"},
                                                               {"b", "BUILD"},
                                                               {"ios\nsystem\n", "INST"},
                                                               {"o", "OBJ"},
                                                               {"\x81", "NEWOBJ"},
                                                               {"\x92", "NEWOBJ_EX"},
                                                               {"P1\n", "PERSID"},
                                                               {"Q", "BINPERSID"},
                                                               {"\x82\x01", "EXT1"},
                                                               {"\x83\x01\x01", "EXT2"},
                                                               {"\x84\x01\x01\x01\x01", "EXT4"}};
  for (const auto& [code, name] : cases) {
    EXPECT_EQ(error_of("\x80\x02" + code + "."), "dumps/rank_0 at byte 2: refused: "s + name +
                                                     " would run code, and a flight-recorder dump holds only values");
  }
  // Behind good entries too: a file that wants to run code is not believed.
  const std::string whole = torch_pickle(three_entries());
  EXPECT_THAT(error_of(whole.substr(0, whole.size() - 2) + "cos\nsystem\n"), HasSubstr("refused: GLOBAL"));
}

TEST(Refused, OtherPickles) {
  EXPECT_EQ(error_of(torch_pickle(list({1, 2}))),
            "dumps/rank_0 at byte 0: a pickle, but no flight-recorder dump: no pg_config, no entries");
  EXPECT_THAT(error_of(torch_pickle(dict({{"version", "2.10"}}))), HasSubstr("no flight-recorder dump"));
  EXPECT_THAT(error_of("\x80\x02\xff."), HasSubstr("0xff is no pickle opcode"));
  EXPECT_THAT(error_of("\x80\x02\x8f."), HasSubstr("EMPTY_SET is no opcode of a dump"));
  EXPECT_THAT(error_of("\x80\x07."), HasSubstr("no pickle of protocol 2 to 5"));
  EXPECT_THAT(error_of(R"({"version":"2.10"})"), HasSubstr("JSON, but no flight-recorder dump"));
  EXPECT_THAT(error_of("[1,2]"), HasSubstr("JSON, but no flight-recorder dump"));
}

TEST(Hostile, LengthsThatLie) {
  EXPECT_THAT(error_of("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7f"s), HasSubstr("but 0 are left")) << "BINUNICODE8";
  EXPECT_THAT(error_of("\x80\x02X\xff\xff\xff\xff"
                       "abc"s),
              HasSubstr("BINUNICODE wants 4294967295 bytes, but 3 are left"));
  EXPECT_THAT(error_of("\x80\x02\x8b\xff\xff\xff\x7f"s), HasSubstr("LONG4"));
  EXPECT_THAT(error_of("\x80\x02Nr\xff\xff\xff\xff."s), HasSubstr("memo key 4294967295 is out of range"));
  EXPECT_THAT(error_of("\x80\x02j\x05\x00\x00\x00."s), HasSubstr("memo key 5 was never put"));
}

TEST(Hostile, StackMisuse) {
  for (const char* code : {"e",
                           "u",
                           "a",
                           "s",
                           "t",
                           "0",
                           "1",
                           "\x85",
                           "\x86",
                           "\x87",
                           "q\x01",
                           "\x94",
                           ".",
                           "}(K\x01u.",
                           "](K\x01K\x02u.",
                           "K\x01(K\x02"
                           "e.",
                           "](",
                           "(((",
                           "}K\x01s.",
                           "](0.",
                           "](K\x01q\x05"
                           "1."}) {
    EXPECT_THAT(error_of("\x80\x02"s + code), HasSubstr("dumps/rank_0 at byte")) << code;
  }
}

TEST(Hostile, DeepNests) {
  constexpr std::size_t kDepth = 200'000;
  const std::string open(kDepth, ']'), close(kDepth - 1, 'a');
  EXPECT_THAT(error_of("\x80\x02" + open + close + "."), HasSubstr("no flight-recorder dump"));
  std::string tuples = "\x80\x02N";
  tuples.append(kDepth, '\x85');
  EXPECT_THAT(error_of(tuples + "."), HasSubstr("no flight-recorder dump"));
  EXPECT_THAT(error_of("\x80\x02" + std::string(kDepth, '(')), HasSubstr("nothing of this"));
  EXPECT_THAT(error_of(std::string(kDepth, '[')), HasSubstr("nothing of this"));
  std::string objects;
  for (std::size_t i = 0; i < kDepth; ++i) objects += R"({"entries":)";
  EXPECT_THAT(error_of(objects), HasSubstr("nothing of this"));
}

// Growing a list one by one, or looking at it again and again, must not cost its length each time.
TEST(Hostile, ManyTouchesOfOneList) {
  const std::string head = "\x80\x02}X\x09\x00\x00\x00pg_config}X\x01\x00\x00\x00x](]q\x05"s;
  for (const char* touch : {"Na",
                            "h\x05"
                            "a",
                            "h\x05"
                            "0",
                            "Nah\x05"
                            "0"}) {
    std::string bytes = head;
    for (int i = 0; i < 300'000; ++i) bytes += touch;
    EXPECT_EQ(read_dump(bytes + "ess.").diagnostics.count_of("flight_recorder.wrong_type"), 1U) << touch;
  }
}

std::size_t members_in(const Evidence& evidence) {
  std::size_t members = 0;
  for (const Communicator& group : evidence.trace.communicators()) members += group.members.size();
  return members;
}

// In a pickle a list is written once and named by two bytes afterwards: what it is asked to be copied into must stay in
// proportion to the file.
TEST(Hostile, OneListOfMembersForManyGroups) {
  constexpr std::size_t kMembers = 20'000, kGroups = 2'000;
  List numbers;
  std::string text;
  for (std::size_t i = 0; i < kMembers; ++i) {
    numbers.emplace_back(static_cast<std::int64_t>(i));
    text += (i == 0 ? "[" : ", ") + std::to_string(i);
  }
  const Value shared = list(numbers);
  for (const Value& ranks : {shared, Value(text + "]")}) {
    Dict config;
    for (std::size_t i = 0; i < kGroups; ++i) {
      config.emplace_back(std::to_string(i), dict({{"name", std::to_string(i)}, {"desc", ""}, {"ranks", ranks}}));
    }
    Dict made = dump("[0]", {dict(entry(0, 1, "nccl:all_reduce"))});
    set(made, "pg_config", dict(config));
    const std::string bytes = torch_pickle(dict(made)), python = python_pickle(dict(made), 4);
    for (const std::string& pickle : {bytes, python}) {
      const Evidence evidence = read_dump(pickle);
      EXPECT_GE(evidence.trace.ranks.front().comms.size(), kGroups) << "the groups are known all the same";
      EXPECT_EQ(evidence.trace.communicator(evidence.trace.ranks.front().comms[0]).members.size(), kMembers);
      if (pickle.size() > 4'000'000) continue;  // that writer repeats the list: the file is as long as it claims
      EXPECT_LE(members_in(evidence), 1'000'000 + 8 * pickle.size());
      EXPECT_GT(evidence.diagnostics.count_of("flight_recorder.too_large"), 0U);
    }
  }
}

TEST(Hostile, OneListOfSizesForManyCalls) {
  List numbers;
  for (int i = 0; i < 100'000; ++i) numbers.emplace_back(1);
  const Value shared = list(numbers);
  List tensors;
  for (int i = 0; i < 1'000; ++i) tensors.push_back(shared);
  List entries{dict(entry(0, 1, "nccl:all_reduce", {{"input_sizes", list(tensors)}}))};
  for (int i = 1; i < 1'000; ++i) {
    entries.push_back(dict(entry(i, i + 1, "nccl:all_to_all" + std::to_string(i), {{"input_split_sizes", shared}})));
  }
  const std::string bytes = python_pickle(dict(dump("[0, 1]", std::move(entries))), 4);
  ASSERT_LT(bytes.size(), 1'000'000U);
  const Evidence evidence = read_dump(bytes);
  EXPECT_EQ(row_texts(evidence).size(), 1'000U);
  std::size_t held = 0;
  for (const Signature& call : evidence.trace.signatures()) held += call.split_in.size() + call.split_out.size();
  EXPECT_LE(held, 1'000'000 + 8 * bytes.size());
  EXPECT_GT(evidence.diagnostics.count_of("flight_recorder.too_large"), 0U);
}

// One dict of many keys, named as the description of many groups and as the frame of many stacks.
TEST(Hostile, OneDictLookedAtManyTimes) {
  constexpr int kKeys = 30'000, kTimes = 30'000;
  Dict keys;
  for (int i = 0; i < kKeys; ++i) keys.emplace_back("key" + std::to_string(i), 1);
  const Value shared = dict(keys);
  Dict config;
  List frames;
  for (int i = 0; i < kTimes; ++i) {
    config.emplace_back(std::to_string(i), shared);
    frames.push_back(shared);
  }
  Dict made = dump("[0]", {dict(entry(0, 1, "nccl:all_reduce", {{"frames", list(frames)}}))});
  set(made, "pg_config", dict(config));
  const Evidence evidence = read_dump(python_pickle(dict(made), 4));
  EXPECT_EQ(row_texts(evidence).size(), 1U);
  EXPECT_GT(evidence.diagnostics.count_of("flight_recorder.too_large"), 0U);
}

// Backends, peers and groups without end: each costs what one costs.
TEST(Hostile, EveryEntryNamesSomethingNew) {
  constexpr int kEntries = 100'000;
  List entries;
  for (int i = 0; i < kEntries; ++i) {
    entries.push_back(dict({{"profiling_name", fmt::format("backend{}:send 0->{}", i, i)},
                            {"process_group", tuple({fmt::format("group{}", i), "d"})}}));
  }
  const Evidence evidence = read_dump(torch_pickle(dict(dump("[0]", std::move(entries)))));
  const RankRecord& record = evidence.trace.ranks.front();
  ASSERT_EQ(record.peers.size(), static_cast<std::size_t>(kEntries));
  EXPECT_EQ(record.peers[70'000], 70'000);
  // A row names its group in 16 bits, of which one value is none; group "0" of the list has a slot too.
  EXPECT_EQ(record.comms.size(), 65'535U);
  EXPECT_EQ(evidence.diagnostics.count_of("flight_recorder.too_many_groups"), kEntries + 1U - 65'535U);
}

TEST(Hostile, ListsThatHoldThemselves) {
  // entries = [..., entries] and an entry that refers to itself and to one that is gone
  const std::string head =
      "\x80\x02}X\x07\x00\x00\x00"
      "entries]q\x00("s;
  const std::string name = "X\x0e\x00\x00\x00profiling_nameX\x0f\x00\x00\x00nccl:all_reduce"s;
  const Evidence evidence =
      read_dump(head + "h\x00"s + "}q\x01(" + name + "Nh\x01u" + "}(" + name + "u" + "h\x01" + "es.");
  EXPECT_EQ(row_texts(evidence).size(), 2U);
  EXPECT_EQ(evidence.diagnostics.count_of("flight_recorder.wrong_type"), 3U);
}

TEST(Damaged, BytesBehindTheEndAreNoted) {
  const Evidence pickle = read_dump(torch_pickle(three_entries()) + "junk");
  EXPECT_EQ(row_texts(pickle).size(), 3U);
  EXPECT_FALSE(pickle.trace.ranks.front().tail_lost);
  EXPECT_EQ(pickle.diagnostics.count_of("flight_recorder.trailing_bytes"), 1U);
  const Evidence text = read_dump(json(three_entries()) + "\n{");
  EXPECT_EQ(row_texts(text).size(), 3U);
  EXPECT_EQ(text.diagnostics.count_of("flight_recorder.trailing_bytes"), 1U);
}

}  // namespace
}  // namespace ddx::testing
