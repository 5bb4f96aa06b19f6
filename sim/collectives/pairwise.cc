// Pairwise exchange: in step i each rank sends to the one i ahead and gets from the one i behind.
#include "sim/collectives/exchange.h"
#include "sim/collectives/flat_time.h"
#include "sim/collectives/registry.h"

namespace ddx::sim {

namespace {

constexpr OpKind kKinds[] = {OpKind::all_to_all};

std::unique_ptr<Schedule> schedule(const Work& work, const Members& members) {
  return exchanges(
      members.ranks, members.ranks - 1,
      [ranks = members.ranks, piece = block(work.bytes, members.ranks)](std::uint32_t rank, std::uint32_t step) {
        return Exchange{.to = ahead(rank, step + 1, ranks), .bytes = piece, .receives = true};
      });
}

Price price(const Work& work, const Members& members, const LinkSpec& port) {
  return FlatTime("pairwise", port).messages(members.ranks - 1, block(work.bytes, members.ranks)).price();
}

std::uint64_t bytes_sent(const Work& work, const Members& members) {
  return times(block(work.bytes, members.ranks), members.ranks - 1);
}

}  // namespace

Algorithm pairwise() { return {"pairwise", kKinds, nullptr, schedule, price, bytes_sent, {}}; }

}  // namespace ddx::sim
