// CollNet: switches between the nodes reduce (SHARP; NVIDIA/nccl: src/device/all_reduce.h). Direct: the ranks of a node
// exchange blocks among themselves, each hands the sum of its own block to the fabric, and what comes back goes round
// the node again. Chain: chunks go along the ranks of a node to its first, which talks to the fabric, and back.
#include "sim/collectives/flat_time.h"
#include "sim/collectives/pipeline.h"
#include "sim/collectives/registry.h"

namespace ddx::sim {

namespace {

constexpr OpKind kKinds[] = {OpKind::all_reduce};
constexpr std::uint64_t kChunk = 128 * 1024;

// Direct: blocks through a port for each chunk: those of the others on both ways round, and its own to the fabric.
Chunks direct_chunks(const Work& work, const Members& members) {
  return cut(block(work.bytes, members.per_node), kChunk);
}
std::uint64_t direct_slot(const Work& work, const Members& members) {
  return times(2 * std::uint64_t{members.per_node} - 1, direct_chunks(work, members).bytes);
}

std::unique_ptr<Schedule> direct_schedule(const Work& work, const Members& members) {
  const Chunks chunks = direct_chunks(work, members);
  auto pipeline = std::make_unique<Pipeline>(chunks.count, direct_slot(work, members));
  if (members.ranks == 1) return pipeline;
  // Agents 4r: gives away what is not its own; 4r + 1: sums its own; 4r + 2: gets it back; 4r + 3: gets the others'.
  for (std::uint32_t rank = 0; rank < members.ranks; ++rank) {
    for (int agent = 0; agent < 4; ++agent) pipeline->add(rank);
  }
  for (std::uint32_t rank = 0; rank < members.ranks; ++rank) {
    const std::uint32_t first = rank - rank % members.per_node;
    for (std::uint32_t other = first; other < first + members.per_node; ++other) {
      if (other == rank) continue;
      pipeline->connect(4 * rank, 4 * other + 1, chunks.bytes);
      pipeline->connect(4 * rank + 2, 4 * other + 3, chunks.bytes);
    }
  }
  for (std::uint32_t local = 0; local < members.per_node; ++local) {
    const std::uint32_t fabric = pipeline->add(members.ranks);
    for (std::uint32_t rank = local; rank < members.ranks; rank += members.per_node) {
      pipeline->connect(4 * rank + 1, fabric, chunks.bytes);
      pipeline->connect(fabric, 4 * rank + 2, chunks.bytes);
    }
  }
  return pipeline;
}

Price direct_price(const Work& work, const Members& members, const LinkSpec& port) {
  const std::uint64_t depth = members.ranks == 1 ? 0 : members.per_node == 1 ? 2 : 4;
  return FlatTime("collnet-direct", port)
      .pipeline(depth, direct_chunks(work, members).count, direct_slot(work, members))
      .price();
}

std::uint64_t direct_bytes(const Work& work, const Members& members) {
  return members.ranks == 1 ? 0 : times(direct_chunks(work, members).count, direct_slot(work, members));
}

// Chain: a chunk to the one before, a chunk to the one behind.
Chunks chain_chunks(const Work& work) { return cut(work.bytes, kChunk); }
std::uint64_t chain_slot(const Work& work, const Members& members) {
  return times(members.per_node == 1 ? 1 : 2, chain_chunks(work).bytes);
}

std::unique_ptr<Schedule> chain_schedule(const Work& work, const Members& members) {
  const Chunks chunks = chain_chunks(work);
  auto pipeline = std::make_unique<Pipeline>(chunks.count, chain_slot(work, members));
  if (members.ranks == 1) return pipeline;
  const std::uint32_t fabric = pipeline->add(members.ranks);
  for (std::uint32_t rank = 0; rank < members.ranks; ++rank) {
    const std::uint32_t up = pipeline->add(rank), down = pipeline->add(rank);
    const bool head = rank % members.per_node == 0;
    pipeline->connect(up, head ? fabric : up - 2, chunks.bytes);
    pipeline->connect(head ? fabric : down - 2, down, chunks.bytes);
  }
  return pipeline;
}

Price chain_price(const Work& work, const Members& members, const LinkSpec& port) {
  const std::uint64_t depth = members.ranks == 1 ? 0 : 2 * std::uint64_t{members.per_node};
  return FlatTime("collnet-chain", port).pipeline(depth, chain_chunks(work).count, chain_slot(work, members)).price();
}

std::uint64_t chain_bytes(const Work& work, const Members& members) {
  return members.ranks == 1 ? 0 : times(chain_chunks(work).count, chain_slot(work, members));
}

}  // namespace

Algorithm collnet_direct() {
  return {"collnet-direct", kKinds, nullptr, direct_schedule, direct_price, direct_bytes, SwitchPlace::fabric};
}

Algorithm collnet_chain() {
  return {"collnet-chain", kKinds, nullptr, chain_schedule, chain_price, chain_bytes, SwitchPlace::fabric};
}

}  // namespace ddx::sim
