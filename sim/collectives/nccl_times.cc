// The constants of nccl_time.h, as the fit gives them: build/release/tests/accuracy/ddx_accuracy --constants.
// By generation: volta, ampere, hopper, blackwell, cdna3; by network: infiniband, roce, efa1, efa, tcpx, tcpxo,
// tcp.
#include "sim/collectives/nccl_time.h"

namespace ddx::sim {

const NcclTimes& nccl_times() {
  static const NcclTimes kTimes{
      .launch = {30.9, 38.35, 26.39, 33.59, 20.09},
      .ring_share = {1.136, 0.9804, 1.02, 0.9631, 0.931},
      .ring_loop = {0.01912, 0.4474, 0.06001, 0.1358, 0.1},
      .ring_fill = {6.074, 4.207, 2.538, 1.819, 5},
      .ring_ranks_power = 0.9176,
      .ring_power = 0.2233,
      .rooted_fill = 0.8331,
      .nvls_share = {0.64, 0.64, 0.6451, 0.5691, 0.64},
      .nvls_heads = 0.535,
      .nvls_cap = {1.1, 1.1, 1.1, 0.94, 1.1},
      .nvls_fill = {20, 20, 12.16, 21.37, 20},
      .nvls_ranks_power = 0.4243,
      .nvls_power = 0.3339,
      .tree_share = 0.6415,
      .tree_fill = 11.31,
      .p2p_launch = 17.4,
      .p2p_share = 0.8969,
      .channel = {6.425, 19.25, 29.33},
      .nic_share = {0.96, 0.9168, 0.8537, 0.99, 0.72, 0.9068, 0.8},
      .ring_nic_share = {0.925, 0.8225, 0.85, 0.93, 0.7304, 0.9494, 0.8},
      .hop = {4.935, 14.72, 73.64, 26, 952.6, 57.41, 30},
      .net_fill = {38.98, 13.68, 688.7, 60, 500, 673.1, 800},
      .net_power = 0.2076,
      .slow_knee = 12.59,
      .slow_power = 0.04903,
      .between_cap = {0.9, 0.9, 1.082, 0.931, 0.9},
      .unforced_share = 0.9648,
      .ring_net_fill = 2.624,
      .domain_fill = 360,
  };
  return kTimes;
}

}  // namespace ddx::sim
