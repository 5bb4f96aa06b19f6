// Many calls on one network. What is known of a call that is alone must change nothing.
#include "sim/collectives/step_network.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace ddx::sim {
namespace {

struct Arrival {
  Picos time = 0;
  std::size_t call = 0;
};

using Ends = std::map<std::pair<std::size_t, std::uint32_t>, Picos>;  // by call and member

// Calls of all ranks, each begun when the network has come to its time.
Ends ends_of(const std::vector<Picos>& begins, const std::vector<std::uint64_t>& bytes, bool alike, bool late) {
  const Network network(4, {1'000'000'000, 1'000'000});
  StepNetwork steps(network);
  std::map<StepNetwork::CallId, std::size_t> number;
  Ends ends;
  std::vector<StepNetwork::End> told;
  Picos now = 0;
  const auto take = [&] {
    for (const auto& end : told) {
      ends[{number.at(end.call), end.member}] = end.time;
      now = std::max(now, end.time);
    }
  };
  for (std::size_t i = 0; i < begins.size(); ++i) {
    // In order of time: whatever ends before is told before, as a replay would ask for it.
    while (now < begins[i] && ends.size() < 4 * i && steps.advance(told)) take();
    const auto call = steps.begin(*find_algorithm("ring"), {OpKind::all_reduce, bytes[i]}, {0, 1, 2, 3},
                                  alike ? std::optional(bytes[i]) : std::nullopt);
    number[call] = i;
    for (std::uint32_t member = 0; member < 4; ++member) {
      steps.arrive(call, member, std::max(now, begins[i]) + (late && member == 2 ? 700'000 : 0));
    }
  }
  while (steps.advance(told)) take();
  return ends;
}

TEST(StepNetwork, what_is_known_changes_nothing) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Picos> begins;
    std::vector<std::uint64_t> bytes;
    Picos time = 0;
    for (int i = 0; i < 12; ++i) {
      begins.push_back(time += static_cast<Picos>(random() % 3 == 0 ? 3'000'000 : 40'000'000));
      bytes.push_back(4000 * (1 + random() % 2));
    }
    const bool late = round % 3 == 0;
    const Ends ends = ends_of(begins, bytes, true, late);
    EXPECT_EQ(ends.size(), 48U);
    EXPECT_EQ(ends, ends_of(begins, bytes, false, late)) << round;
  }
}

}  // namespace
}  // namespace ddx::sim
