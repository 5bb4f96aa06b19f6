// NCCL's double binary tree: each tree reduces half of the buffer to its root and sends it back down, in chunks, all
// four directions of a port at once.
#include "sim/collectives/double_tree.h"
#include "sim/collectives/flat_time.h"
#include "sim/collectives/pipeline.h"
#include "sim/collectives/registry.h"

namespace ddx::sim {

namespace {

constexpr OpKind kKinds[] = {OpKind::all_reduce};

// As NCCL picks its chunk: smaller where a buffer would not fill the tree (src/enqueue.cc).
Chunks chunks_of(std::uint64_t bytes, std::uint32_t height) {
  std::uint64_t chunk = 512 * 1024;
  const auto few = [&](std::uint64_t times_height) { return bytes / chunk < times_height * height; };
  while (chunk > 128 * 1024 && few(8)) chunk /= 2;
  while (chunk > 64 * 1024 && few(4)) chunk /= 2;
  while (chunk > 32 * 1024 && few(1)) chunk /= 2;
  return cut(bytes, chunk);
}

Chunks half(const Work& work, const Members& members) {
  return chunks_of(block(work.bytes, 2), tree_height(members.ranks));
}

// Messages that go through one port at once: inside one tree, a leaf of the other.
std::uint64_t lanes(std::uint32_t ranks) { return ranks < 4 ? ranks : 4; }

// Agents 2r and 2r + 1 of a tree: r on the way up, and on the way down.
void add_tree(Pipeline& pipeline, std::uint32_t ranks, bool second, std::uint64_t bytes) {
  const std::uint32_t first = pipeline.agents();
  for (std::uint32_t role = 0; role < ranks; ++role) {
    const std::uint32_t rank = second ? second_tree_rank(role, ranks) : role;
    pipeline.add(rank);
    pipeline.add(rank);
  }
  for (std::uint32_t role = 1; role < ranks; ++role) {
    const std::uint32_t parent = tree_parent(role, ranks);
    pipeline.connect(first + 2 * role, first + 2 * parent, bytes);
    // The root turns around: what has come up goes down.
    pipeline.connect(first + 2 * parent + (parent == 0 ? 0 : 1), first + 2 * role + 1, bytes);
  }
}

std::unique_ptr<Schedule> schedule(const Work& work, const Members& members) {
  const Chunks chunks = half(work, members);
  auto pipeline = std::make_unique<Pipeline>(chunks.count, times(lanes(members.ranks), chunks.bytes));
  add_tree(*pipeline, members.ranks, false, chunks.bytes);
  add_tree(*pipeline, members.ranks, true, chunks.bytes);
  return pipeline;
}

Price price(const Work& work, const Members& members, const LinkSpec& port) {
  const Chunks chunks = half(work, members);
  return FlatTime("tree", port)
      .pipeline(2 * std::uint64_t{tree_height(members.ranks)}, chunks.count, times(lanes(members.ranks), chunks.bytes))
      .price();
}

std::uint64_t bytes_sent(const Work& work, const Members& members) {
  const Chunks chunks = half(work, members);
  return members.ranks == 1 ? 0 : times(lanes(members.ranks), times(chunks.count, chunks.bytes));
}

}  // namespace

Algorithm tree() { return {"tree", kKinds, nullptr, schedule, price, bytes_sent, {}}; }

}  // namespace ddx::sim
