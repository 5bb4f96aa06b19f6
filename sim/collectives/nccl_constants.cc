#include "sim/collectives/nccl_constants.h"

#include <bit>

namespace ddx::sim {
namespace {

constexpr std::array<std::string_view, kNcclAlgorithms> kAlgorithms{
    "Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"};
constexpr std::array<std::string_view, kNcclAlgorithms> kPrograms{
    "tree", "ring", "collnet-direct", "collnet-chain", "nvls", "nvlstree", "pat"};
constexpr std::array<std::string_view, kNcclProtocols> kProtocols{"LL", "LL128", "Simple"};

using PerProtocol = std::array<double, kNcclProtocols>;
using PerAlgorithm = std::array<PerProtocol, kNcclAlgorithms>;

constexpr PerAlgorithm kBase{{{6.8, 14, 8.4}, {6.6, 14, 8.4}, {}, {}, {}, {}, {8, 8, 8}}};
constexpr std::array<PerAlgorithm, 3> kHops{
    PerAlgorithm{{{.6, 1.25, 4}, {.6, 1.9, 3.4}, {0, 0, 3.7}, {0, 0, 2.8}, {0, 0, 25}, {0, 0, 25}, {0, 0, 4}}},
    PerAlgorithm{{{1, 1.9, 4}, {1, 2.5, 5.7}, {0, 0, 3.7}, {0, 0, 2.8}, {}, {}, {0, 0, 4}}},
    PerAlgorithm{{{5, 8.5, 14}, {2.7, 4, 14}, {0, 0, 31}, {0, 0, 30}, {0, 0, 18}, {0, 0, 20.9}, {0, 0, 14}}},
};

using PerNodes = std::array<double, 3>;
using PerRow = std::array<PerNodes, 4>;
constexpr PerRow kLlMax{{{39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}, {282, 90, 70}}};
constexpr PerRow kTreeLl128{{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {55.6, 31.67, 20}}};
constexpr PerRow kTree{{{26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {70, 42.8, 24}}};
constexpr PerRow kNvlsTree{{{26.5, 18.5, 10}, {24, 23.6, 17.8}, {0, 57.7, 45.5}, {0, 96, 80}}};
constexpr std::array<double, 4> kRingLl128{20, 20, 36.7, 40};
constexpr std::array<double, 4> kNvlsEfficiency{0, 0, .85, .74};
constexpr std::array<double, 4> kLinkSpeed{20, 20, 20.6, 40.1};
constexpr std::array<double, 4> kLinkPeak{25, 25, 25, 50};

constexpr std::size_t kFactors = 24;
constexpr std::array<std::array<double, kFactors>, kNcclProtocols> kTreeFactor{{
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9},
}};

constexpr std::array<double, 13> kIntraOld{40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
constexpr std::array<double, 9> kIntraHopper{60, 50, 40, 30, 24, 20, 15, 12, 6};
constexpr std::array<double, 13> kIntraBlackwell{90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18, 12};
constexpr std::array<double, 14> kInterOld{48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 4, 1.2};
constexpr std::array<double, 14> kInterHopper{48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 1.2};
constexpr std::array<double, 11> kInterBlackwell{96, 86, 80, 48, 45, 42, 24, 20, 12, 6, 1.2};

std::size_t index(NcclRow row) { return static_cast<std::size_t>(row); }
std::size_t index(NcclAlgorithm algorithm) { return static_cast<std::size_t>(algorithm); }
std::size_t index(NcclProtocol protocol) { return static_cast<std::size_t>(protocol); }
double at(const PerRow& table, NcclRow row, std::uint32_t nodes) {
  return table.at(index(row)).at(nodes <= 1 ? 0 : nodes == 2 ? 1 : 2);
}

}  // namespace

std::string_view name_of(NcclAlgorithm algorithm) { return kAlgorithms.at(index(algorithm)); }
std::string_view program_of(NcclAlgorithm algorithm) { return kPrograms.at(index(algorithm)); }
std::string_view name_of(NcclProtocol protocol) { return kProtocols.at(index(protocol)); }

std::optional<NcclAlgorithm> nccl_algorithm_from(std::string_view name) {
  for (std::size_t i = 0; i < kAlgorithms.size(); ++i) {
    if (kAlgorithms.at(i) == name) return static_cast<NcclAlgorithm>(i);
  }
  return std::nullopt;
}

NcclRow nccl_row(GpuArch arch) {
  switch (arch) {
    case GpuArch::none:
    case GpuArch::volta: return NcclRow::volta;
    case GpuArch::ampere:
    case GpuArch::cdna3: return NcclRow::ampere;
    case GpuArch::hopper: return NcclRow::hopper;
    case GpuArch::blackwell: return NcclRow::blackwell;
  }
  return NcclRow::volta;
}

double nccl_base_latency(NcclAlgorithm algorithm, NcclProtocol protocol) {
  return kBase.at(index(algorithm)).at(index(protocol));
}
double nccl_hop_latency(NcclHop hop, NcclAlgorithm algorithm, NcclProtocol protocol) {
  return kHops.at(static_cast<std::size_t>(hop)).at(index(algorithm)).at(index(protocol));
}

double nccl_ll_max(NcclRow gpu, std::uint32_t nodes) {
  // Between nodes the processor decides: the first rows stand for Intel and for AMD, which Ampere's reference node has.
  if (nodes > 1 && gpu != NcclRow::ampere) gpu = NcclRow::volta;
  return at(kLlMax, gpu, nodes);
}
double nccl_ring_ll128_channel(NcclRow gpu) { return kRingLl128.at(index(gpu)); }
double nccl_tree_ll128_channel(NcclRow gpu, std::uint32_t nodes) { return at(kTreeLl128, gpu, nodes); }
double nccl_tree_channel(NcclRow gpu, std::uint32_t nodes) { return at(kTree, gpu, nodes); }
double nccl_nvls_tree_channel(NcclRow gpu, std::uint32_t nodes) { return at(kNvlsTree, gpu, nodes); }
double nccl_nvls_efficiency(NcclRow gpu) { return kNvlsEfficiency.at(index(gpu)); }

double nccl_tree_factor(NcclProtocol protocol, std::uint64_t bytes) {
  const std::uint64_t lines = bytes / 64;
  if (lines == 0) return 1;
  const auto log = static_cast<std::size_t>(std::bit_width(lines) - 1);
  return log < kFactors - 1 ? kTreeFactor.at(index(protocol)).at(log) : 1;
}

std::span<const double> nccl_intra_speeds(NcclRow gpu) {
  if (gpu == NcclRow::hopper) return kIntraHopper;
  if (gpu == NcclRow::blackwell) return kIntraBlackwell;
  return kIntraOld;
}
std::span<const double> nccl_inter_speeds(NcclRow gpu) {
  if (gpu == NcclRow::hopper) return kInterHopper;
  if (gpu == NcclRow::blackwell) return kInterBlackwell;
  return kInterOld;
}
double nccl_link_speed(NcclRow gpu) { return kLinkSpeed.at(index(gpu)); }
double nccl_link_peak(NcclRow gpu) { return kLinkPeak.at(index(gpu)); }

}  // namespace ddx::sim
