// The cluster that a published run was made on, from the words that the run gives for its GPUs, links and NICs.
#pragma once

#include <cstdint>
#include <string>

#include "sim/cluster/cluster.h"
#include "sim/collectives/nccl_choice.h"

namespace ddx::sim {

struct RunHardware {
  std::string gpu;    // "H100-SXM5-80GB"
  std::string intra;  // "NVLink4+NVSwitch3", "NVLink5 NVL72 (one domain)"; empty: not stated
  std::string nic;    // "EFA v1 4x100 Gb/s (400 Gb/s per node)"; empty: not stated
  std::uint32_t nodes = 1;
  std::uint32_t gpus_per_node = 1;
};

struct RunCluster {
  Cluster cluster;
  std::string unknown;  // why there is none; empty: there is
};
RunCluster cluster_of(const RunHardware& hardware);

// "Ring with 4 channels", "NCCL_NVLS_ENABLE=0 (Ring)", "NVLSTree", "NVLink SHARP", "no SHARP"; sets cluster.sharp on
// "IB SHARP". What is not understood is left to NCCL's choice.
NcclForced forced_of(const std::string& text, Cluster& cluster);

}  // namespace ddx::sim
