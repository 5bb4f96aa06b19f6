// The constants of nccl_time.h, as the fit gives them: build/release/tests/accuracy/ddx_accuracy --constants.
// By generation: volta, ampere, hopper, blackwell, cdna3; by network: infiniband, roce, efa1, efa, tcpx, tcpxo,
// tcp.
#include "sim/collectives/nccl_time.h"

namespace ddx::sim {

const NcclTimes& nccl_times() {
  static const NcclTimes kTimes{
      .launch = {30.92, 38.39, 17.6, 33.57, 20.09},
      .ring_share = {1.136, 0.9801, 1.02, 0.9631, 0.94},
      .ring_loop = {0.01912, 0.4493, 0.05998, 0.1358, 0.1},
      .ring_fill = {5.896, 4.061, 3.718, 1.763, 5},
      .ring_ranks_power = 0.9383,
      .ring_power = 0.2212,
      .rooted_fill = 0.8312,
      .nvls_share = {0.64, 0.64, 0.6457, 0.5687, 0.64},
      .nvls_heads = 0.5347,
      .nvls_cap = {1.1, 1.1, 1.1, 0.94, 1.1},
      .nvls_fill = {20, 20, 15.5, 21.59, 20},
      .nvls_ranks_power = 0.4289,
      .nvls_power = 0.3308,
      .tree_share = 0.6411,
      .tree_fill = 11.34,
      .p2p_launch = 17.34,
      .p2p_share = 0.8969,
      .channel = {6.425, 19.25, 29.33},
      .nic_share = {0.96, 0.9171, 0.8539, 0.97, 0.72, 0.9095, 0.8},
      .ring_nic_share = {0.925, 0.832, 0.85, 0.93, 0.731, 0.9502, 0.8},
      .hop = {5.359, 16.58, 73.8, 26, 960.4, 62.63, 30},
      .net_fill = {33.59, 16.55, 696.5, 60, 500, 614.7, 800},
      .net_power = 0.1939,
      .slow_knee = 12.95,
      .slow_power = 0.04858,
      .between_cap = {0.9, 0.9, 1.093, 0.9306, 0.9},
      .unforced_share = 0.9503,
      .ring_net_fill = 2.686,
      .domain_fill = 360.3,
      .domain_power = 0.1983,
  };
  return kTimes;
}

}  // namespace ddx::sim
