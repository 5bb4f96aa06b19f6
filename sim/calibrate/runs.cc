#include "sim/calibrate/runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/ids.h"
#include "base/printable.h"
#include "sim/calibrate/run_cluster.h"
#include "sim/collectives/nccl_time.h"
#include "sim/collectives/port_bound.h"
#include "sim/network/network.h"

namespace ddx::sim {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 50;

// The number that a text is; 0: it is none.
double number_in(const Json& value) {
  if (!value.is_string()) return 0;
  const std::string& text = value.get_ref<const std::string&>();
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : 0;
}

// One run's object, with its place for messages.
class RunFile {
 public:
  RunFile(const Json& run, const std::string& file, std::size_t index)
      : run_(run), file_(file), place_(fmt::format("runs[{}]", index)) {
    if (!run.is_object()) fail("", "an object");
  }

  [[noreturn]] void fail(const std::string& key, const std::string& expected) const {
    throw Error(file_, {}, fmt::format("{}{}{}: expected {}", place_, key.empty() ? "" : ".", key, expected));
  }

  // null and an absent key are the same: not stated.
  const Json* find(const char* key) const {
    const auto found = run_.find(key);
    return found == run_.end() || found->is_null() ? nullptr : &*found;
  }
  std::string text(const char* key) const {
    const Json* found = find(key);
    if (found == nullptr) return "";
    if (found->is_number_integer()) return found->dump();
    if (!found->is_string()) fail(key, "a text or null");
    return printable_text(found->get_ref<const std::string&>(), 300);
  }
  std::optional<std::uint32_t> count(const char* key) const {
    const Json* found = find(key);
    if (found == nullptr) return std::nullopt;
    // Tables that were turned into JSON have 16.0 and "16", too.
    const double number = found->is_number() ? found->get<double>() : number_in(*found);
    const bool fits = number >= 1 && number <= kMaxRanks && std::floor(number) == number;
    if (!fits) fail(key, fmt::format("a whole number from 1 to {}", kMaxRanks));
    return static_cast<std::uint32_t>(number);
  }
  const Json& rows() const {
    const Json* found = find("rows");
    if (found == nullptr || !found->is_array()) fail("rows", "a list");
    return *found;
  }
  // Where `name` stands in a row; nullopt where it does not.
  std::optional<std::size_t> column(std::string_view name) const {
    const Json* found = find("columns");
    if (found == nullptr) return name == "bytes" ? std::optional<std::size_t>(0) : std::nullopt;
    if (!found->is_array()) fail("columns", "a list of texts");
    for (std::size_t i = 0; i < found->size(); ++i) {
      if ((*found)[i].is_string() && (*found)[i].get_ref<const std::string&>() == name) return i;
    }
    return std::nullopt;
  }

 private:
  const Json& run_;
  const std::string& file_;
  std::string place_;
};

const Json& runs_of(const Json& root, const std::string& name) {
  const auto runs = root.is_object() ? root.find("runs") : root.end();
  if (!root.is_object() || runs == root.end() || !runs->is_array()) {
    throw Error(name, {}, "expected an object with a list 'runs'");
  }
  return *runs;
}

Json parsed(std::string_view json, const std::string& name) {
  try {
    return Json::parse(json);
  } catch (const Json::parse_error& error) {
    throw Error(name, {.offset = error.byte, .line = {}}, "no JSON; expected an object with a list 'runs'");
  } catch (const Json::exception&) {  // a number that no double holds
    throw Error(name, {}, "a number is out of range; expected an object with a list 'runs'");
  }
}

std::optional<OpKind> kind_of(const std::string& collective) {
  if (collective == "alltoall") return OpKind::all_to_all;
  if (collective == "sendrecv") return OpKind::send;
  return op_kind_from(collective);
}

DataType type_of(const std::string& dtype) {
  constexpr std::array<std::pair<std::string_view, DataType>, 7> kTypes{{{"float32", DataType::f32},
                                                                         {"float", DataType::f32},
                                                                         {"float16", DataType::f16},
                                                                         {"half", DataType::f16},
                                                                         {"bfloat16", DataType::bf16},
                                                                         {"float64", DataType::f64},
                                                                         {"double", DataType::f64}}};
  for (const auto& [name, type] : kTypes) {
    if (name == dtype) return type;
  }
  return data_type_from(dtype).value_or(DataType::unknown);
}

// A member of a row by its column; nullptr where the row has none.
const Json* cell(const Json& row, std::string_view name, std::optional<std::size_t> column) {
  if (row.is_number() && name == "bytes") return &row;
  if (row.is_object()) {
    const auto found = row.find(name);
    return found == row.end() ? nullptr : &*found;
  }
  if (!row.is_array() || !column || *column >= row.size()) return nullptr;
  return &row[*column];
}

// nullopt where no number of bytes is stated, or none that can be.
std::optional<std::uint64_t> bytes_of(const Json& row, std::optional<std::size_t> column) {
  const Json* found = cell(row, "bytes", column);
  if (found == nullptr || found->is_null()) return std::nullopt;
  const bool fits = found->is_number() && found->get<double>() >= 0 && found->get<double>() <= double(kMostBytes);
  if (!fits) return std::nullopt;
  return found->is_number_unsigned() ? found->get<std::uint64_t>() : static_cast<std::uint64_t>(found->get<double>());
}

bool is_timed(OpKind kind) {
  switch (kind) {
    case OpKind::all_reduce:
    case OpKind::all_gather:
    case OpKind::reduce_scatter:
    case OpKind::broadcast:
    case OpKind::reduce:
    case OpKind::all_to_all:
    case OpKind::gather:
    case OpKind::scatter:
    case OpKind::barrier:
    case OpKind::send:
    case OpKind::recv: return true;
    default: return false;
  }
}

// Ranks of the last NVLink domain where it has fewer than the others; else 0.
std::uint32_t last_domain(const Placement& placement, std::uint32_t domain_nodes) {
  const std::uint64_t whole = std::uint64_t{domain_nodes} * placement.most_per_node;
  return placement.nodes <= domain_nodes ? 0 : static_cast<std::uint32_t>(placement.ranks % whole);
}

CollectiveRun read_run(const RunFile& file) {
  CollectiveRun run;
  run.id = file.text("id");
  run.source = file.text("source");
  run.trust = file.text("trust");
  run.gpu = file.text("gpu");
  run.nic = file.text("nic");
  run.collective = file.text("collective");
  const std::optional<std::uint32_t> nodes = file.count("nodes");
  const std::optional<std::uint32_t> ranks = file.count("nranks");
  const std::uint32_t per_node =
      file.count("gpus_per_node").value_or(std::max(1U, ranks.value_or(1) / nodes.value_or(1)));
  run.placement.nodes = nodes.value_or(std::max(1U, ranks.value_or(per_node) / per_node));
  run.placement.ranks =
      ranks.value_or(std::min<std::uint64_t>(kMaxRanks, std::uint64_t{per_node} * run.placement.nodes));
  run.placement.most_per_node = run.placement.fewest_per_node = per_node;
  RunCluster found = cluster_of({run.gpu, file.text("intra"), run.nic, run.placement.nodes, per_node});
  run.cluster = std::move(found.cluster);
  run.unknown = std::move(found.unknown);
  run.forced = forced_of(file.text("algo_forced"), run.cluster);
  run.placement.fewest_per_domain = last_domain(run.placement, run.cluster.domain_nodes);
  const std::optional<OpKind> kind = kind_of(run.collective);
  if (kind && is_timed(*kind)) {
    run.work.kind = *kind;
  } else {
    run.unknown = "the collective is not known";
  }
  run.work.type = type_of(file.text("dtype"));
  const std::optional<std::size_t> column = file.column("bytes");
  for (const Json& row : file.rows()) run.bytes.push_back(bytes_of(row, column));
  return run;
}

std::optional<double> positive(const Json* value) {
  if (value == nullptr || !value->is_number() || !(value->get<double>() > 0)) return std::nullopt;
  return value->get<double>();
}

// A run whose notes tell that its figures contradict each other.
bool is_flagged(const RunFile& file) { return file.text("notes").find("unreliable") != std::string::npos; }

// A run that cannot be read says why; the others are none the worse for it.
CollectiveRun read_or_tell(const Json& run, const std::string& name, std::size_t index) {
  try {
    return read_run(RunFile(run, name, index));
  } catch (const Error& error) {
    CollectiveRun told;
    told.unknown = error.what();
    if (!run.is_object()) return told;
    const auto id = run.find("id"), rows = run.find("rows");
    if (id != run.end() && !id->is_null())
      told.id = printable_text(id->is_string() ? id->get<std::string>() : id->dump(), 300);
    if (rows != run.end() && rows->is_array()) told.bytes.resize(rows->size());
    return told;
  }
}

}  // namespace

std::vector<CollectiveRun> read_runs(std::string_view json, const std::string& name) {
  const Json root = parsed(json, name);
  std::vector<CollectiveRun> runs;
  for (const Json& run : runs_of(root, name)) runs.push_back(read_or_tell(run, name, runs.size()));
  return runs;
}

std::vector<std::vector<std::optional<double>>> read_measured(std::string_view json, const std::string& name) {
  const Json root = parsed(json, name);
  std::vector<std::vector<std::optional<double>>> all;
  for (const Json& run : runs_of(root, name)) {
    const RunFile file(run, name, all.size());
    const CollectiveRun about = read_run(file);
    const double factor = bus_factor(about.work.kind, about.placement.ranks);
    std::vector<std::optional<double>>& times = all.emplace_back();
    for (std::size_t i = 0; i < about.bytes.size(); ++i) {
      std::optional<double> time = positive(cell(file.rows()[i], "time_us", file.column("time_us")));
      const std::optional<double> bus = positive(cell(file.rows()[i], "busbw_GBps", file.column("busbw_GBps")));
      if (!time && bus && about.bytes[i]) time = static_cast<double>(*about.bytes[i]) * factor / *bus / 1e3;
      times.push_back(is_flagged(file) ? std::nullopt : time);
    }
  }
  return all;
}

namespace {

// What the ranks of a run can send to each other: as many on each node, from its first place on.
class Ports {
 public:
  explicit Ports(const CollectiveRun& run) : cluster_(run.cluster) {
    const std::uint32_t nodes = std::max(1U, run.placement.nodes), ranks = run.placement.ranks;
    const std::uint32_t per_node = (ranks + nodes - 1) / nodes;
    cluster_.nodes = std::max(cluster_.nodes, nodes);
    cluster_.ranks_per_node = std::max(cluster_.ranks_per_node, per_node);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      places_.push_back(rank / per_node * cluster_.ranks_per_node + rank % per_node);
    }
    network_.emplace(cluster_);
  }
  Picos bound(const NcclCall& call) const {
    return port_bound(call.work, *network_, places_, reduction_of(algorithm(call), cluster_));
  }
  // False: less than the ports need, so that it is no prediction.
  bool allows(const NcclCall& call, double micros) const {
    const double picos = std::min(std::round(micros * 1e6), static_cast<double>(kForever) / 2);
    return !is_below_bound(static_cast<Picos>(picos), bound(call), 1);
  }

 private:
  static std::string_view algorithm(const NcclCall& call) {
    return call.choice ? name_of(call.choice->algorithm) : "P2P";
  }

  Cluster cluster_;
  std::vector<std::uint32_t> places_;
  std::optional<Network> network_;
};

}  // namespace

std::vector<std::optional<double>> predict(const CollectiveRun& run) {
  std::vector<std::optional<double>> times;
  Work work = run.work;
  std::optional<Ports> ports;
  if (run.unknown.empty()) ports.emplace(run);
  for (const std::optional<std::uint64_t>& bytes : run.bytes) {
    if (!bytes || !run.unknown.empty()) {
      times.emplace_back();
      continue;
    }
    work.bytes = *bytes;
    const NcclCall call = nccl_call(run.cluster, run.placement, work, run.forced);
    double micros = nccl_micros(call, nccl_times()).total();
    // Domains are priced as if they were alike; of others the smallest may hold up all.
    if (run.placement.fewest_per_domain > 0) micros = std::max(micros, static_cast<double>(ports->bound(call)) / 1e6);
    times.emplace_back(ports->allows(call, micros) ? std::optional(micros) : std::nullopt);
  }
  return times;
}

}  // namespace ddx::sim
