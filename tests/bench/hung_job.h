// A made-up training job, as large as one likes, and the dumps that its flight recorders leave: tensor-parallel groups
// of 8 neighbours, data-parallel groups across them, and the world. One rank may skip one collective; the dumps then
// say what a real job's would: complete up to the hang, scheduled from there to where the host waits.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ddx::bench {

enum class Scope : std::uint8_t { world, tensor, data };
constexpr std::size_t kScopes = 3;
constexpr std::uint32_t kTensorRanks = 8;
constexpr std::uint32_t kStepOps = 20;  // then the host waits for the loss

// Rank `rank` leaves out operation `op` (from 0, counted over all three of its groups).
struct Skip {
  std::uint32_t rank = 0;
  std::uint32_t op = 0;
};

struct JobShape {
  std::uint32_t ranks = 1024;  // a multiple of 8
  std::uint32_t ops = 2000;    // of each rank; with a skip the last are those of the step that hangs
  std::optional<Skip> skip;
};

// One operation of the step that all ranks repeat.
struct StepOp {
  Scope scope;
  std::string_view name;            // as recorded: "nccl:all_reduce"
  std::string_view type;            // "BFloat16"
  std::array<std::int64_t, 2> in;   // input shape; second 0: one dimension
  std::array<std::int64_t, 2> out;  // output shape
};
class HungJob {
 public:
  // Throws ddx::Error where the shape is none that this job can have.
  explicit HungJob(const JobShape& shape);

  const JobShape& shape() const { return shape_; }
  const StepOp& step_op(std::uint32_t op) const { return step_[op % kStepOps]; }
  std::uint32_t ops() const { return ops_; }  // that a healthy rank enqueued
  bool skips(std::uint32_t rank, std::uint32_t op) const;
  bool completes(std::uint32_t rank, std::uint32_t op) const { return op < stuck_at_[rank]; }

  std::string group_name(std::uint32_t rank, Scope scope) const;
  std::vector<std::uint32_t> group_members(std::uint32_t rank, Scope scope) const;

 private:
  std::uint32_t group_index(std::uint32_t rank, Scope scope) const;
  void run_to_the_hang();

  JobShape shape_;
  std::array<StepOp, kStepOps> step_;
  std::uint32_t ops_ = 0;
  std::vector<std::uint32_t> stuck_at_;  // by rank: the first operation that its device never ends
};

// The dump of one rank: version 2.10, 20 frames a call, in the bytes that PyTorch 2.13's own pickler writes.
std::string pickle_dump(const HungJob& job, std::uint32_t rank);
// The same as JSON, which holds no frames.
std::string json_dump(const HungJob& job, std::uint32_t rank);

}  // namespace ddx::bench
