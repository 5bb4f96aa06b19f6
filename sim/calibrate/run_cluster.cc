#include "sim/calibrate/run_cluster.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "sim/cluster/hardware.h"

namespace ddx::sim {
namespace {

bool says(std::string_view text, std::string_view word) { return text.find(word) != std::string_view::npos; }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The number that stands at `at`, and where it ends; nullopt where none does.
struct Number {
  std::uint32_t value = 0;
  std::size_t end = 0;
};
std::optional<Number> number_at(std::string_view text, std::size_t at) {
  Number number;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), number.value);
  if (error != std::errc() || number.value == 0 || number.value > 1'000'000) return std::nullopt;
  number.end = static_cast<std::size_t>(end - text.data());
  return number;
}

std::size_t skip_blanks(std::string_view text, std::size_t at) {
  while (at < text.size() && text[at] == ' ') ++at;
  return at;
}

// Whether "Gb", "GbE", "Gbps" or "G" for bits stands at `at`.
bool is_gigabit(std::string_view text, std::size_t at) {
  at = skip_blanks(text, at);
  return at < text.size() && text[at] == 'G' && text.substr(at, 2) != "GB" && text.substr(at, 3) != "GPU";
}

struct Nics {
  std::uint32_t count = 0;  // of one node
  double gigabits = 0;      // of one
};

// "8x400 Gb/s"; "400 Gb/s" alone counts one NIC a GPU.
std::optional<Nics> stated_nics(std::string_view text, std::uint32_t gpus) {
  std::optional<Nics> single;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!is_digit(text[at]) || (at > 0 && is_digit(text[at - 1]))) continue;
    const std::optional<Number> first = number_at(text, at);
    if (!first) continue;
    std::size_t next = skip_blanks(text, first->end);
    if (next < text.size() && text[next] == 'x') {
      next = skip_blanks(text, next + 1);
      const std::optional<Number> second = next < text.size() ? number_at(text, next) : std::nullopt;
      if (second && is_gigabit(text, second->end)) return Nics{first->value, double(second->value)};
    }
    if (!single && is_gigabit(text, first->end)) single = Nics{gpus, double(first->value)};
  }
  return single;
}

// "4 NICs".
std::optional<std::uint32_t> stated_count(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!is_digit(text[at]) || (at > 0 && is_digit(text[at - 1]))) continue;
    const std::optional<Number> number = number_at(text, at);
    if (number && text.substr(skip_blanks(text, number->end)).starts_with("NIC")) return number->value;
  }
  return std::nullopt;
}

// What is sold under a name; the first that fits. Sources: stas00/ml-engineering:network/README.md@744d01e,
// aws-samples/awsome-distributed-training, GoogleCloudPlatform/cluster-toolkit:examples/gke-*.
struct NicName {
  std::string_view name;
  Fabric fabric;
  std::uint32_t count;  // 0: one a GPU
  double gigabits;      // 0: as the GPU's reference node has
};
constexpr std::array kNics{
    NicName{"TCPXO", Fabric::tcpxo, 8, 200},
    NicName{"A3 Mega", Fabric::tcpxo, 8, 200},
    NicName{"TCPX", Fabric::tcpx, 4, 200},
    NicName{"A3 High", Fabric::tcpx, 4, 200},
    NicName{"A3 Ultra", Fabric::roce, 8, 400},
    NicName{"EFA v1", Fabric::efa1, 4, 100},
    NicName{"EFAv1", Fabric::efa1, 4, 100},
    NicName{"p4d", Fabric::efa1, 4, 100},
    NicName{"EFA v2", Fabric::efa, 32, 100},
    NicName{"EFAv2", Fabric::efa, 32, 100},
    NicName{"EFA v3", Fabric::efa, 16, 200},
    NicName{"EFAv3", Fabric::efa, 16, 200},
    NicName{"EFA", Fabric::efa, 0, 0},
    NicName{"RoCE", Fabric::roce, 0, 0},
    NicName{"XDR", Fabric::infiniband, 0, 800},
    NicName{"NDR", Fabric::infiniband, 0, 400},
    NicName{"HDR", Fabric::infiniband, 0, 200},
    NicName{"EDR", Fabric::infiniband, 0, 100},
    NicName{"InfiniBand", Fabric::infiniband, 0, 0},
    NicName{"IB", Fabric::infiniband, 0, 0},
    NicName{"CX-", Fabric::infiniband, 0, 0},
    NicName{"ConnectX", Fabric::infiniband, 0, 0},
    NicName{"GbE", Fabric::tcp, 0, 0},
    NicName{"Ethernet", Fabric::tcp, 0, 0},
    NicName{"TCP", Fabric::tcp, 0, 0},
    NicName{"socket", Fabric::tcp, 0, 0},
};

const NicName* nic_named(std::string_view text) {
  for (const NicName& nic : kNics) {
    if (says(text, nic.name)) return &nic;
  }
  return nullptr;
}

std::uint64_t rate(double gigabytes) { return static_cast<std::uint64_t>(std::llround(gigabytes * 1e9)); }

// False where nothing says what the network is.
bool set_network(const RunHardware& hardware, const GpuModel& model, Cluster& cluster) {
  const NicName* name = nic_named(hardware.nic);
  std::optional<Nics> nics = stated_nics(hardware.nic, hardware.gpus_per_node);
  if (name == nullptr && !nics) return false;
  if (!nics) nics = Nics{name->count, name->gigabits};
  if (nics->count == 0) nics->count = hardware.gpus_per_node;
  if (nics->gigabits == 0) nics->gigabits = model.nic_gbps * 8;
  if (const std::optional<std::uint32_t> count = stated_count(hardware.nic)) nics->count = *count;
  cluster.fabric = name != nullptr ? name->fabric : Fabric::infiniband;
  cluster.network = {rate(nics->gigabits / 8), network_latency(cluster.fabric)};
  cluster.nics_per_node = nics->count;
  return true;
}

// GB/s of PCIe x16 by generation of GPU.
double pcie_rate(GpuArch arch) {
  if (arch == GpuArch::volta) return 15.75;
  return arch == GpuArch::ampere ? 31 : 63;
}

void set_local(const RunHardware& hardware, const GpuModel& model, Cluster& cluster) {
  cluster.wiring = model.wiring;
  cluster.nvls = model.nvls;
  double gigabytes = local_gbps(model, hardware.gpus_per_node);
  const bool pcie = says(hardware.intra, "PCI") || (says(hardware.gpu, "PCI") && hardware.intra.empty());
  if (model.wiring == Wiring::cube_mesh && says(hardware.intra, "NVSwitch")) cluster.wiring = Wiring::switched;
  if (pcie && !says(hardware.intra, "NVLink")) {
    cluster.wiring = Wiring::pcie;
    cluster.nvls = false;
    gigabytes = pcie_rate(model.arch);
  }
  cluster.local = {rate(gigabytes), local_latency(cluster.wiring)};
}

// Nodes of one NVLink domain: "NVL72" over GPUs of a node; NVL72 is what the Grace-Blackwell GPUs are sold in.
std::uint32_t domain_nodes(const RunHardware& hardware) {
  std::uint32_t gpus = says(hardware.gpu, "GB200") || says(hardware.gpu, "GB300") ? 72 : 0;
  for (std::size_t at = hardware.intra.find("NVL"); at != std::string::npos; at = hardware.intra.find("NVL", at + 3)) {
    if (at + 3 >= hardware.intra.size() || !is_digit(hardware.intra[at + 3])) continue;
    if (const std::optional<Number> number = number_at(hardware.intra, at + 3)) gpus = number->value;
  }
  return std::max(1U, gpus / std::max(1U, hardware.gpus_per_node));
}

}  // namespace

RunCluster cluster_of(const RunHardware& hardware) {
  const GpuModel* model = find_gpu_model(hardware.gpu);
  if (model == nullptr) return {{}, hardware.gpu.empty() ? "the GPU is not stated" : "the GPU is not known"};
  RunCluster result;
  Cluster& cluster = result.cluster;
  cluster.name = hardware.gpu;
  cluster.nodes = hardware.nodes;
  cluster.ranks_per_node = hardware.gpus_per_node;
  cluster.gpu = gpu_of(*model);
  set_local(hardware, *model, cluster);
  cluster.domain_nodes = domain_nodes(hardware);
  const bool network = set_network(hardware, *model, cluster);
  if (!network && hardware.nodes > cluster.domain_nodes) result.unknown = "the network is not stated";
  return result;
}

NcclForced forced_of(const std::string& text, Cluster& cluster) {
  NcclForced forced;
  if (says(text, "NVLS_ENABLE=0") || says(text, "no SHARP")) forced.nvls = false;
  if (says(text, "IB SHARP")) cluster.sharp = true;
  if (says(text, "NVLink SHARP")) forced.algorithm = NcclAlgorithm::nvls;
  std::size_t begin = 0;
  while (begin < text.size()) {
    std::size_t end = text.find_first_of(" ,()/=+", begin);
    if (end == std::string::npos) end = text.size();
    const std::string_view word = std::string_view(text).substr(begin, end - begin);
    if (const auto algorithm = nccl_algorithm_from(word)) forced.algorithm = algorithm;
    for (const NcclProtocol protocol : {NcclProtocol::ll, NcclProtocol::ll128, NcclProtocol::simple}) {
      if (name_of(protocol) == word) forced.protocol = protocol;
    }
    if (!word.empty() && is_digit(word.front())) {
      const std::optional<Number> number = number_at(text, begin);
      if (number && std::string_view(text).substr(skip_blanks(text, number->end)).starts_with("channel")) {
        forced.channels = number->value;
      }
    }
    begin = end + 1;
  }
  return forced;
}

}  // namespace ddx::sim
