// Which algorithm and protocol NCCL takes for a collective: its own tuning model (NVIDIA/nccl:src/graph/tuning.cc
// @5067397c). The times in it choose well and predict badly (35 % off between 1 and 16 MiB): for times see nccl_time.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/cluster/cluster.h"
#include "sim/collectives/nccl_constants.h"
#include "sim/collectives/work.h"

namespace ddx::sim {

// What was set by hand (NCCL_ALGO, NCCL_PROTO, NCCL_NVLS_ENABLE=0). `channels` is as a tuner plugin sets them: behind
// the choice, which does not know of it.
struct NcclForced {
  std::optional<NcclAlgorithm> algorithm = std::nullopt;
  std::optional<NcclProtocol> protocol = std::nullopt;
  std::optional<std::uint32_t> channels = std::nullopt;
  bool nvls = true;
  bool operator==(const NcclForced&) const = default;
};

struct NcclCandidate {
  NcclAlgorithm algorithm = NcclAlgorithm::ring;
  NcclProtocol protocol = NcclProtocol::simple;
  double bandwidth = 0;   // GB/s of the algorithm: Work::bytes over time
  double latency_us = 0;  // NCCL's estimate, as `time_us`
  double time_us = 0;
  std::string_view refusal;  // why it is not to be had; empty: it is
  bool enabled() const { return refusal.empty(); }
};

// All of them, the refused ones too, in NCCL's order: for those who ask for details. Empty for what is no collective of
// NCCL's (sends, all_to_all, gather, scatter are grouped sends; a barrier is the caller's all_reduce).
std::vector<NcclCandidate> nccl_candidates(const Cluster& cluster, const Placement& placement, const Work& work,
                                           const NcclForced& forced = {});

// The enabled candidate of the least time; nullopt where nccl_candidates() has none.
std::optional<NcclCandidate> nccl_choice(const Cluster& cluster, const Placement& placement, const Work& work,
                                         const NcclForced& forced = {});

}  // namespace ddx::sim
