// Cluster: the hardware that a run is predicted for. All rates are decimal bytes a second and hold for one direction;
// every link is full duplex.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/engine/picos.h"

namespace ddx::sim {

struct LinkSpec {
  std::uint64_t bytes_per_second = 0;
  Picos latency = 0;
  bool operator==(const LinkSpec&) const = default;
};

// By compute capability, as NCCL's tuning tables index it; `none`: hosts without GPUs.
enum class GpuArch : std::uint8_t { none, volta, ampere, hopper, blackwell, cdna3 };

// Whose collectives run: decides the algorithms and how one is chosen.
enum class Library : std::uint8_t { nccl, gloo, mpi };

// How the GPUs of a node hang together. `switched`: any pair at the full rate; `mesh`: one link from each to each
// other, so that fewer ranks have fewer links; `cube_mesh`: the eight GPUs of a DGX-1; `pcie`: through the host.
enum class Wiring : std::uint8_t { switched, mesh, cube_mesh, pcie };

// What the NICs speak: decides what a message costs beyond its bytes. `efa1`: the first generation (P4d), which lacks
// GPU-initiated sends; `tcpx`, `tcpxo`: GPUDirect over TCP; `tcp`: through the kernel.
enum class Fabric : std::uint8_t { infiniband, roce, efa1, efa, tcpx, tcpxo, tcp };

struct Gpu {
  std::string name;  // "H100"; empty: none
  GpuArch arch = GpuArch::none;
  // Dense peaks, in operations a second; of GPUs without bf16 that of fp16.
  std::optional<double> bf16_flops;
  std::optional<double> fp8_flops;
  std::optional<double> tf32_flops;
  std::optional<double> fp32_flops;  // without matrix units
  std::optional<double> memory_bytes_per_second;
  bool operator==(const Gpu&) const = default;
};

struct Cluster {
  std::string name;
  std::uint32_t nodes = 1;
  std::uint32_t ranks_per_node = 1;  // GPUs, or processes where there are none
  Gpu gpu;
  Library library = Library::nccl;

  // A flat network: every rank has one port of `network` to one switch that never holds it up; nodes do not matter.
  bool flat = false;

  LinkSpec local;  // of one rank to the others of its node (NVLink, PCIe, memory)
  Wiring wiring = Wiring::switched;
  bool nvls = false;               // NVSwitch reduces in the network
  std::uint32_t domain_nodes = 1;  // nodes in one NVLink domain (GB200 NVL72: 18); local holds within it
  LinkSpec network;                // one NIC, or one port where flat
  Fabric fabric = Fabric::infiniband;
  bool sharp = false;  // the network's switches reduce
  std::uint32_t nics_per_node = 1;
  bool rails = true;                 // NIC i of every node is on rail i
  std::uint32_t nodes_per_leaf = 0;  // 0: one switch holds all nodes
  double oversubscription = 1;       // of a leaf: its nodes' bandwidth over its uplinks'
  Picos spine_latency = 0;           // added between nodes of different leaves

  bool operator==(const Cluster&) const = default;
  std::uint64_t ranks() const { return std::uint64_t{nodes} * ranks_per_node; }
  // As many as so many ranks fill.
  std::uint64_t nodes_for(std::uint64_t count) const { return (count + ranks_per_node - 1) / ranks_per_node; }
};

}  // namespace ddx::sim
