// Dissemination barrier: in step i each rank tells the one 2^i ahead (Hensgen, Finkel, Manber: Two algorithms for
// barrier synchronization, 1988).
#include "sim/collectives/exchange.h"
#include "sim/collectives/flat_time.h"
#include "sim/collectives/registry.h"

namespace ddx::sim {

namespace {

constexpr OpKind kKinds[] = {OpKind::barrier};

std::unique_ptr<Schedule> schedule(const Work& /*work*/, const Members& members) {
  return exchanges(members.ranks, log2_up(members.ranks),
                   [ranks = members.ranks](std::uint32_t rank, std::uint32_t step) {
                     return Exchange{.to = ahead(rank, std::uint32_t{1} << step, ranks), .receives = true};
                   });
}

Price price(const Work& /*work*/, const Members& members, const LinkSpec& port) {
  return FlatTime("dissemination", port).messages(log2_up(members.ranks), 0).price();
}

std::uint64_t bytes_sent(const Work& /*work*/, const Members& /*members*/) { return 0; }

}  // namespace

Algorithm dissemination() { return {"dissemination", kKinds, nullptr, schedule, price, bytes_sent, {}}; }

}  // namespace ddx::sim
