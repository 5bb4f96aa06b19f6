#include "sim/cluster/hardware.h"

#include <array>

namespace ddx::sim {
namespace {

// Peaks as the vendors publish them (NVLink: half of what is printed, which counts both directions), collected with
// measured figures in stas00/ml-engineering:network/README.md and compute/accelerator/README.md@744d01e. xGMI: 7 links
// of 64 GB/s (MI300X, MI325X) or 76.5 (MI350X, MI355X). The H800's NVLink: 8 of the H100's 18 links. Its arithmetic
// and the GH200's are the H100's, the A800's the A100's, the GB300's but for fp4 the GB200's: one die each. The V100's
// and the MI350X's peaks are of their data sheets. Rates of memory are those of the largest model: an A100 of 40 GB has
// 1555 GB/s, an H100 on PCIe 2000.
constexpr std::array kModels{
    GpuModel{"V100", GpuArch::volta, 125, 900, 150, Wiring::cube_mesh, false, 12.5, 0, 0, 15.7},
    GpuModel{"A100", GpuArch::ampere, 312, 2000, 300, Wiring::switched, false, 25, 0, 156, 19.5},
    GpuModel{"A800", GpuArch::ampere, 312, 2000, 200, Wiring::switched, false, 25, 0, 156, 19.5},
    GpuModel{"H100", GpuArch::hopper, 989, 3350, 450, Wiring::switched, true, 50, 1979, 494.5, 67},
    GpuModel{"H800", GpuArch::hopper, 989, 3350, 200, Wiring::switched, true, 50, 1979, 494.5, 67},
    GpuModel{"H200", GpuArch::hopper, 989, 4800, 450, Wiring::switched, true, 50, 1979, 494.5, 67},
    GpuModel{"GH200", GpuArch::hopper, 989, 4800, 450, Wiring::switched, true, 50, 1979, 494.5, 67},
    GpuModel{"B200", GpuArch::blackwell, 2250, 8000, 900, Wiring::switched, true, 50, 4500, 1125, 80},
    GpuModel{"B300", GpuArch::blackwell, 2250, 8000, 900, Wiring::switched, true, 100, 4500, 1125, 80},
    GpuModel{"GB200", GpuArch::blackwell, 2500, 8000, 900, Wiring::switched, true, 50, 5000, 1250, 80},
    GpuModel{"GB300", GpuArch::blackwell, 2500, 8000, 900, Wiring::switched, true, 100, 5000, 1250, 80},
    GpuModel{"MI300X", GpuArch::cdna3, 1307, 5300, 448, Wiring::mesh, false, 50, 2610, 653.7, 163.4},
    GpuModel{"MI325X", GpuArch::cdna3, 1300, 6000, 448, Wiring::mesh, false, 50, 2610, 653.7, 163.4},
    GpuModel{"MI350X", GpuArch::cdna3, 2300, 8000, 535.5, Wiring::mesh, false, 50, 4600, 0, 144.2},
    GpuModel{"MI355X", GpuArch::cdna3, 2500, 8000, 535.5, Wiring::mesh, false, 50, 5000, 0, 157.3},
};

constexpr Picos kMicro = 1'000'000;
constexpr std::uint32_t kMeshLinks = 7;  // of a GPU: one to each other of eight

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
  if (model.fp8_tflops > 0) gpu.fp8_flops = model.fp8_tflops * 1e12;
  if (model.tf32_tflops > 0) gpu.tf32_flops = model.tf32_tflops * 1e12;
  if (model.fp32_tflops > 0) gpu.fp32_flops = model.fp32_tflops * 1e12;
  if (model.memory_gbps > 0) gpu.memory_bytes_per_second = model.memory_gbps * 1e9;
  return gpu;
}

double local_gbps(const GpuModel& model, std::uint32_t gpus) {
  const bool fewer = model.wiring == Wiring::mesh && gpus > 1 && gpus <= kMeshLinks;
  return fewer ? model.local_gbps / kMeshLinks * (gpus - 1) : model.local_gbps;
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

// 800 Gb/s: ConnectX-8 (XDR), on Ethernet as well. EFA: 100 Gb/s on P4d, 400 on P6. GPUDirect over TCP: the NICs of A3.
std::uint64_t fastest_nic(Fabric fabric) {
  constexpr std::uint64_t kGigabit = 1'000'000'000 / 8;
  switch (fabric) {
    case Fabric::infiniband:
    case Fabric::roce:
    case Fabric::tcp: return 800 * kGigabit;
    case Fabric::efa: return 400 * kGigabit;
    case Fabric::efa1: return 100 * kGigabit;
    case Fabric::tcpx:
    case Fabric::tcpxo: return 200 * kGigabit;
  }
  return 800 * kGigabit;
}

}  // namespace ddx::sim
