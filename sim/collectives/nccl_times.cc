// The constants of nccl_time.h, as the fit gives them: build/release/tests/accuracy/ddx_accuracy --constants.
// By generation: volta, ampere, hopper, blackwell, cdna3; by network: infiniband, roce, efa1, efa, tcpx, tcpxo,
// tcp.
#include "sim/collectives/nccl_time.h"

namespace ddx::sim {

const NcclTimes& nccl_times() {
  static const NcclTimes kTimes{
      .launch = {30.95, 38.44, 17.68, 33.52, 20.09},
      .ring_share = {1.136, 0.98, 1.021, 0.9631, 0.94},
      .ring_loop = {0.01912, 0.4504, 0.05995, 0.1358, 0.1},
      .ring_fill = {5.777, 3.965, 4.992, 1.732, 5},
      .ring_ranks_power = 0.951,
      .ring_power = 0.221,
      .rooted_fill = 0.8296,
      .nvls_share = {0.64, 0.64, 0.6464, 0.567, 0.64},
      .nvls_heads = 0.5361,
      .nvls_cap = {1.1, 1.1, 1.1, 0.9398, 1.1},
      .nvls_fill = {20, 20, 17.17, 22.9, 20},
      .nvls_ranks_power = 0.4573,
      .nvls_power = 0.3128,
      .tree_share = 0.641,
      .tree_fill = 11.37,
      .p2p_launch = 17.3,
      .p2p_share = 0.897,
      .channel = {6.424, 19.25, 29.33},
      .nic_share = {0.96, 0.9172, 0.854, 0.97, 0.72, 0.9093, 0.8},
      .ring_nic_share = {0.925, 0.832, 0.85, 0.93, 0.731, 0.9503, 0.8},
      .hop = {5.318, 16.57, 73.81, 26, 960.2, 62.46, 30},
      .net_fill = {32.99, 16.48, 697.5, 60, 500, 612.8, 800},
      .net_power = 0.1962,
      .slow_knee = 12.99,
      .slow_power = 0.04863,
      .between_cap = {0.9, 0.9, 1.093, 0.9298, 0.9},
      .unforced_share = 0.9503,
      .ring_net_fill = 2.605,
      .domain_fill = 358.8,
      .domain_power = 0.1984,
  };
  return kTimes;
}

}  // namespace ddx::sim
