#include "sim/cluster/names.h"

#include <fmt/format.h>

#include <array>

namespace ddx::sim {
namespace {

// In the order of the enumerators.
constexpr std::array<std::string_view, 6> kArchs{"none", "volta", "ampere", "hopper", "blackwell", "cdna3"};
constexpr std::array<std::string_view, 3> kLibraries{"nccl", "gloo", "mpi"};
constexpr std::array<std::string_view, 4> kWirings{"switched", "mesh", "cube_mesh", "pcie"};
constexpr std::array<std::string_view, 7> kFabrics{"infiniband", "roce", "efa1", "efa", "tcpx", "tcpxo", "tcp"};

template <typename Enum, std::size_t kCount>
std::optional<Enum> from(std::string_view name, const std::array<std::string_view, kCount>& names) {
  for (std::size_t i = 0; i < kCount; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(GpuArch arch) { return kArchs.at(static_cast<std::size_t>(arch)); }
std::string_view name_of(Library library) { return kLibraries.at(static_cast<std::size_t>(library)); }
std::string_view name_of(Wiring wiring) { return kWirings.at(static_cast<std::size_t>(wiring)); }
std::string_view name_of(Fabric fabric) { return kFabrics.at(static_cast<std::size_t>(fabric)); }

std::optional<GpuArch> gpu_arch_from(std::string_view name) { return from<GpuArch>(name, kArchs); }
std::optional<Library> library_from(std::string_view name) { return from<Library>(name, kLibraries); }
std::optional<Wiring> wiring_from(std::string_view name) { return from<Wiring>(name, kWirings); }
std::optional<Fabric> fabric_from(std::string_view name) { return from<Fabric>(name, kFabrics); }

std::string gpu_arch_names() { return fmt::format("{}", fmt::join(kArchs, ", ")); }
std::string library_names() { return fmt::format("{}", fmt::join(kLibraries, ", ")); }
std::string wiring_names() { return fmt::format("{}", fmt::join(kWirings, ", ")); }
std::string fabric_names() { return fmt::format("{}", fmt::join(kFabrics, ", ")); }

}  // namespace ddx::sim
