// One message from member 0 to member 1.
#include "sim/collectives/exchange.h"
#include "sim/collectives/flat_time.h"
#include "sim/collectives/registry.h"

namespace ddx::sim {

namespace {

constexpr OpKind kKinds[] = {OpKind::send, OpKind::recv};

bool fits(const Members& members) { return members.ranks == 2; }

std::unique_ptr<Schedule> schedule(const Work& work, const Members& members) {
  return exchanges(members.ranks, 1, [bytes = work.bytes](std::uint32_t rank, std::uint32_t) {
    return rank == 0 ? Exchange{.to = 1, .bytes = bytes} : Exchange{.receives = true};
  });
}

Price price(const Work& work, const Members& /*members*/, const LinkSpec& port) {
  return FlatTime("p2p", port).messages(1, work.bytes).price();
}

std::uint64_t bytes_sent(const Work& work, const Members& /*members*/) { return work.bytes; }

}  // namespace

Algorithm point_to_point() { return {"p2p", kKinds, fits, schedule, price, bytes_sent, {}}; }

}  // namespace ddx::sim
