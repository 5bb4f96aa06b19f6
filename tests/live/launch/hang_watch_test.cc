#include "live/launch/hang_watch.h"

#include <gtest/gtest.h>

namespace ddx::live {
namespace {

constexpr Nanos kAfter = 120 * kSecond;
constexpr Nanos kLong = 130 * kSecond;
constexpr Nanos kShort = 2 * kSecond;

Waiting call(Nanos since, Nanos group_still, bool async = false, std::vector<std::int32_t> members = {}) {
  return {
      .what = "all_reduce", .members = std::move(members), .async = async, .since = since, .group_still = group_still};
}

ProcessView process(std::int32_t rank, std::vector<Waiting> open, Nanos still) {
  ProcessView view;
  view.rank = rank;
  view.pid = 100 + rank;
  view.still = still;
  view.open = std::move(open);
  return view;
}

ProcessView gone(std::int32_t rank, Life life, Nanos dead_for) {
  ProcessView view = process(rank, {}, dead_for);
  view.life = life;
  view.how = "was killed by SIGKILL (9)";
  view.dead_for = dead_for;
  return view;
}

TEST(Standstill, IsACallThatDoesNotMove) {
  const auto found = standstill({process(1, {call(kLong, kLong)}, kLong), process(0, {}, kLong)}, kAfter);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->waiting.size(), 1U);
  EXPECT_EQ(found->waiting[0].rank, 1);
  ASSERT_EQ(found->others.size(), 1U);
  EXPECT_NE(found->others[0].find("rank 0"), std::string::npos);
}

TEST(Standstill, IsNotOneThatIsYoungOrWhoseGroupGetsOn) {
  EXPECT_FALSE(standstill({process(0, {call(kShort, kShort)}, kShort)}, kAfter));
  EXPECT_FALSE(standstill({process(0, {call(kLong, kShort)}, kShort)}, kAfter));
  EXPECT_FALSE(standstill({process(0, {}, kLong)}, kAfter));
}

// Its end may never be seen, as nobody waits for it.
TEST(Standstill, IsNotAnAsyncCallOfAProcessThatGetsOn) {
  EXPECT_FALSE(standstill({process(0, {call(kLong, kLong, true)}, kShort)}, kAfter));
  EXPECT_TRUE(standstill({process(0, {call(kLong, kLong, true)}, kLong)}, kAfter));
  EXPECT_TRUE(standstill({process(0, {call(kLong, kLong)}, kShort)}, kAfter));  // another thread gets on
}

TEST(Standstill, AStoppedProcessWaitsForNothingAndIsNamed) {
  ProcessView stopped = process(1, {call(kLong, kLong)}, kLong);
  stopped.life = Life::stopped;
  EXPECT_FALSE(standstill({stopped}, kAfter));
  const auto found = standstill({process(0, {call(kLong, kLong)}, kLong), stopped}, kAfter);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->others.size(), 1U);
  EXPECT_NE(found->others[0].find("rank 1 (pid 101) is stopped"), std::string::npos);
}

TEST(Loss, IsARankThatOthersWaitFor) {
  const auto found = loss({gone(1, Life::died, kLong), process(0, {call(kLong, kLong)}, kLong)}, kAfter);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 1);
  EXPECT_EQ(found->how, "was killed by SIGKILL (9)");
  ASSERT_EQ(found->waiting.size(), 1U);
  EXPECT_EQ(found->waiting[0].rank, 0);
}

TEST(Loss, IsNotOneThatNobodyWaitsFor) {
  EXPECT_FALSE(loss({gone(1, Life::died, kLong), process(0, {}, kLong)}, kAfter));
  EXPECT_FALSE(loss({gone(1, Life::died, kShort), process(0, {call(kLong, kLong)}, kLong)}, kAfter));
  EXPECT_FALSE(loss({gone(1, Life::died, kLong), process(0, {call(kShort, kShort)}, kShort)}, kAfter));
  EXPECT_FALSE(loss({gone(1, Life::left, kLong), process(0, {call(kLong, kLong)}, kLong)}, kAfter));
  EXPECT_FALSE(loss({gone(3, Life::died, kLong), process(0, {call(kLong, kLong, false, {0, 1})}, kLong)}, kAfter));
}

// An elastic launcher's next attempt.
TEST(Loss, IsNotARankThatLivesAgain) {
  EXPECT_FALSE(
      loss({gone(1, Life::died, kLong), process(1, {}, kLong), process(0, {call(kLong, kLong)}, kLong)}, kAfter));
}

TEST(Loss, IsARankThatRaisedAndStays) {
  ProcessView raised = process(1, {}, kLong);
  raised.exception = "ValueError: x";
  const auto found = loss({raised, process(0, {call(kLong, kLong)}, kLong)}, kAfter);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->how, "raised ValueError: x");
  raised.still = kShort;  // it goes on: somebody took care of it
  EXPECT_FALSE(loss({raised, process(0, {call(kLong, kLong)}, kLong)}, kAfter));
}

TEST(Loss, TheFirstOneIsNamed) {
  const auto found = loss(
      {gone(2, Life::died, kLong), gone(1, Life::died, 2 * kLong), process(0, {call(kLong, kLong)}, kLong)}, kAfter);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 1);
}

}  // namespace
}  // namespace ddx::live
