#include "tests/bench/hung_job.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"

namespace ddx::bench {
namespace {

constexpr std::string_view kReduce = "nccl:all_reduce";
constexpr std::string_view kGather = "nccl:_all_gather_base";
constexpr std::string_view kScatter = "nccl:_reduce_scatter_base";

constexpr StepOp gather_tokens() { return {Scope::tensor, kGather, "BFloat16", {512, 8192}, {4096, 8192}}; }
constexpr StepOp reduce_tokens() { return {Scope::tensor, kReduce, "BFloat16", {4096, 8192}, {4096, 8192}}; }
constexpr StepOp reduce_numbers(Scope scope, std::int64_t count) {
  return {scope, kReduce, "Float", {count, 0}, {count, 0}};
}
constexpr StepOp scatter_bucket(std::int64_t shard, std::int64_t members) {
  return {Scope::data, kScatter, "Float", {shard * members, 0}, {shard, 0}};
}
constexpr StepOp gather_bucket(std::int64_t shard, std::int64_t members) {
  return {Scope::data, kGather, "BFloat16", {shard, 0}, {shard * members, 0}};
}

// Neighbours in one group always differ in operation or size: a rank that skips one hangs at the next, it does not
// run on with the wrong partners.
std::array<StepOp, kStepOps> step_of(std::int64_t data_ranks) {
  return {
      gather_tokens(),
      reduce_tokens(),
      gather_tokens(),
      reduce_tokens(),
      gather_tokens(),
      reduce_tokens(),
      gather_tokens(),
      reduce_tokens(),
      gather_tokens(),
      reduce_tokens(),
      gather_tokens(),
      reduce_tokens(),
      scatter_bucket(819'200, data_ranks),
      scatter_bucket(409'600, data_ranks),
      scatter_bucket(204'800, data_ranks),
      gather_bucket(409'600, data_ranks),
      gather_bucket(819'200, data_ranks),
      reduce_numbers(Scope::tensor, 1),
      reduce_numbers(Scope::world, 1),
      reduce_numbers(Scope::world, 2),
  };
}

}  // namespace

HungJob::HungJob(const JobShape& shape) : shape_(shape), step_(step_of(shape.ranks / kTensorRanks)), ops_(shape.ops) {
  if (shape.ranks < 2 * kTensorRanks || shape.ranks % kTensorRanks != 0) {
    throw Error(fmt::format("ranks must be a multiple of {} and at least {}", kTensorRanks, 2 * kTensorRanks));
  }
  stuck_at_.assign(shape.ranks, std::numeric_limits<std::uint32_t>::max());
  if (!shape.skip) return;
  if (shape.skip->rank >= shape.ranks || shape.skip->op >= shape.ops) {
    throw Error(fmt::format("there is no operation {} of rank {}", shape.skip->op, shape.skip->rank));
  }
  if (step_op(shape.skip->op).scope == Scope::world) {
    throw Error(fmt::format("operation {} is the world's, where the host waits: choose another", shape.skip->op));
  }
  // The host runs ahead of the hang until it waits for the loss at the end of the step.
  ops_ = std::min(shape.ops, (shape.skip->op / kStepOps + 1) * kStepOps);
  run_to_the_hang();
}

bool HungJob::skips(std::uint32_t rank, std::uint32_t op) const {
  return shape_.skip && shape_.skip->rank == rank && shape_.skip->op == op;
}

// Within a group positions are ascending ranks; groups are numbered as new_group calls would number them.
std::uint32_t HungJob::group_index(std::uint32_t rank, Scope scope) const {
  if (scope == Scope::world) return 0;
  if (scope == Scope::tensor) return 1 + rank / kTensorRanks;
  return 1 + shape_.ranks / kTensorRanks + rank % kTensorRanks;
}

std::string HungJob::group_name(std::uint32_t rank, Scope scope) const {
  return std::to_string(group_index(rank, scope));
}

std::vector<std::uint32_t> HungJob::group_members(std::uint32_t rank, Scope scope) const {
  std::vector<std::uint32_t> members;
  for (std::uint32_t other = 0; other < shape_.ranks; ++other) {
    if (group_index(other, scope) == group_index(rank, scope)) members.push_back(other);
  }
  return members;
}

// A device runs what its host enqueued in order. A group that lacks a member at an operation never ends it, nor does
// anybody who waits there for such a member.
void HungJob::run_to_the_hang() {
  const Skip skip = *shape_.skip;
  const std::uint32_t groups = 1 + shape_.ranks / kTensorRanks + kTensorRanks;
  for (std::uint32_t op = skip.op; op < ops_; ++op) {
    const Scope scope = step_op(op).scope;
    std::vector<bool> lacks(groups, false);
    for (std::uint32_t rank = 0; rank < shape_.ranks; ++rank) {
      if (stuck_at_[rank] < op || skips(rank, op)) lacks[group_index(rank, scope)] = true;
    }
    for (std::uint32_t rank = 0; rank < shape_.ranks; ++rank) {
      if (lacks[group_index(rank, scope)] && !skips(rank, op)) stuck_at_[rank] = std::min(stuck_at_[rank], op);
    }
  }
}

}  // namespace ddx::bench
