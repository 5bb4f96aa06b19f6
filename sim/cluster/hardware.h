// Published hardware: what one GPU model brings along, by name.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sim/cluster/cluster.h"

namespace ddx::sim {

struct GpuModel {
  std::string_view name;  // "H100"
  GpuArch arch = GpuArch::none;
  double bf16_tflops = 0;  // dense peak; 0: has none
  double memory_gbps = 0;  // GB/s
  double local_gbps = 0;   // to its node, GB/s in one direction
  Wiring wiring = Wiring::switched;
  bool nvls = false;
  double nic_gbps = 0;  // GB/s, one NIC a GPU: what its reference node is sold with
  // Dense peaks besides; 0: has none, or none is known.
  double fp8_tflops = 0;
  double tf32_tflops = 0;
  double fp32_tflops = 0;
};

std::span<const GpuModel> gpu_models();

// The model that `text` names, however it is decorated ("H100-SXM5-80GB", "NVIDIA GB200"): the longest of the known
// names that stands in it. nullptr where none does.
const GpuModel* find_gpu_model(std::string_view text);

Gpu gpu_of(const GpuModel& model);

// GB/s in one direction from a GPU to the others of a node of so many: of a mesh, a link to each of them.
double local_gbps(const GpuModel& model, std::uint32_t gpus);

// One way from GPU memory to GPU memory over such a link.
Picos local_latency(Wiring wiring);
Picos network_latency(Fabric fabric);

// The most that one NIC of that kind carries in one direction, bytes a second.
std::uint64_t fastest_nic(Fabric fabric);

}  // namespace ddx::sim
