#include "sim/engine/time_queue.h"

#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

namespace ddx::sim {
namespace {

TEST(TimeQueue, gives_events_of_one_time_together_and_times_in_order) {
  TimeQueue<int> queue;
  for (const auto& [time, event] : {std::pair{70, 1}, {3, 2}, {70, 3}, {0, 4}, {3, 5}}) queue.push(time, event);
  std::vector<int> events;
  EXPECT_EQ(queue.next_time(), 0);
  EXPECT_EQ(queue.take(events), 0);
  EXPECT_EQ(events, std::vector{4});
  EXPECT_EQ(queue.take(events), 3);
  EXPECT_EQ(std::set<int>(events.begin(), events.end()), (std::set{2, 5}));
  queue.push(3, 6);  // now
  EXPECT_EQ(queue.next_time(), 3);
  EXPECT_EQ(queue.take(events), 3);
  EXPECT_EQ(events, std::vector{6});
  EXPECT_EQ(queue.next_time(), 70);
  EXPECT_EQ(queue.take(events), 70);
  EXPECT_TRUE(queue.empty());
}

TEST(TimeQueue, agrees_with_a_sorted_map_on_any_order_of_pushes) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    TimeQueue<int> queue;
    std::multimap<Picos, int> sorted;
    const int spread = static_cast<int>(random() % 62);
    Picos now = 0;
    for (int event = 0; event < 300; ++event) {
      const Picos time = now + static_cast<Picos>(random() >> (63 - spread) >> 1);
      queue.push(time, event);
      sorted.emplace(time, event);
      if (random() % 3 != 0) continue;
      std::vector<int> events;
      EXPECT_EQ(queue.next_time(), sorted.begin()->first);
      now = queue.take(events);
      ASSERT_EQ(now, sorted.begin()->first);
      std::multiset<int> expected;
      for (auto [at, end] = sorted.equal_range(now); at != end; at = sorted.erase(at)) expected.insert(at->second);
      ASSERT_EQ(std::multiset<int>(events.begin(), events.end()), expected);
      if (queue.empty()) break;
    }
  }
}

TEST(TimeQueue, holds_the_whole_range_of_the_clock) {
  TimeQueue<int> queue;
  queue.push(kForever, 1);
  queue.push(1, 2);
  std::vector<int> events;
  EXPECT_EQ(queue.take(events), 1);
  EXPECT_EQ(queue.take(events), kForever);
}

}  // namespace
}  // namespace ddx::sim
