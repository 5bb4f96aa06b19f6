#include "sim/cluster/presets.h"

#include <array>
#include <cmath>

#include "sim/cluster/hardware.h"

namespace ddx::sim {
namespace {

struct Preset {
  std::string_view name;
  std::string_view gpu;
  std::uint32_t nodes;
  std::uint32_t ranks_per_node;
  std::uint32_t domain_nodes;
  Fabric fabric;
};

// One NIC a GPU, at the rate that the GPU's reference node is sold with.
constexpr std::array kPresets{
    Preset{"dgx-a100", "A100", 1, 8, 1, Fabric::infiniband},
    Preset{"dgx-h100", "H100", 1, 8, 1, Fabric::infiniband},
    Preset{"dgx-h200", "H200", 1, 8, 1, Fabric::infiniband},
    Preset{"dgx-b200", "B200", 1, 8, 1, Fabric::infiniband},
    Preset{"gb200-nvl72", "GB200", 18, 4, 18, Fabric::infiniband},
    Preset{"mi300x", "MI300X", 1, 8, 1, Fabric::roce},
};

std::uint64_t rate(double gigabytes) { return static_cast<std::uint64_t>(std::llround(gigabytes * 1e9)); }

Cluster built(const Preset& preset) {
  const GpuModel& model = *find_gpu_model(preset.gpu);
  Cluster cluster;
  cluster.name = std::string(preset.name);
  cluster.nodes = preset.nodes;
  cluster.ranks_per_node = preset.ranks_per_node;
  cluster.gpu = gpu_of(model);
  cluster.local = {rate(model.local_gbps), local_latency(model.wiring)};
  cluster.wiring = model.wiring;
  cluster.nvls = model.nvls;
  cluster.domain_nodes = preset.domain_nodes;
  cluster.network = {rate(model.nic_gbps), network_latency(preset.fabric)};
  cluster.fabric = preset.fabric;
  cluster.nics_per_node = preset.ranks_per_node;
  return cluster;
}

// Hosts with one 100 Gb/s Ethernet port each, one process a host, through the kernel.
Cluster tcp_hosts() {
  Cluster cluster;
  cluster.name = "tcp";
  cluster.library = Library::gloo;
  cluster.fabric = Fabric::tcp;
  cluster.network = {rate(12.5), network_latency(Fabric::tcp)};
  cluster.local = cluster.network;  // processes of one host talk through the kernel as well
  cluster.rails = false;
  return cluster;
}

}  // namespace

std::optional<Cluster> preset(std::string_view name) {
  for (const Preset& known : kPresets) {
    if (known.name == name) return built(known);
  }
  if (name == "tcp") return tcp_hosts();
  return std::nullopt;
}

std::vector<std::string_view> preset_names() {
  std::vector<std::string_view> names;
  for (const Preset& known : kPresets) names.push_back(known.name);
  names.push_back("tcp");
  return names;
}

}  // namespace ddx::sim
