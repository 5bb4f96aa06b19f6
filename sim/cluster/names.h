// The names of a cluster's kinds, as the cluster file has them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/cluster/cluster.h"

namespace ddx::sim {

std::string_view name_of(GpuArch arch);
std::string_view name_of(Library library);
std::string_view name_of(Wiring wiring);
std::string_view name_of(Fabric fabric);

std::optional<GpuArch> gpu_arch_from(std::string_view name);
std::optional<Library> library_from(std::string_view name);
std::optional<Wiring> wiring_from(std::string_view name);
std::optional<Fabric> fabric_from(std::string_view name);

// All names of a kind, for messages: "infiniband, roce, ...".
std::string gpu_arch_names();
std::string library_names();
std::string wiring_names();
std::string fabric_names();

}  // namespace ddx::sim
