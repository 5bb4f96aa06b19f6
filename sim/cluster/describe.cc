#include "sim/cluster/describe.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "base/units.h"
#include "sim/cluster/names.h"
#include "sim/cluster/units.h"

namespace ddx::sim {
namespace {

using Json = nlohmann::ordered_json;

std::string wiring_text(const Cluster& cluster) {
  switch (cluster.wiring) {
    case Wiring::switched: return cluster.nvls ? "switched, the switch reduces" : "switched";
    case Wiring::mesh: return "one link from each to each other";
    case Wiring::cube_mesh: return "a cube mesh";
    case Wiring::pcie: return "PCIe";
  }
  return "";
}

std::string local_line(const Cluster& cluster) {
  std::string text = fmt::format("\nin a node: {} a rank, {}, {}", format_rate(cluster.local.bytes_per_second),
                                 format_time(cluster.local.latency), wiring_text(cluster));
  if (cluster.domain_nodes > 1) text += fmt::format("; the same within {} nodes", cluster.domain_nodes);
  return text;
}

std::string network_line(const Cluster& cluster) {
  std::string text = fmt::format("\nbetween nodes: {} x {}, {}, {}{}", cluster.nics_per_node,
                                 format_rate(cluster.network.bytes_per_second), format_time(cluster.network.latency),
                                 name_of(cluster.fabric), cluster.rails ? ", one rail a NIC" : "");
  if (cluster.sharp) text += ", its switches reduce";
  if (cluster.nodes_per_leaf > 0) {
    text += fmt::format("; leaves of {}, oversubscribed {:g} to 1", counted(cluster.nodes_per_leaf, "node", "nodes"),
                        cluster.oversubscription);
    if (cluster.spine_latency > 0) text += fmt::format(", {} more across", format_time(cluster.spine_latency));
  }
  return text;
}

Json gpu_json(const Gpu& gpu) {
  Json json{{"name", gpu.name}, {"arch", name_of(gpu.arch)}};
  if (gpu.bf16_flops) json["bf16"] = format_flops(*gpu.bf16_flops);
  if (gpu.fp8_flops) json["fp8"] = format_flops(*gpu.fp8_flops);
  if (gpu.tf32_flops) json["tf32"] = format_flops(*gpu.tf32_flops);
  if (gpu.fp32_flops) json["fp32"] = format_flops(*gpu.fp32_flops);
  if (gpu.memory_bytes_per_second) {
    json["memory"] = format_rate(static_cast<std::uint64_t>(*gpu.memory_bytes_per_second));
  }
  return json;
}

Json network_json(const Cluster& cluster) {
  Json json{{"fabric", name_of(cluster.fabric)},
            {"rate", format_rate(cluster.network.bytes_per_second)},
            {"latency", format_time(cluster.network.latency)},
            {"nics_per_node", cluster.nics_per_node},
            {"rails", cluster.rails},
            {"sharp", cluster.sharp}};
  if (cluster.nodes_per_leaf > 0) {
    json["nodes_per_leaf"] = cluster.nodes_per_leaf;
    json["oversubscription"] = cluster.oversubscription;
    json["spine_latency"] = format_time(cluster.spine_latency);
  }
  return json;
}

}  // namespace

std::string describe(const Cluster& cluster) {
  if (cluster.flat) {
    return fmt::format("{}: {}, each with a port of {} to one switch, {} a message", cluster.name,
                       counted(cluster.ranks(), "rank", "ranks"), format_rate(cluster.network.bytes_per_second),
                       format_time(cluster.network.latency));
  }
  std::string text = fmt::format("{}: {} of {}", cluster.name, counted(cluster.nodes, "node", "nodes"),
                                 counted(cluster.ranks_per_node, "rank", "ranks"));
  if (!cluster.gpu.name.empty()) text += fmt::format(", {} ({})", cluster.gpu.name, name_of(cluster.gpu.arch));
  text += fmt::format(", {}", name_of(cluster.library));
  if (cluster.ranks_per_node * cluster.domain_nodes > 1) text += local_line(cluster);
  if (cluster.network.bytes_per_second > 0) text += network_line(cluster);
  return text;
}

std::string lacks_network(const Cluster& cluster, std::uint64_t ranks) {
  const std::uint64_t nodes = cluster.nodes_for(ranks);
  if (cluster.flat || cluster.network.bytes_per_second > 0 || nodes <= cluster.domain_nodes) return "";
  return fmt::format(
      "{} ranks need {} nodes, and for the network between nodes {} has no figure; what one node does says nothing of "
      "several. Add what its NICs have to the cluster file, such as \"network\": {{\"rate\": \"400Gb/s\", "
      "\"nics_per_node\": {}}}",
      ranks, nodes, cluster.name.empty() ? "the cluster" : cluster.name, cluster.ranks_per_node);
}

std::string cluster_json(const Cluster& cluster) {
  Json json{{"name", cluster.name}, {"nodes", cluster.nodes}};
  if (cluster.flat) {
    json["library"] = name_of(cluster.library);
    json["flat"] =
        fmt::format("{},{}", format_rate(cluster.network.bytes_per_second), format_time(cluster.network.latency));
    return json.dump(2, ' ', true, Json::error_handler_t::replace);
  }
  json["ranks_per_node"] = cluster.ranks_per_node;
  if (cluster.gpu.arch != GpuArch::none) json["gpu"] = gpu_json(cluster.gpu);
  json["library"] = name_of(cluster.library);
  if (cluster.local.bytes_per_second > 0) {
    json["local"] = Json{{"rate", format_rate(cluster.local.bytes_per_second)},
                         {"latency", format_time(cluster.local.latency)},
                         {"wiring", name_of(cluster.wiring)},
                         {"nvls", cluster.nvls},
                         {"domain_nodes", cluster.domain_nodes}};
  }
  if (cluster.network.bytes_per_second > 0) json["network"] = network_json(cluster);
  return json.dump(2, ' ', true, Json::error_handler_t::replace);
}

}  // namespace ddx::sim
