// Virtual ranks: a trace of few ranks laid over many.
//
// A group has one of two roles. Ranks of a `data` group do the same to different data: it grows with the number of
// replicas of the model (DDP, FSDP, the world). A `model` group holds the parts of one replica (tensor, pipeline,
// context or expert parallel): each replica has its own.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "traces/model/trace.h"

namespace ddx::sim {

enum class GroupRole : std::uint8_t { data, model };

struct RoleMap {
  std::map<std::string, GroupRole, std::less<>> by_name;  // names or descriptions of groups; wins over everything else
};

// What was taken for granted, one sentence each, for people.
using Assumptions = std::vector<std::string>;

// Gives every rank of the trace's world a record. A rank without one runs the program of a recorded rank that holds
// the same place in every group with sends, receives or roots; its groups are found among those that the trace names,
// or by the regular pattern of the recorded rank's (0,8,16,... of 64 ranks: stride 8). Does nothing where all are
// there. Throws Error where it cannot tell: which rank, which group, and what to record.
Assumptions lift(Trace& trace);

// Makes `world_size` ranks of the trace's world by replicas: rank j * W + r of W recorded ones does what rank r does.
// Groups of role `data` hold all replicas' members, in that order; those of role `model` stay within a replica. What a
// data group gathers or scatters in all stays as it is, so that each member's part shrinks. Throws Error where
// world_size is no multiple of W or the trace is not whole (lift it first).
//
// `Batch::fixed`: the replicas share the batch of the recorded job, so that each rank has activations of its part of it
// only: what model groups carry, and all sends and receives, shrink by the number of replicas (counts rounded up).
// Gradients and parameters, which data groups carry, do not.
enum class Batch : std::uint8_t { grows, fixed };
Assumptions replicate(Trace& trace, std::uint32_t world_size, const RoleMap& roles, Batch batch = Batch::grows);

// Whether `wanted` stands for it in a RoleMap: its name or description, or that without a number ("dp": dp0, dp_1).
bool is_named(const Trace& trace, const Communicator& communicator, std::string_view wanted);

// By what its name or description says ("dp", "fsdp", "tensor", "EXPERT_MODEL_PARALLEL_GROUP", ...), and
// where that tells nothing by size: the world is data. nullopt: neither tells.
std::optional<GroupRole> role_of(const Trace& trace, const Communicator& communicator, const RoleMap& roles);

}  // namespace ddx::sim
