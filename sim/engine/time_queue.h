// TimeQueue: events by time, for a clock that only moves forward. A radix heap: an event lies in the bucket of the
// highest bit in which its time differs from the clock, so that it is moved at most once a bit, and events of one time
// come out together (Ahuja, Mehlhorn, Orlin, Tarjan: Faster algorithms for the shortest path problem, 1990).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "sim/engine/picos.h"

namespace ddx::sim {

template <class Event>
class TimeQueue {
 public:
  bool empty() const { return size_ == 0; }

  // `time` is not before the last one taken.
  void push(Picos time, Event event) {
    DDX_CHECK(time >= clock_);
    put({time, event});
    ++size_;
  }

  // The earliest time; the queue is not empty.
  Picos next_time() const {
    Picos earliest = kForever;
    for (const Entry& entry : buckets_[first_bucket()]) earliest = std::min(earliest, entry.time);
    return earliest;
  }

  // Moves every event of the earliest time into `events` (what was in it goes), in no order that matters to anyone, and
  // returns that time. The queue is not empty.
  Picos take(std::vector<Event>& events) {
    events.clear();
    const std::size_t bucket = first_bucket();
    if (bucket > 0) clock_ = next_time();
    scratch_.swap(buckets_[bucket]);
    used_ &= ~(std::uint64_t{1} << bucket);
    for (const Entry& entry : scratch_) {
      if (entry.time == clock_) {
        events.push_back(entry.event);
      } else {
        put(entry);
      }
    }
    scratch_.clear();
    size_ -= events.size();
    return clock_;
  }

 private:
  struct Entry {
    Picos time;
    Event event;
  };

  std::size_t first_bucket() const { return static_cast<std::size_t>(std::countr_zero(used_)); }
  void put(const Entry& entry) {
    const auto bucket = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(entry.time ^ clock_)));
    buckets_[bucket].push_back(entry);
    used_ |= std::uint64_t{1} << bucket;
  }

  Picos clock_ = 0;
  std::size_t size_ = 0;
  std::uint64_t used_ = 0;  // bit i: bucket i has entries
  std::array<std::vector<Entry>, 64> buckets_;
  std::vector<Entry> scratch_;
};

}  // namespace ddx::sim
