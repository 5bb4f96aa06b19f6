// Ring. all_reduce is a reduce_scatter and an all_gather of n - 1 steps each (Patarasuk, Yuan: Bandwidth optimal
// all-reduce algorithms, 2009); broadcast and reduce are chains of n ranks through which chunks go one behind another.
#include "sim/collectives/exchange.h"
#include "sim/collectives/flat_time.h"
#include "sim/collectives/pipeline.h"
#include "sim/collectives/registry.h"

namespace ddx::sim {

namespace {

constexpr OpKind kKinds[] = {OpKind::all_reduce, OpKind::reduce_scatter, OpKind::all_gather, OpKind::broadcast,
                             OpKind::reduce};
// NCCL's slice with its default buffer of 4 MiB in 8 steps.
constexpr std::uint64_t kChunk = 512 * 1024;

bool is_chain(OpKind kind) { return kind == OpKind::broadcast || kind == OpKind::reduce; }

std::uint32_t steps_of(OpKind kind, std::uint32_t ranks) { return (kind == OpKind::all_reduce ? 2 : 1) * (ranks - 1); }

std::unique_ptr<Schedule> chain(const Work& work, std::uint32_t ranks) {
  const Chunks chunks = cut(work.bytes, kChunk);
  auto pipeline = std::make_unique<Pipeline>(chunks.count, chunks.bytes);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) pipeline->add(rank);
  for (std::uint32_t rank = 1; rank < ranks; ++rank) {
    const bool down = work.kind == OpKind::broadcast;
    pipeline->connect(down ? rank - 1 : rank, down ? rank : rank - 1, chunks.bytes);
  }
  return pipeline;
}

std::unique_ptr<Schedule> schedule(const Work& work, const Members& members) {
  if (is_chain(work.kind)) return chain(work, members.ranks);
  return exchanges(
      members.ranks, steps_of(work.kind, members.ranks),
      [ranks = members.ranks, bytes = block(work.bytes, members.ranks)](std::uint32_t rank, std::uint32_t) {
        return Exchange{.to = rank + 1 == ranks ? 0 : rank + 1, .bytes = bytes, .receives = true};
      });
}

Price price(const Work& work, const Members& members, const LinkSpec& port) {
  FlatTime time("ring", port);
  if (is_chain(work.kind)) {
    const Chunks chunks = cut(work.bytes, kChunk);
    return time.pipeline(members.ranks - 1, chunks.count, chunks.bytes).price();
  }
  return time.messages(steps_of(work.kind, members.ranks), block(work.bytes, members.ranks)).price();
}

std::uint64_t bytes_sent(const Work& work, const Members& members) {
  if (!is_chain(work.kind)) return times(steps_of(work.kind, members.ranks), block(work.bytes, members.ranks));
  const Chunks chunks = cut(work.bytes, kChunk);
  return members.ranks == 1 ? 0 : times(chunks.count, chunks.bytes);
}

}  // namespace

Algorithm ring() { return {"ring", kKinds, nullptr, schedule, price, bytes_sent, {}}; }

}  // namespace ddx::sim
