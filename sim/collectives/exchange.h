// Schedules in which each rank sends at most one message a step and gets at most one: most algorithms of MPI libraries.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "sim/collectives/schedule.h"

namespace ddx::sim {

constexpr std::uint32_t kNobody = std::numeric_limits<std::uint32_t>::max();

struct Exchange {
  std::uint32_t to = kNobody;
  std::uint64_t bytes = 0;
  bool receives = false;
  std::uint32_t to_step = kNobody;  // where it is not the same for both sides
  bool awaits_receiver = false;
};

// `Rule`: (rank, index of the step) -> Exchange.
template <class Rule>
class ExchangeSchedule final : public Schedule {
 public:
  ExchangeSchedule(std::uint32_t ranks, std::uint32_t steps, Rule rule)
      : ranks_(ranks), steps_(steps), rule_(std::move(rule)) {}

  std::uint32_t agents() const override { return ranks_; }
  std::uint32_t member_of(std::uint32_t agent) const override { return agent; }
  std::uint32_t steps(std::uint32_t /*agent*/) const override { return steps_; }
  void step(std::uint32_t agent, std::uint32_t index, Step& step) const override {
    const Exchange now = rule_(agent, index);
    step.receives = now.receives ? 1 : 0;
    if (now.to == kNobody) return;
    step.sends.push_back(
        {now.to, now.to_step == kNobody ? index : now.to_step, now.bytes, now.bytes, now.awaits_receiver});
  }

 private:
  std::uint32_t ranks_;
  std::uint32_t steps_;
  Rule rule_;
};

template <class Rule>
std::unique_ptr<Schedule> exchanges(std::uint32_t ranks, std::uint32_t steps, Rule rule) {
  return std::make_unique<ExchangeSchedule<Rule>>(ranks, steps, std::move(rule));
}

// Of a ring; `by` is less than `ranks`.
constexpr std::uint32_t ahead(std::uint32_t rank, std::uint32_t by, std::uint32_t ranks) {
  return by < ranks - rank ? rank + by : rank - (ranks - by);
}
constexpr std::uint32_t behind(std::uint32_t rank, std::uint32_t by, std::uint32_t ranks) {
  return rank >= by ? rank - by : rank + (ranks - by);
}

}  // namespace ddx::sim
