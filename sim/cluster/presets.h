// Presets: clusters of well-known nodes, one node each.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "sim/cluster/cluster.h"

namespace ddx::sim {

// "dgx-a100" "dgx-h100" "dgx-h200" "dgx-b200" "gb200-nvl72" "mi300x" "tcp"; nullopt for any other name.
std::optional<Cluster> preset(std::string_view name);
std::vector<std::string_view> preset_names();

}  // namespace ddx::sim
