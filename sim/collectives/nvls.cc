// NVLS: the switch of a node reduces and copies (NVIDIA/nccl: src/transport/nvls.cc). Each rank is the owner of one of
// n blocks of a chunk: the switch reads that block of all and hands the owner the sum, and takes it back to give it to
// all.
#include "sim/collectives/flat_time.h"
#include "sim/collectives/pipeline.h"
#include "sim/collectives/registry.h"

namespace ddx::sim {

namespace {

constexpr OpKind kKinds[] = {OpKind::all_reduce, OpKind::reduce_scatter, OpKind::all_gather};
// Of each owner: NCCL's NVLS chunk.
constexpr std::uint64_t kChunk = 128 * 1024;

bool fits(const Members& members) { return members.flat || members.per_node == members.ranks; }

Chunks chunks_of(const Work& work, const Members& members) { return cut(block(work.bytes, members.ranks), kChunk); }

// What a port takes for each chunk, in blocks: its part of all blocks, and its own.
std::uint64_t slot(OpKind kind, const Members& members, const Chunks& chunks) {
  return times(chunks.bytes, std::uint64_t{members.ranks} + (kind == OpKind::all_reduce ? 1 : 0));
}

std::unique_ptr<Schedule> schedule(const Work& work, const Members& members) {
  const Chunks chunks = chunks_of(work, members);
  auto pipeline = std::make_unique<Pipeline>(chunks.count, slot(work.kind, members, chunks));
  const std::uint32_t ranks = members.ranks;
  const std::uint64_t all = times(chunks.bytes, ranks);
  if (ranks == 1) return pipeline;
  const std::uint32_t reduces = pipeline->add(ranks), copies = pipeline->add(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const std::uint32_t owner = pipeline->add(rank);
    if (work.kind != OpKind::all_gather) {
      pipeline->connect(pipeline->add(rank), reduces, all);
      pipeline->connect(reduces, owner, chunks.bytes);
    }
    if (work.kind != OpKind::reduce_scatter) {
      pipeline->connect(owner, copies, chunks.bytes);
      pipeline->connect(copies, pipeline->add(rank), all);
    }
  }
  return pipeline;
}

Price price(const Work& work, const Members& members, const LinkSpec& port) {
  const Chunks chunks = chunks_of(work, members);
  const std::uint64_t depth = members.ranks == 1 ? 0 : work.kind == OpKind::all_reduce ? 4 : 2;
  return FlatTime("nvls", port).pipeline(depth, chunks.count, slot(work.kind, members, chunks)).price();
}

std::uint64_t bytes_sent(const Work& work, const Members& members) {
  const Chunks chunks = chunks_of(work, members);
  if (members.ranks == 1) return 0;
  const std::uint64_t own = times(chunks.count, chunks.bytes);
  return work.kind == OpKind::all_gather ? own : times(chunks.count, slot(work.kind, members, chunks));
}

}  // namespace

Algorithm nvls() { return {"nvls", kKinds, fits, schedule, price, bytes_sent, SwitchPlace::node}; }

}  // namespace ddx::sim
