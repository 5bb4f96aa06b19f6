// The constants of nccl_time.h, as the fit gives them: build/release/tests/accuracy/ddx_accuracy --constants.
// By generation: volta, ampere, hopper, blackwell, cdna3; by network: infiniband, roce, efa1, efa, tcpx, tcpxo,
// tcp.
#include "sim/collectives/nccl_time.h"

namespace ddx::sim {

const NcclTimes& nccl_times() {
  static const NcclTimes kTimes{
      .launch = {31.09, 38.52, 26.52, 35.35, 20.09},
      .ring_share = {1.136, 0.9813, 1.02, 0.962, 0.931},
      .ring_loop = {0.01913, 0.4484, 0.06, 0.1358, 0.1},
      .ring_fill = {5.905, 4.072, 2.486, 2.338, 5},
      .ring_ranks_power = 0.9271,
      .ring_power = 0.2304,
      .rooted_fill = 0.8291,
      .nvls_share = {0.64, 0.64, 0.647, 0.5732, 0.64},
      .nvls_heads = 0.5291,
      .nvls_cap = {1.1, 1.1, 1.1, 0.9276, 1.1},
      .nvls_fill = {20, 20, 11.25, 18.66, 20},
      .nvls_power = 0.3726,
      .tree_share = 0.6418,
      .tree_fill = 10.1,
      .p2p_launch = 17.42,
      .p2p_share = 0.897,
      .channel_simple = 29.35,
      .channel_ll128 = 18.9,
      .nic_share = {0.96, 0.9168, 0.8537, 0.9545, 0.72, 0.9068, 0.8},
      .ring_nic_share = {0.925, 0.8225, 0.85, 0.93, 0.7306, 0.9499, 0.8},
      .hop = {4.907, 14.69, 73.56, 26, 952.3, 57.35, 30},
      .net_fill = {39.42, 13.62, 688.7, 70, 500, 673.1, 800},
      .net_power = 0.2093,
      .slow_knee = 12.6,
      .slow_power = 0.04903,
      .between_cap = {0.9, 0.9, 1.082, 0.9266, 0.9},
      .unforced_share = 0.965,
      .ring_net_fill = 2.521,
      .domain_fill = 588.1,
  };
  return kTimes;
}

}  // namespace ddx::sim
