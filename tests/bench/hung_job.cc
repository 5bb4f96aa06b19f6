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
constexpr StepOp scatter_bucket(std::int64_t in, std::int64_t out) {
  return {Scope::data, kScatter, "Float", {in, 0}, {out, 0}};
}
constexpr StepOp gather_bucket(std::int64_t in, std::int64_t out) {
  return {Scope::data, kGather, "BFloat16", {in, 0}, {out, 0}};
}

// Neighbours in one group always differ in operation or size: a rank that skips one hangs at the next, it does not
// run on with the wrong partners.
constexpr std::array<StepOp, kStepOps> kStep{{
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
    scatter_bucket(104'857'600, 819'200),
    scatter_bucket(52'428'800, 409'600),
    scatter_bucket(26'214'400, 204'800),
    gather_bucket(409'600, 52'428'800),
    gather_bucket(819'200, 104'857'600),
    {Scope::tensor, kReduce, "Float", {1, 0}, {1, 0}},
    {Scope::world, kReduce, "Float", {1, 0}, {1, 0}},
    {Scope::world, kReduce, "Float", {2, 0}, {2, 0}},
}};

}  // namespace

const std::array<StepOp, kStepOps>& step() { return kStep; }

HungJob::HungJob(const JobShape& shape) : shape_(shape), ops_(shape.ops) {
  if (shape.ranks < 2 * kTensorRanks || shape.ranks % kTensorRanks != 0) {
    throw Error(fmt::format("ranks must be a multiple of {} and at least {}", kTensorRanks, 2 * kTensorRanks));
  }
  stuck_at_.assign(shape.ranks, std::numeric_limits<std::uint32_t>::max());
  if (!shape.skip) return;
  if (shape.skip->rank >= shape.ranks || shape.skip->op >= shape.ops) {
    throw Error(fmt::format("there is no operation {} of rank {}", shape.skip->op, shape.skip->rank));
  }
  if (kStep[shape.skip->op % kStepOps].scope == Scope::world) {
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
    const Scope scope = kStep[op % kStepOps].scope;
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
