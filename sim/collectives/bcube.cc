// gloo's bcube (gloo/allreduce_bcube.h): ranks as digits; in step i all ranks that differ in digit i alone exchange
// their parts directly, first reducing (each group keeps a part), then gathering. The digits' bases are the prime
// factors of the number of ranks, so that any number runs: 2, 2, 2 for 8 is halving and doubling, a prime is one direct
// exchange.
#include <vector>

#include "sim/collectives/flat_time.h"
#include "sim/collectives/registry.h"

namespace ddx::sim {

namespace {

constexpr OpKind kKinds[] = {OpKind::all_reduce};

struct Round {
  std::uint32_t base;      // ranks of a group
  std::uint32_t distance;  // between two of them
};

std::vector<Round> rounds_of(std::uint32_t ranks) {
  std::vector<Round> rounds;
  std::uint32_t distance = 1, left = ranks;
  for (std::uint32_t base = 2; left > 1; ++base) {
    if (std::uint64_t{base} * base > left) base = left;
    for (; left % base == 0; left /= base, distance *= base) rounds.push_back({base, distance});
  }
  return rounds;
}

class BcubeSchedule final : public Schedule {
 public:
  BcubeSchedule(std::uint32_t ranks, std::uint64_t piece) : ranks_(ranks), piece_(piece), rounds_(rounds_of(ranks)) {}

  std::uint32_t agents() const override { return ranks_; }
  std::uint32_t member_of(std::uint32_t agent) const override { return agent; }
  std::uint32_t steps(std::uint32_t /*agent*/) const override { return static_cast<std::uint32_t>(2 * rounds_.size()); }
  void step(std::uint32_t agent, std::uint32_t index, Step& step) const override {
    const auto count = static_cast<std::uint32_t>(rounds_.size());
    const Round& round = rounds_[index < count ? index : 2 * count - 1 - index];
    const std::uint32_t digit = agent / round.distance % round.base;
    const std::uint32_t first = agent - digit * round.distance;
    // Of what is left after the rounds before, 1 / base for each.
    const std::uint64_t bytes = times(piece_, ranks_ / round.distance / round.base);
    step.receives = round.base - 1;
    for (std::uint32_t other = 0; other < round.base; ++other) {
      if (other == digit) continue;
      step.sends.push_back({first + other * round.distance, index, bytes, times(bytes, round.base - 1), false});
    }
  }

 private:
  std::uint32_t ranks_;
  std::uint64_t piece_;
  std::vector<Round> rounds_;
};

std::unique_ptr<Schedule> schedule(const Work& work, const Members& members) {
  return std::make_unique<BcubeSchedule>(members.ranks, block(work.bytes, members.ranks));
}

Price price(const Work& work, const Members& members, const LinkSpec& port) {
  FlatTime time("bcube", port);
  const std::uint64_t piece = block(work.bytes, members.ranks);
  for (const Round& round : rounds_of(members.ranks))
    time.messages(2, times(piece, std::uint64_t{members.ranks / round.distance / round.base} * (round.base - 1)));
  return time.price();
}

std::uint64_t bytes_sent(const Work& work, const Members& members) {
  return times(block(work.bytes, members.ranks), 2 * std::uint64_t{members.ranks - 1});
}

}  // namespace

Algorithm bcube() { return {"bcube", kKinds, nullptr, schedule, price, bytes_sent, {}}; }

}  // namespace ddx::sim
