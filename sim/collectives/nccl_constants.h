// The tables of NCCL's tuning model (NVIDIA/nccl:src/graph/tuning.cc, topo.h and search.cc@5067397c, 2.30.7). They
// choose algorithm and protocol; what a call takes in fact is nccl_price()'s.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "sim/cluster/cluster.h"

namespace ddx::sim {

enum class NcclAlgorithm : std::uint8_t { tree, ring, collnet_direct, collnet_chain, nvls, nvls_tree, pat };
enum class NcclProtocol : std::uint8_t { ll, ll128, simple };
constexpr std::size_t kNcclAlgorithms = 7;
constexpr std::size_t kNcclProtocols = 3;

// "Tree" "Ring" "CollNetDirect" "CollNetChain" "NVLS" "NVLSTree" "PAT"; "LL" "LL128" "Simple".
std::string_view name_of(NcclAlgorithm algorithm);
std::string_view name_of(NcclProtocol protocol);
std::optional<NcclAlgorithm> nccl_algorithm_from(std::string_view name);
// As the registry of algorithms (algorithm.h) calls it: "collnet-direct".
std::string_view program_of(NcclAlgorithm algorithm);

// One row a generation; RCCL has tables of its own, and is taken for Ampere here.
enum class NcclRow : std::uint8_t { volta, ampere, hopper, blackwell };
NcclRow nccl_row(GpuArch arch);

// Microseconds.
double nccl_base_latency(NcclAlgorithm algorithm, NcclProtocol protocol);
enum class NcclHop : std::uint8_t { nvlink, pci, net };
double nccl_hop_latency(NcclHop hop, NcclAlgorithm algorithm, NcclProtocol protocol);

// GB/s; `nodes` is 1, 2 or more. 0: not there.
double nccl_ll_max(NcclRow gpu, std::uint32_t nodes);  // of the whole communicator
double nccl_ring_ll128_channel(NcclRow gpu);
double nccl_tree_ll128_channel(NcclRow gpu, std::uint32_t nodes);
double nccl_tree_channel(NcclRow gpu, std::uint32_t nodes);
double nccl_nvls_tree_channel(NcclRow gpu, std::uint32_t nodes);
double nccl_nvls_efficiency(NcclRow gpu);

// What a tree's bandwidth is multiplied by at this size.
double nccl_tree_factor(NcclProtocol protocol, std::uint64_t bytes);

// GB/s that one channel may have, descending, and what NCCL counts for one NVLink.
std::span<const double> nccl_intra_speeds(NcclRow gpu);
std::span<const double> nccl_inter_speeds(NcclRow gpu);
double nccl_link_speed(NcclRow gpu);
double nccl_link_peak(NcclRow gpu);  // of the same link, as it is sold

}  // namespace ddx::sim
