// Text that is wrong: an Error with the line and the expectation, never anything worse.
#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "traces/formats/ops.h"

namespace ddx::formats {
namespace {

std::string error_of(const std::string& text) {
  try {
    read_ops(text, "x.ops");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(OpsBroken, names_the_line_and_what_was_expected) {
  const std::string w = "world 4\n";
  const std::pair<std::string, std::string> cases[] = {
      {"", "x.ops: expected a line 'world N'"},
      {"0 barrier\n", "x.ops:1: expected 'world N' before anything else"},
      {"world 0\n", "x.ops:1: expected a world of 1 to 1048576 ranks, not 0"},
      {"world 99999999\n", "x.ops:1: expected a world of 1 to 1048576 ranks, not 99999999"},
      {"world 4\nworld 4\n", "x.ops:2: expected only one 'world' line"},
      {w + "0 all_reduced f32 1\n", "x.ops:2: expected an operation, not 'all_reduced'"},
      {w + "barrier\n", "x.ops:2: expected ranks, 'pg', 'repeat' or 'end', not 'barrier'"},
      {w + "0-4 barrier\n", "x.ops:2: rank 4 is outside the world of 4"},
      {w + "3-1 barrier\n", "x.ops:2: expected ranks like 3 or 0,2 or 4-7, not '3-1'"},
      {w + "1,, barrier\n", "x.ops:2: expected ranks like 3 or 0,2 or 4-7, not '1,,'"},
      {w + "pg a = 0,9\n", "x.ops:2: rank 9 is outside the world of 4"},
      {w + "pg a = 0-2,1\n", "x.ops:2: rank 1 is twice in the list"},
      {w + "pg a 0,1\n", "x.ops:2: expected '=' behind the group's name"},
      {w + "0 barrier tp\n", "x.ops:2: group 'tp' is unknown here: expected an earlier 'pg tp = ...'"},
      {w + "0 pg tp = 0,1\n1 barrier tp\n",
       "x.ops:3: group 'tp' is unknown on rank 1: expected an earlier 'pg' line for it"},
      {w + "\n# c\n0 repeat 3\n0 barrier\n", "x.ops:4: expected an 'end' for this 'repeat'"},
      {w + "end\n", "x.ops:2: expected a 'repeat' before this 'end'"},
      {w + "repeat 0\n", "x.ops:2: expected to repeat at least once"},
      {w + "0-1 repeat 2\n1-2 barrier\nend\n", "x.ops:3: ranks 1-2 are not all in the 'repeat' of line 2"},
      {w + "0 all_reduce f32\n", "x.ops:2: expected a count"},
      {w + "0 all_reduce f33 1\n", "x.ops:2: expected a datatype like f32, bf16, i64, u8 or bool, not 'f33'"},
      {w + "0 all_reduce f32 -1\n", "x.ops:2: expected a count of elements, not '-1'"},
      {w + "0 all_reduce f32 18446744073709551616\n",
       "x.ops:2: expected a count of elements, not '18446744073709551616'"},
      {w + "0 all_gather f32 9223372036854775808\n",
       "x.ops:2: expected a smaller count: times 4 members it overflows 64 bits"},
      {w + "0 send f32 1\n", "x.ops:2: expected 'to RANK'"},
      {w + "0 send f32 1 from 1\n", "x.ops:2: expected 'to' only with send and 'from' only with recv"},
      {w + "0 send f32 1 to -1\n", "x.ops:2: expected a rank, not '-1'"},
      {w + "0 all_reduce f32 1 root=0\n", "x.ops:2: expected root= only where an operation has a root"},
      {w + "0 all_reduce f32 1 a=b\n",
       "x.ops:2: 'a' is no option of an operation (a group's name with '=' needs quotes)"},
      {w + "0 barrier pg0 pg0\n", "x.ops:2: expected one group, found a second word 'pg0'"},
      {w + "0 compute 3\n", "x.ops:2: expected a time like 1.5ms (ns, us, ms, s), or ?"},
      {w + "0 compute -3ms\n", "x.ops:2: expected a time like 1.5ms (ns, us, ms, s), or ?"},
      {w + "0 wait 0\n", "x.ops:2: expected an async operation to wait for: rank 0 has 0"},
      {w + "0 wait x\n", "x.ops:2: expected an operation with async=x on rank 0"},
      {w + "0 group_end\n", "x.ops:2: expected a 'group_begin' before this on rank 0"},
      {w + "0 group_begin\n", "x.ops:2: expected a 'group_end' for this 'group_begin' on rank 0"},
      {w + "0 repeat 2\n0 group_begin\nend\n0 group_end\n",
       "x.ops:4: expected every group to begin and end inside one 'repeat'"},
      {w + "0 crash \"no end\n", "x.ops:2: expected a closing quote"},
      {w + "0 crash \"\\q\"\n", "x.ops:2: expected one of \\n \\t \\\\ \\\" \\xHH behind the backslash"},
      {w + "0 barrier @train.py\n", "x.ops:2: expected @file:line or @file:line:function"},
      {w + "absent 1\n1 barrier\n", "x.ops:2: expected no lines for rank 1, which is absent"},
  };
  for (const auto& [text, error] : cases) EXPECT_EQ(error_of(text), error) << text;
}

TEST(OpsBroken, a_small_file_cannot_claim_much_memory) {
  std::string members = "world 1000000\n";
  for (int i = 0; i < 100; ++i) members += "pg g" + std::to_string(i) + " = 0-999999\n";
  EXPECT_NE(error_of(members).find("describes more than ddx holds of one file"), std::string::npos);

  ImportOptions options;
  options.max_ops_per_file = 1000;
  EXPECT_THROW(read_ops("world 1000\n", "x.ops", options), Error);
}

// What every rank gets a copy of, and what every class of ranks walks through, costs as much as it is.
TEST(OpsBroken, a_small_file_cannot_claim_much_memory_or_time_by_rank) {
  const std::string world = "world 1000000\n";
  std::string peers = world;
  for (int i = 0; i < 4000; ++i) peers += "all send f32 1 to " + std::to_string(i) + "\n";
  const std::string host = world + "all record host=" + std::string(20'000, 'h') + "\n0 barrier\n";
  std::string shared = "world 200000\n";
  for (int i = 0; i < 20'000; ++i) shared += "0-99999 in pg0 pos=1\n";
  for (int i = 0; i < 20'000; ++i) shared += std::to_string(i) + " barrier\n";
  std::string splits = "world 10000\nall wait h splits=1";
  for (int i = 0; i < 100'000; ++i) splits += ",1";
  splits += "\n";
  for (int i = 0; i < 2000; ++i) {
    // A class of its own for each rank: its wait is for another operation.
    splits += std::to_string(i) + "-9999 barrier async\n" + std::to_string(i) + " barrier async=h\n";
  }
  const std::string too_much = "describes more than ddx holds of one file";
  const std::string too_many = "tells too many ranks apart on too many lines";
  for (const auto& [text, error] :
       {std::pair{peers, too_much}, {host, too_much}, {splits, too_much}, {shared, too_many}}) {
    EXPECT_NE(error_of(text).find(error), std::string::npos) << error_of(text) << "\n" << text.substr(0, 100);
  }
}

// Each of these took time that grew with the square of the file.
TEST(OpsBroken, many_lines_take_their_own_time) {
  std::string absent = "world 400000\n", repeat = "world 400000\n", sites = "world 3000\n";
  for (int i = 0; i < 200'000; ++i) absent += "absent " + std::to_string(2 * i) + "\n";
  EXPECT_EQ(read_ops(absent + "1 barrier\n").trace.ranks.size(), 200'000U);

  for (int i = 0; i < 100'000; ++i) repeat += (i == 0 ? "" : ",") + std::to_string(2 * i);
  repeat += " repeat 2\n";
  for (int i = 0; i < 100'000; ++i) repeat += "199998 barrier\n";
  const Evidence looped = read_ops(repeat + "end\n");
  EXPECT_EQ(looped.trace.program(looped.trace.ranks[199'998]).size(), 100'000U);

  // Programs that differ in the call site of their last row alone.
  for (int i = 0; i < 1000; ++i) sites += "all barrier\n";
  for (int i = 0; i < 3000; ++i) sites += std::to_string(i) + " barrier @a.py:" + std::to_string(i) + "\n";
  EXPECT_EQ(read_ops(sites).trace.programs.size(), 3000U);
}

TEST(OpsBroken, ranks_of_a_block_are_searched_from_end_to_end) {
  const std::string block = "world 20\n2-4,8,10-12 repeat 2\n";
  for (const char* inside : {"2", "4", "2-4", "8", "10-12", "3,8,11-12", "2-4,8,10-12"}) {
    EXPECT_EQ(error_of(block + inside + " barrier\nend\n"), "no error") << inside;
  }
  for (const char* outside : {"0", "1-2", "4-5", "4-8", "5", "7-8", "9", "12-13", "13", "19", "2-12", "2,9"}) {
    EXPECT_NE(error_of(block + outside + " barrier\nend\n").find("are not all in the 'repeat' of line 2"),
              std::string::npos)
        << outside;
  }
}

TEST(OpsBroken, bytes_changed_at_random_are_an_error_or_another_program) {
  const std::string good =
      "world 8\npg tp = 0,1,2\nrepeat 3\n0-2 all_gather f32 5 tp async=h @a.py:3\n0-2 wait h\nend\n"
      "0 group_begin\n0 send f32 1 to 1\n0 group_end\n1 raise \"x\\x20y\"\n";
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string text = good;
    for (auto changes = 1 + random() % 3; changes > 0; --changes) {
      const char any = static_cast<char>(random() % 128);
      text[random() % text.size()] = random() % 2 == 0 ? any : good[random() % good.size()];
    }
    if (random() % 4 == 0) text.resize(random() % text.size());
    ImportOptions options;
    options.max_ops_per_file = 100'000;
    try {
      const Evidence evidence = read_ops(text, "x.ops", options);
      EXPECT_TRUE(evidence.trace.world_size.has_value());
    } catch (const Error&) {
    }
  }
}

}  // namespace
}  // namespace ddx::formats
