// NVLSTree: NVLS in every node, and between nodes a binary tree for each owner's block (NVIDIA/nccl:
// src/device/all_reduce.h). Owners with odd numbers use the second tree.
#include "sim/collectives/double_tree.h"
#include "sim/collectives/flat_time.h"
#include "sim/collectives/pipeline.h"
#include "sim/collectives/registry.h"

namespace ddx::sim {

namespace {

constexpr OpKind kKinds[] = {OpKind::all_reduce};
constexpr std::uint64_t kChunk = 64 * 1024;  // of each owner: what NCCL takes from four nodes on

Chunks chunks_of(const Work& work, const Members& members) { return cut(block(work.bytes, members.per_node), kChunk); }

std::uint32_t nodes_of(const Members& members) { return members.ranks / members.per_node; }

// Blocks through a port for each chunk: all of the node and its own (as in NVLS), and its edges of the tree.
std::uint64_t blocks_of(const Members& members) {
  return std::uint64_t{members.per_node} + 1 + tree_degree(nodes_of(members));
}

void add_block(Pipeline& pipeline, const Members& members, std::uint32_t local, std::uint64_t bytes) {
  const std::uint32_t nodes = nodes_of(members), first = pipeline.agents();
  const auto node_in = [&](std::uint32_t role) { return local % 2 == 0 ? role : second_tree_rank(role, nodes); };
  for (std::uint32_t role = 0; role < nodes; ++role) {
    const std::uint32_t node = node_in(role), rank = node * members.per_node + local;
    pipeline.connect(2 * node, pipeline.add(rank), bytes);  // the way up
    pipeline.add(rank);                                     // and down
    pipeline.connect(first + 2 * role + (role == 0 ? 0 : 1), 2 * node + 1, bytes);
  }
  for (std::uint32_t role = 1; role < nodes; ++role) {
    const std::uint32_t parent = tree_parent(role, nodes);
    pipeline.connect(first + 2 * role, first + 2 * parent, bytes);
    pipeline.connect(first + 2 * parent + (parent == 0 ? 0 : 1), first + 2 * role + 1, bytes);
  }
}

std::unique_ptr<Schedule> schedule(const Work& work, const Members& members) {
  const Chunks chunks = chunks_of(work, members);
  auto pipeline = std::make_unique<Pipeline>(chunks.count, times(blocks_of(members), chunks.bytes));
  if (members.ranks == 1) return pipeline;
  const std::uint64_t all = times(chunks.bytes, members.per_node);
  for (std::uint32_t node = 0; node < nodes_of(members); ++node) {  // its switch reduces, and copies
    pipeline->add(members.ranks + node);
    pipeline->add(members.ranks + node);
  }
  for (std::uint32_t rank = 0; rank < members.ranks; ++rank) {
    const std::uint32_t node = rank / members.per_node;
    pipeline->connect(pipeline->add(rank), 2 * node, all);
    pipeline->connect(2 * node + 1, pipeline->add(rank), all);
  }
  for (std::uint32_t local = 0; local < members.per_node; ++local) add_block(*pipeline, members, local, chunks.bytes);
  return pipeline;
}

Price price(const Work& work, const Members& members, const LinkSpec& port) {
  const Chunks chunks = chunks_of(work, members);
  const std::uint64_t depth = members.ranks == 1 ? 0 : 4 + 2 * std::uint64_t{tree_height(nodes_of(members))};
  return FlatTime("nvlstree", port).pipeline(depth, chunks.count, times(blocks_of(members), chunks.bytes)).price();
}

std::uint64_t bytes_sent(const Work& work, const Members& members) {
  const Chunks chunks = chunks_of(work, members);
  return members.ranks == 1 ? 0 : times(times(blocks_of(members), chunks.count), chunks.bytes);
}

}  // namespace

Algorithm nvlstree() { return {"nvlstree", kKinds, nullptr, schedule, price, bytes_sent, SwitchPlace::node}; }

}  // namespace ddx::sim
