#include "sim/collectives/channels.h"

#include <utility>

#include "sim/collectives/flat_time.h"

namespace ddx::sim {
namespace {

// Agents of channel c come behind those of the channels before it.
class Channels final : public Schedule {
 public:
  Channels(std::unique_ptr<Schedule> one, const Members& members, std::uint32_t channels)
      : one_(std::move(one)), members_(members), channels_(channels), agents_(one_->agents()) {}

  std::uint32_t agents() const override { return channels_ * agents_; }
  std::uint32_t member_of(std::uint32_t agent) const override {
    const std::uint32_t member = one_->member_of(agent % agents_), channel = agent / agents_;
    if (member >= members_.ranks) return member;
    const std::uint32_t local = member % members_.per_node, first = channel * (members_.per_node / channels_);
    return member - local + (local + first) % members_.per_node;
  }
  std::uint32_t steps(std::uint32_t agent) const override { return one_->steps(agent % agents_); }
  void step(std::uint32_t agent, std::uint32_t index, Step& step) const override {
    one_->step(agent % agents_, index, step);
    for (Send& send : step.sends) send.to += agent / agents_ * agents_;
  }

 private:
  std::unique_ptr<Schedule> one_;  // all channels are alike
  Members members_;
  std::uint32_t channels_;
  std::uint32_t agents_;
};

}  // namespace

std::unique_ptr<Schedule> in_channels(const Algorithm& algorithm, const Work& work, const Members& members,
                                      std::uint32_t channels) {
  if (channels == 1) return algorithm.schedule(work, members);
  Work part = work;
  part.bytes = block(work.bytes, channels);
  return std::make_unique<Channels>(algorithm.schedule(part, members), members, channels);
}

}  // namespace ddx::sim
