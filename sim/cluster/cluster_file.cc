#include "sim/cluster/cluster_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "base/printable.h"
#include "sim/cluster/hardware.h"
#include "sim/cluster/names.h"
#include "sim/cluster/presets.h"
#include "sim/cluster/units.h"

namespace ddx::sim {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxFileBytes = 1U << 20;

// One object of the file: hands out its members by type and knows which were asked for, so that what nobody asked for
// is an error.
class Section {
 public:
  Section(const Json& json, std::string file, std::string path) : file_(std::move(file)), path_(std::move(path)) {
    if (!json.is_object()) fail("", "expected an object");
    json_ = &json;
  }

  [[noreturn]] void fail(std::string_view key, const std::string& expectation) const {
    const std::string at = where(key);
    throw Error(file_, {}, at.empty() ? expectation : fmt::format("'{}': {}", at, expectation));
  }

  bool has(const char* key) const { return json_->contains(key); }

  const Json* find(const char* key) {
    asked_.emplace_back(key);
    const auto found = json_->find(key);
    return found == json_->end() ? nullptr : &*found;
  }

  void read(const char* key, std::string& value) {
    if (const std::string* text = text_of(key)) value = printable_text(*text, 100);
  }
  void read(const char* key, bool& value) {
    const Json* found = find(key);
    if (found == nullptr) return;
    if (!found->is_boolean()) fail(key, "expected true or false");
    value = found->get<bool>();
  }
  void read(const char* key, std::uint32_t& value, std::uint32_t least) {
    const Json* found = find(key);
    if (found == nullptr) return;
    const bool fits =
        found->is_number_unsigned() && found->get<std::uint64_t>() >= least && found->get<std::uint64_t>() <= kMaxRanks;
    if (!fits) fail(key, fmt::format("expected a whole number from {} to {}", least, kMaxRanks));
    value = found->get<std::uint32_t>();
  }
  void read_at_least_one(const char* key, double& value) {
    const Json* found = find(key);
    if (found == nullptr) return;
    if (!found->is_number() || !(found->get<double>() >= 1 && found->get<double>() <= 1e6)) {
      fail(key, "expected a number from 1 on");
    }
    value = found->get<double>();
  }
  // What `parse` makes of a text.
  template <typename Value, typename Parse>
  void read_as(const char* key, Value& value, Parse parse) {
    const std::string* text = text_of(key);
    if (text == nullptr) return;
    try {
      value = parse(*text);
    } catch (const Error& error) {
      fail(key, error.what());
    }
  }
  template <typename Enum>
  void read_name(const char* key, Enum& value, std::optional<Enum> (*from)(std::string_view),
                 const std::string& names) {
    const std::string* text = text_of(key);
    if (text == nullptr) return;
    const std::optional<Enum> found = from(*text);
    if (!found) fail(key, fmt::format("'{}' is unknown; expected one of {}", printable_text(*text, 60), names));
    value = *found;
  }

  std::optional<Section> section(const char* key) {
    const Json* found = find(key);
    if (found == nullptr) return std::nullopt;
    return Section(*found, file_, where(key));
  }

  // To be called when all has been read.
  void refuse_unknown() const {
    for (const auto& item : json_->items()) {
      if (std::find(asked_.begin(), asked_.end(), item.key()) != asked_.end()) continue;
      fail(printable_text(item.key(), 60), fmt::format("unknown key; known here: {}", fmt::join(asked_, ", ")));
    }
  }

 private:
  std::string where(std::string_view key) const {
    if (path_.empty() || key.empty()) return path_ + std::string(key);
    return path_ + "." + std::string(key);
  }
  const std::string* text_of(const char* key) {
    const Json* found = find(key);
    if (found == nullptr) return nullptr;
    if (!found->is_string()) fail(key, "expected a text in quotes");
    return found->get_ptr<const std::string*>();
  }

  const Json* json_ = nullptr;
  std::string file_;
  std::string path_;
  std::vector<std::string> asked_;
};

std::uint64_t bytes_of(double gigabytes) { return static_cast<std::uint64_t>(std::llround(gigabytes * 1e9)); }

std::string known_gpus() {
  std::vector<std::string_view> names;
  for (const GpuModel& model : gpu_models()) names.push_back(model.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

// A model's name brings its node's links along; an object describes a GPU that is not known.
void read_gpu(Section& top, Cluster& cluster) {
  const Json* found = top.find("gpu");
  if (found == nullptr) return;
  if (found->is_string()) {
    const auto& name = found->get_ref<const std::string&>();
    const GpuModel* model = find_gpu_model(name);
    if (model == nullptr || model->name != name) {
      top.fail("gpu", fmt::format("'{}' is unknown; expected one of {}, or an object", printable_text(name, 60),
                                  known_gpus()));
    }
    cluster.gpu = gpu_of(*model);
    cluster.local = {bytes_of(model->local_gbps), local_latency(model->wiring)};
    cluster.wiring = model->wiring;
    cluster.nvls = model->nvls;
    return;
  }
  Section gpu = *top.section("gpu");
  Gpu read;
  gpu.read("name", read.name);
  gpu.read_name("arch", read.arch, gpu_arch_from, gpu_arch_names());
  const auto flops = [](const std::string& text) { return parse_flops(text); };
  gpu.read_as("bf16", read.bf16_flops, flops);
  gpu.read_as("fp8", read.fp8_flops, flops);
  gpu.read_as("tf32", read.tf32_flops, flops);
  gpu.read_as("fp32", read.fp32_flops, flops);
  gpu.read_as("memory", read.memory_bytes_per_second,
              [](const std::string& text) { return static_cast<double>(parse_rate(text)); });
  gpu.refuse_unknown();
  if (read.arch == GpuArch::none)
    gpu.fail("arch", "missing: it decides how collectives run; expected one of " + gpu_arch_names());
  cluster.gpu = read;
}

void read_link(Section& section, LinkSpec& link) {
  section.read_as("rate", link.bytes_per_second, parse_rate);
  section.read_as("latency", link.latency, parse_time);
}

void read_local(Section& top, Cluster& cluster) {
  std::optional<Section> local = top.section("local");
  if (!local) return;
  const bool rate_given = local->has("rate");
  if (!rate_given && cluster.local.bytes_per_second == 0) local->fail("rate", "missing: a rate, such as \"450GB/s\"");
  local->read_name("wiring", cluster.wiring, wiring_from, wiring_names());
  if (cluster.wiring != Wiring::switched && !local->has("nvls")) cluster.nvls = false;
  if (!local->has("latency")) cluster.local.latency = local_latency(cluster.wiring);
  read_link(*local, cluster.local);
  local->read("nvls", cluster.nvls);
  local->read("domain_nodes", cluster.domain_nodes, 1);
  local->refuse_unknown();
}

void read_network(Section& top, Cluster& cluster) {
  std::optional<Section> network = top.section("network");
  if (!network) return;
  network->read_name("fabric", cluster.fabric, fabric_from, fabric_names());
  if (network->has("fabric") || cluster.network.latency == 0) cluster.network.latency = network_latency(cluster.fabric);
  read_link(*network, cluster.network);
  if (cluster.network.bytes_per_second == 0) network->fail("rate", "missing: the rate of one NIC, such as \"400Gb/s\"");
  network->read("nics_per_node", cluster.nics_per_node, 1);
  network->read("rails", cluster.rails);
  network->read("sharp", cluster.sharp);
  network->read("nodes_per_leaf", cluster.nodes_per_leaf, 0);
  network->read_at_least_one("oversubscription", cluster.oversubscription);
  network->read_as("spine_latency", cluster.spine_latency, parse_time);
  network->refuse_unknown();
  if (cluster.nodes_per_leaf == 0 && (cluster.oversubscription > 1 || cluster.spine_latency > 0)) {
    network->fail("nodes_per_leaf", "missing: without leaves there is no oversubscription and no spine");
  }
}

// What no single key can be blamed for.
void check_whole(const Section& top, const Cluster& cluster) {
  if (cluster.ranks() > kMaxRanks) {
    top.fail("nodes", fmt::format("{} ranks in all; expected at most {}", cluster.ranks(), kMaxRanks));
  }
  if (cluster.nodes % cluster.domain_nodes != 0 && cluster.nodes > cluster.domain_nodes) {
    top.fail("nodes", fmt::format("{}, which is no multiple of the {} nodes of an NVLink domain", cluster.nodes,
                                  cluster.domain_nodes));
  }
  if (cluster.flat) return;
  const bool gpus = cluster.gpu.arch != GpuArch::none;
  if (!gpus && cluster.library == Library::nccl) top.fail("gpu", "missing: NCCL needs one; expected " + known_gpus());
  if (cluster.ranks_per_node > 1 && cluster.local.bytes_per_second == 0) {
    top.fail("local", "missing: the link between the ranks of one node");
  }
  if (cluster.nodes > cluster.domain_nodes && cluster.network.bytes_per_second == 0) {
    top.fail("network",
             "missing: there is no figure for the network between nodes. Expected the rate of one NIC and how many a "
             "node has, such as {\"rate\": \"400Gb/s\", \"nics_per_node\": 8}");
  }
  const bool reduces = cluster.gpu.arch == GpuArch::hopper || cluster.gpu.arch == GpuArch::blackwell;
  if (cluster.nvls && !(reduces && cluster.wiring == Wiring::switched)) {
    top.fail("local.nvls", "true, but only the NVSwitch of Hopper and Blackwell GPUs reduces");
  }
}

// Rates above what the stated hardware has are mistakes: both directions counted, bytes for bits, all NICs as one.
void check_rates(const Section& top, const Cluster& cluster) {
  const GpuModel* model = find_gpu_model(cluster.gpu.name);
  const std::uint64_t local = cluster.local.bytes_per_second;
  const bool mesh = model != nullptr && cluster.wiring == Wiring::mesh;
  const double most = model == nullptr ? 0 : mesh ? local_gbps(*model, cluster.ranks_per_node) : model->local_gbps;
  if (model != nullptr && local > bytes_of(most)) {
    top.fail("local.rate", fmt::format("{}, more than the {:g}GB/s that the links of a {}{} carry in one direction",
                                       format_rate(local), most, model->name,
                                       mesh ? fmt::format(" to {} others", cluster.ranks_per_node - 1) : ""));
  }
  const std::uint64_t fastest = fastest_nic(cluster.fabric);
  if (cluster.network.bytes_per_second > fastest) {
    top.fail(
        "network.rate",
        fmt::format("{}, more than the {} of the fastest NIC of {}: expected the rate of one NIC in one direction, "
                    "and their number as nics_per_node",
                    format_rate(cluster.network.bytes_per_second), format_rate(fastest), name_of(cluster.fabric)));
  }
}

Cluster start_from(Section& top) {
  std::string name;
  top.read("preset", name);
  const bool is_flat = top.has("flat");
  if (is_flat) {
    for (const char* other : {"preset", "local", "network", "gpu", "ranks_per_node"}) {
      if (top.has(other)) top.fail(other, "not beside 'flat', which has one rank a node and one port a rank");
    }
    Cluster cluster;
    top.read_as("flat", cluster, [](const std::string& text) { return flat(text); });
    return cluster;
  }
  static_cast<void>(top.find("flat"));  // known, if absent
  if (name.empty()) return {};
  std::optional<Cluster> found = preset(name);
  if (!found) {
    top.fail("preset", fmt::format("'{}' is unknown; expected one of {}", name, fmt::join(preset_names(), ", ")));
  }
  return *std::move(found);
}

std::string text_of_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    throw RequestError(
        path, {},
        fmt::format("no such file, and no preset of that name; presets are {}, each as NAME or NAME:NODES",
                    fmt::join(preset_names(), ", ")));
  }
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || (file.fail() && !file.eof())) throw Error(path, {}, "cannot be read");
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMaxFileBytes) throw Error(path, {}, "more than 1 MiB; expected a small JSON object");
  return text;
}

// The number behind the last colon; 0 where there is none.
std::uint32_t trailing_count(std::string_view text) {
  std::uint32_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const bool fits = error == std::errc() && end == text.data() + text.size() && count <= kMaxRanks;
  return fits ? count : 0;
}

std::uint32_t count_of(std::string_view text, const std::string& whole) {
  const std::uint32_t count = trailing_count(text);
  if (count == 0) {
    throw RequestError(fmt::format("'{}': expected a whole number of nodes from 1 to {} behind the colon",
                                   printable_text(whole, 60), kMaxRanks));
  }
  return count;
}

Cluster read_flat(std::string_view rest, const std::string& whole) {
  const std::size_t colon = rest.rfind(':');
  Cluster cluster = flat(rest.substr(0, colon));
  if (colon != std::string_view::npos) cluster.nodes = count_of(rest.substr(colon + 1), whole);
  return cluster;
}

}  // namespace

Cluster flat(std::string_view rate_and_latency) {
  const std::size_t comma = rate_and_latency.find(',');
  if (comma == std::string_view::npos) {
    throw RequestError(
        fmt::format("'{}': expected a rate and a latency, such as 50GB/s,1us", printable_text(rate_and_latency, 60)));
  }
  Cluster cluster;
  cluster.name = "flat";
  cluster.flat = true;
  cluster.network = {parse_rate(rate_and_latency.substr(0, comma)), parse_time(rate_and_latency.substr(comma + 1))};
  cluster.local = cluster.network;
  cluster.rails = false;
  return cluster;
}

Cluster parse_cluster(std::string_view json, const std::string& name) {
  Json root;
  std::vector<std::set<std::string>> open;  // the keys of each object that is not closed yet
  std::string doubled;
  const auto see = [&](int, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key && doubled.empty() && !open.back().insert(value.get<std::string>()).second) {
      doubled = value.get<std::string>();
    }
    return true;
  };
  try {
    root = Json::parse(json, see);
  } catch (const Json::parse_error& error) {
    throw Error(name, {.offset = error.byte, .line = {}}, "no JSON; expected one object");
  } catch (const Json::exception&) {  // a number that no double holds
    throw Error(name, {}, "a number is out of range; expected one object");
  }
  if (!doubled.empty()) {
    throw Error(name, {}, fmt::format("'{}' stands twice in one object: give it once", printable_text(doubled, 60)));
  }
  Section top(root, name, "");
  Cluster cluster = start_from(top);
  if (cluster.name.empty()) cluster.name = printable_text(name, 100);
  top.read("name", cluster.name);
  if (cluster.name.empty() && root.contains("name")) top.fail("name", "expected a name for people, or no such key");
  top.read("nodes", cluster.nodes, 1);
  top.read("ranks_per_node", cluster.ranks_per_node, 1);
  read_gpu(top, cluster);
  top.read_name("library", cluster.library, library_from, library_names());
  const GpuModel* model = find_gpu_model(cluster.gpu.name);
  if (model != nullptr && cluster.wiring == model->wiring) {  // fewer GPUs of a mesh have fewer links
    cluster.local.bytes_per_second = bytes_of(local_gbps(*model, cluster.ranks_per_node));
  }
  read_local(top, cluster);
  read_network(top, cluster);
  top.refuse_unknown();
  check_whole(top, cluster);
  if (!cluster.flat) check_rates(top, cluster);
  return cluster;
}

Cluster read_cluster(const std::string& path_or_preset) {
  constexpr std::string_view kFlat = "flat:";
  if (path_or_preset.starts_with(kFlat)) {
    return read_flat(std::string_view(path_or_preset).substr(kFlat.size()), path_or_preset);
  }
  const std::size_t colon = path_or_preset.rfind(':');
  if (std::optional<Cluster> found = preset(path_or_preset.substr(0, colon))) {
    if (colon == std::string::npos) return *std::move(found);
    found->nodes = count_of(std::string_view(path_or_preset).substr(colon + 1), path_or_preset);
    const bool whole = found->nodes % found->domain_nodes == 0 || found->nodes < found->domain_nodes;
    if (whole && found->ranks() <= kMaxRanks) return *std::move(found);
    throw RequestError(fmt::format("'{}': expected at most {} ranks, and whole NVLink domains of {} nodes",
                                   path_or_preset, kMaxRanks, found->domain_nodes));
  }
  return parse_cluster(text_of_file(path_or_preset), path_or_preset);
}

}  // namespace ddx::sim
