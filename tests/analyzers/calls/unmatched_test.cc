// Sends and receives that nobody ever meets: the rank that left one out or named a wrong peer is told, and no circle is
// made of those who wait behind it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "analyzers/analyzer.h"
#include "tests/support/ops_text.h"
#include "tests/support/random_program.h"
#include "tests/support/told.h"

namespace ddx {
namespace {

using testing::draw;
using testing::told;

std::vector<Finding> errors_of(const std::string& ops, bool streams = false) {
  sim::ReplayOptions options;
  options.stream_ordered = streams;
  Evidence evidence;
  evidence.trace = testing::snapshot_of(ops, options);
  std::vector<Finding> errors;
  for (Finding& f : analyzers::analyze(evidence)) {
    if (f.severity == Severity::error) errors.push_back(std::move(f));
  }
  return errors;
}

void expect(const std::string& ops, std::string_view code, std::string_view ranks) {
  for (const bool streams : {false, true}) {
    const auto errors = errors_of(ops, streams);
    ASSERT_EQ(errors.size(), 1u) << ops << told(errors);
    EXPECT_EQ(errors[0].code, code) << ops << told(errors);
    EXPECT_EQ(errors[0].ranks.text(), ranks) << ops << told(errors);
  }
}

TEST(WrongPeer, is_named_alone) {
  // Rank 0 sends to 2 what rank 1 waits for; the barrier behind it closes a circle of waits.
  expect("world 4\n0 send f32 64 to 2\n1 recv f32 64 from 0\nall barrier\n", "p2p-unmatched", "0");
  // Stage 1 skips its neighbour; then stage 3 receives past it.
  expect(
      "world 4\n0 send f32 64 to 1\n1 recv f32 64 from 0\n1 send f32 64 to 3\n2 recv f32 64 from 1\n"
      "2 send f32 64 to 3\n3 recv f32 64 from 2\nall all_reduce f32 8\n",
      "p2p-unmatched", "1");
  expect(
      "world 4\n0 send f32 64 to 1\n1 recv f32 64 from 0\n1 send f32 64 to 2\n2 recv f32 64 from 1\n"
      "2 send f32 64 to 3\n3 recv f32 64 from 1\nall all_reduce f32 8\n",
      "p2p-unmatched", "3");
  // A ring posted in groups, in which rank 2 turns the wrong way.
  expect(
      "world 4\nall group_begin\n0 send f32 8 to 1\n0 recv f32 8 from 3\n1 send f32 8 to 2\n1 recv f32 8 from 0\n"
      "2 send f32 8 to 1\n2 recv f32 8 from 1\n3 send f32 8 to 0\n3 recv f32 8 from 2\nall group_end\n",
      "p2p-unmatched", "2");
}

TEST(WrongPeer, of_whom_nobody_can_say_names_both) {
  expect("world 3\n0 send f32 64 to 1\nall barrier\n", "p2p-unmatched", "0,1");
  // What rank 1 waits for has another size: that it is what rank 0 sends to 2 would be a guess.
  const auto errors = errors_of("world 3\n0 send f32 64 to 2\n1 recv f32 999 from 0\nall barrier\n");
  ASSERT_EQ(errors.size(), 2u) << told(errors);
  for (const Finding& f : errors) EXPECT_EQ(f.ranks.size(), 2u) << told(errors);
}

TEST(WrongPeer, outside_of_the_group_is_one_finding) {
  expect("world 4\n0 send f32 64 to 5\n1 recv f32 64 from 0\n", "peer-range", "0");
  expect("world 4\n0 send f32 64 to 5\n1 recv f32 64 from 0\nall barrier\n", "peer-range", "0");
  expect("world 4\npg sub = 0,1\n0 send f32 64 to 3 sub\n1 recv f32 64 from 0 sub\n", "peer-range", "0");
}

TEST(TwoHalves, in_two_groups) {
  expect("world 4\npg a = 0,1\n0 send f32 10 to 1 a\n1 recv f32 10 from 0 pg0\n", "p2p-unmatched", "0,1");
  const auto errors = errors_of("world 4\npg a = 0,1\n0 send f32 10 to 1 a\n1 recv f32 10 from 0 pg0\n");
  EXPECT_EQ(errors[0].subjects, (std::vector<std::string>{"group a", "group pg0"}));
}

// Where many ranks are wrong at once, one finding holds them.
TEST(Unmatched, many_at_once_are_told_together) {
  std::string ops = "world 8\n";
  for (int rank = 0; rank < 8; ++rank) {
    ops += fmt::format("{} group_begin\n{} send f32 {} to {}\n{} recv f32 7 from {}\n{} group_end\n", rank, rank,
                       100 + rank, (rank + 2) % 8, rank, (rank + 7) % 8, rank);
  }
  expect(ops, "p2p-unmatched", "0-7");
}

struct Message {
  bool sends;
  int peer;
};
using Lists = std::vector<std::vector<Message>>;

// Stages that pass micro-batches on and gradients back.
Lists pipeline(std::mt19937_64& random) {
  const int stages = 3 + static_cast<int>(draw(random, 6)), batches = 1 + static_cast<int>(draw(random, 5));
  Lists lists(static_cast<std::size_t>(stages));
  for (const bool forward : {true, false}) {
    for (int batch = 0; batch < batches; ++batch) {
      for (int stage = 0; stage < stages; ++stage) {
        const int from = forward ? stage - 1 : stage + 1, to = forward ? stage + 1 : stage - 1;
        auto& list = lists[static_cast<std::size_t>(stage)];
        if (from >= 0 && from < stages) list.push_back({false, from});
        if (to >= 0 && to < stages) list.push_back({true, to});
      }
    }
  }
  return lists;
}

std::string ops_of(const Lists& lists, bool barrier) {
  std::string ops = fmt::format("world {}\n", lists.size());
  for (std::size_t rank = 0; rank < lists.size(); ++rank) {
    for (const Message& message : lists[rank]) {
      ops += fmt::format("{} {} bf16 4096 {} {}\n", rank, message.sends ? "send" : "recv",
                         message.sends ? "to" : "from", message.peer);
    }
  }
  return ops + (barrier ? "all barrier\n" : "");
}

TEST(RandomPipelines, complete) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    std::mt19937_64 random(seed);
    const Lists lists = pipeline(random);
    for (const bool streams : {false, true}) {
      const auto errors = errors_of(ops_of(lists, seed % 2 == 0), streams);
      EXPECT_TRUE(errors.empty()) << "seed " << seed << told(errors);
    }
  }
}

TEST(RandomPipelines, a_wrong_peer_is_named) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 random(seed);
    Lists lists = pipeline(random);
    const auto rank = static_cast<int>(draw(random, lists.size()));
    auto& list = lists[static_cast<std::size_t>(rank)];
    Message& message = list[draw(random, list.size())];
    const int meant = message.peer;
    while (message.peer == meant || message.peer == rank) message.peer = static_cast<int>(draw(random, lists.size()));
    expect(ops_of(lists, seed % 2 == 0), "p2p-unmatched", std::to_string(rank));
    if (HasFatalFailure()) FAIL() << "seed " << seed;
  }
}

TEST(RandomPipelines, a_call_left_out_or_made_twice_is_told_of_its_pair) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 random(seed);
    Lists lists = pipeline(random);
    const auto rank = static_cast<int>(draw(random, lists.size()));
    auto& list = lists[static_cast<std::size_t>(rank)];
    const auto at = list.begin() + static_cast<std::ptrdiff_t>(draw(random, list.size()));
    const RankSet pair{RankId(rank), RankId(at->peer)};
    if (seed % 2 == 0) {
      list.erase(at);
    } else {
      list.insert(at, Message(*at));
    }
    expect(ops_of(lists, seed % 3 == 0), "p2p-unmatched", pair.text());
    if (HasFatalFailure()) FAIL() << "seed " << seed;
  }
}

}  // namespace
}  // namespace ddx
