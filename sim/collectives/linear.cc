// Linear gather and scatter: all messages of the root, member 0, at once. They share its port.
#include "sim/collectives/flat_time.h"
#include "sim/collectives/registry.h"

namespace ddx::sim {

namespace {

constexpr OpKind kKinds[] = {OpKind::gather, OpKind::scatter};

class LinearSchedule final : public Schedule {
 public:
  LinearSchedule(std::uint32_t ranks, std::uint64_t bytes, bool gathers)
      : ranks_(ranks), bytes_(bytes), gathers_(gathers) {}

  std::uint32_t agents() const override { return ranks_; }
  std::uint32_t member_of(std::uint32_t agent) const override { return agent; }
  std::uint32_t steps(std::uint32_t /*agent*/) const override { return ranks_ > 1 ? 1 : 0; }
  void step(std::uint32_t agent, std::uint32_t /*index*/, Step& step) const override {
    const bool root = agent == 0;
    if (gathers_ == root) {
      step.receives = root ? ranks_ - 1 : 1;
      return;
    }
    const std::uint32_t first = root ? 1 : 0, last = root ? ranks_ - 1 : 0;
    for (std::uint32_t to = first; to <= last; ++to) step.sends.push_back({to, 0, bytes_, bytes_, false});
  }

 private:
  std::uint32_t ranks_;
  std::uint64_t bytes_;
  bool gathers_;
};

std::unique_ptr<Schedule> schedule(const Work& work, const Members& members) {
  return std::make_unique<LinearSchedule>(members.ranks, block(work.bytes, members.ranks), work.kind == OpKind::gather);
}

Price price(const Work& work, const Members& members, const LinkSpec& port) {
  const std::uint64_t all = times(block(work.bytes, members.ranks), members.ranks - 1);
  return FlatTime("linear", port).messages(members.ranks > 1 ? 1 : 0, all).price();
}

std::uint64_t bytes_sent(const Work& work, const Members& members) {
  const std::uint64_t piece = block(work.bytes, members.ranks);
  if (members.ranks == 1) return 0;
  return work.kind == OpKind::gather ? piece : times(piece, members.ranks - 1);
}

}  // namespace

Algorithm linear() { return {"linear", kKinds, nullptr, schedule, price, bytes_sent, {}}; }

}  // namespace ddx::sim
