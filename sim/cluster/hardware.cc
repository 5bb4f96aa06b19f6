#include "sim/cluster/hardware.h"

#include <array>

namespace ddx::sim {
namespace {

// Peaks as the vendors publish them (NVLink: half of what is printed, which counts both directions), collected with
// measured figures in stas00/ml-engineering:network/README.md and compute/accelerator/README.md@744d01e. xGMI: 7 links
// of 64 GB/s (MI300X, MI325X) or 76.5 (MI350X, MI355X). The H800's NVLink: 8 of the H100's 18 links.
constexpr std::array kModels{
    GpuModel{"V100", GpuArch::volta, 125, 900, 150, Wiring::cube_mesh, false, 12.5},
    GpuModel{"A100", GpuArch::ampere, 312, 2000, 300, Wiring::switched, false, 25},
    GpuModel{"A800", GpuArch::ampere, 312, 2000, 200, Wiring::switched, false, 25},
    GpuModel{"H100", GpuArch::hopper, 989, 3350, 450, Wiring::switched, true, 50},
    GpuModel{"H800", GpuArch::hopper, 989, 3350, 200, Wiring::switched, true, 50},
    GpuModel{"H200", GpuArch::hopper, 989, 4800, 450, Wiring::switched, true, 50},
    GpuModel{"GH200", GpuArch::hopper, 989, 4800, 450, Wiring::switched, true, 50},
    GpuModel{"B200", GpuArch::blackwell, 2250, 8000, 900, Wiring::switched, true, 50},
    GpuModel{"B300", GpuArch::blackwell, 2250, 8000, 900, Wiring::switched, true, 100},
    GpuModel{"GB200", GpuArch::blackwell, 2500, 8000, 900, Wiring::switched, true, 50},
    GpuModel{"GB300", GpuArch::blackwell, 2500, 8000, 900, Wiring::switched, true, 100},
    GpuModel{"MI300X", GpuArch::cdna3, 1307, 5300, 448, Wiring::mesh, false, 50},
    GpuModel{"MI325X", GpuArch::cdna3, 1300, 6000, 448, Wiring::mesh, false, 50},
    GpuModel{"MI350X", GpuArch::cdna3, 2300, 8000, 535.5, Wiring::mesh, false, 50},
    GpuModel{"MI355X", GpuArch::cdna3, 2500, 8000, 535.5, Wiring::mesh, false, 50},
};

constexpr Picos kMicro = 1'000'000;

}  // namespace

std::span<const GpuModel> gpu_models() { return kModels; }

const GpuModel* find_gpu_model(std::string_view text) {
  const GpuModel* found = nullptr;
  for (const GpuModel& model : kModels) {
    if (text.find(model.name) == std::string_view::npos) continue;
    if (found == nullptr || model.name.size() > found->name.size()) found = &model;
  }
  return found;
}

Gpu gpu_of(const GpuModel& model) {
  Gpu gpu;
  gpu.name = std::string(model.name);
  gpu.arch = model.arch;
  if (model.bf16_tflops > 0) gpu.bf16_flops = model.bf16_tflops * 1e12;
  if (model.memory_gbps > 0) gpu.memory_bytes_per_second = model.memory_gbps * 1e9;
  return gpu;
}

// Of a step of a ring over NVLink and over PCIe with the LL protocol, NCCL's own estimate (NVIDIA/nccl:src/graph/
// tuning.cc@5067397c); xGMI as NVLink.
Picos local_latency(Wiring wiring) { return wiring == Wiring::pcie ? kMicro : kMicro * 6 / 10; }

// InfiniBand: half of a round trip through one switch (2 us); EFA and GPUDirect-TCP: what the smallest collective of
// two nodes takes, over its two hops (65, 161, 123, 940 us for EFA, its first generation, TCPXO, TCPX); kernel TCP: the
// middle of 10 to 30 us one way.
Picos network_latency(Fabric fabric) {
  switch (fabric) {
    case Fabric::infiniband: return kMicro;
    case Fabric::roce: return kMicro * 2;
    case Fabric::efa: return kMicro * 25;
    case Fabric::efa1: return kMicro * 60;
    case Fabric::tcpxo: return kMicro * 50;
    case Fabric::tcpx: return kMicro * 470;
    case Fabric::tcp: return kMicro * 20;
  }
  return kMicro;
}

}  // namespace ddx::sim
