#include "traces/formats/chakra.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <unordered_map>

#include "base/hash.h"
#include "traces/formats/chakra_nodes.h"
#include "traces/formats/csv.h"
#include "traces/formats/dependency_order.h"
#include "traces/formats/lane_order.h"
#include "traces/formats/log_scan.h"
#include "traces/formats/ops_text.h"
#include "traces/formats/record_builder.h"

namespace ddx::formats {
namespace {

constexpr std::size_t kMostName = 255;
constexpr std::size_t kMostIds = 8;  // named in one diagnostic

// Of CollectiveCommType, by number. "Block" is MPI's word for equal parts.
constexpr std::array<OpKind, 10> kCollectives{
    OpKind::all_reduce, OpKind::reduce,     OpKind::all_gather,     OpKind::gather,         OpKind::scatter,
    OpKind::broadcast,  OpKind::all_to_all, OpKind::reduce_scatter, OpKind::reduce_scatter, OpKind::barrier};

bool is_call(const ChakraNode& node) {
  return node.type == ChakraType::kSend || node.type == ChakraType::kReceive ||
         (node.type == ChakraType::kCollective && node.comm_type);
}

// Receives and collectives; a send ends locally.
bool ends_later(const ChakraNode& node) { return is_call(node) && node.type != ChakraType::kSend; }

// Sends and receives name it differently, collectives name its root if anything.
std::optional<std::int64_t> peer_of(const ChakraNode& node) {
  if (node.type == ChakraType::kSend) return node.destination;
  if (node.type == ChakraType::kReceive) return node.source;
  return node.root;
}

// Threads of the CPU, streams of the GPU, and one lane for the calls to and from each peer, which are in order and do
// not hold up those of others, and for those of each group.
class Lanes {
 public:
  Lane of(const ChakraNode& node) {
    Lane lane;
    if (node.type == ChakraType::kMetadata) return lane;
    if (node.type == ChakraType::kCollective && is_call(node)) {
      lane.number = numbered({Kind::group, 0, node.group});
    } else if (is_call(node)) {
      lane.number = numbered({node.type == ChakraType::kSend ? Kind::to : Kind::from, peer_of(node).value_or(-1), {}});
    } else {
      const bool on_cpu = node.on_cpu.value_or(false);
      lane.number =
          numbered({on_cpu ? Kind::thread : Kind::stream, (on_cpu ? node.thread : node.stream).value_or(-1), {}});
      lane.computes = true;
      lane.length = node.duration_micros;
    }
    return lane;
  }

 private:
  enum class Kind : std::uint8_t { thread, stream, to, from, group };
  using Key = std::tuple<Kind, std::int64_t, std::string_view>;
  std::uint32_t numbered(const Key& key) {
    return numbers_.try_emplace(key, static_cast<std::uint32_t>(numbers_.size())).first->second;
  }
  std::map<Key, std::uint32_t> numbers_;
};

std::vector<Lane> lanes_of(const ChakraTrace& trace) {
  Lanes lanes;
  std::vector<Lane> all;
  all.reserve(trace.nodes.size());
  for (const ChakraNode& node : trace.nodes) all.push_back(lanes.of(node));
  return all;
}

// Something wrong with some nodes: how many, and the ids of the first ones.
struct Trouble {
  std::uint64_t count = 0;
  std::vector<std::uint64_t> ids;
  void add(const ChakraNode& node) {
    ++count;
    if (ids.size() < kMostIds) ids.push_back(node.id);
  }
};

// "rank 3: ", before the nodes of its file.
std::string rank_text(std::optional<RankId> rank) { return rank ? fmt::format("rank {}: ", rank->value) : ""; }

// Turns the ordered nodes of one file into a program.
class ProgramOfNodes {
 public:
  ProgramOfNodes(const ChakraTrace& nodes, const std::vector<Lane>& lanes, Evidence& out)
      : nodes_(nodes), lanes_(lanes), out_(out), positions_(out.trace), builder_(out.trace, positions_) {
    timed_ = std::any_of(nodes.nodes.begin(), nodes.nodes.end(),
                         [](const ChakraNode& node) { return !is_call(node) && node.duration_micros > 0; });
  }

  void run(std::uint32_t index);
  void wait(std::uint32_t index);
  // For the sends that it depends on. They end locally, so that this holds up nobody but where a run asks what would
  // be if they did not.
  void wait_for_sends(std::uint32_t index);
  RankRecord& finish(std::optional<RankId> rank) { return builder_.finish(rank); }
  void report(const std::string& path, std::optional<RankId> rank);

 private:
  void compute(const ChakraNode& node, std::uint32_t index);
  std::optional<Nanos> length_of(const ChakraNode& node);
  void call(const ChakraNode& node, std::uint32_t index);
  OpKind kind_of(const ChakraNode& node);
  CommId comm_of(const ChakraNode& node);
  Op times_of(const ChakraNode& node) const;
  std::optional<Nanos> nanos(std::uint64_t micros) const;

  const ChakraTrace& nodes_;
  const std::vector<Lane>& lanes_;
  Evidence& out_;
  MemberPositions positions_;
  RecordBuilder builder_;
  std::map<std::string_view, CommId> comms_;                           // by pg_name
  std::unordered_map<std::uint32_t, std::uint32_t> handles_;           // by node index
  std::unordered_map<std::uint64_t, std::uint32_t, KeyedHash> sends_;  // by id: node index of those not waited for
  std::uint32_t async_ = 0;
  bool timed_ = false;  // computations have durations
  std::int64_t first_unknown_kind_ = 0;
  Trouble no_comm_type_, bad_size_, negative_size_, no_duration_, no_peer_, unknown_type_, unknown_kind_,
      too_many_groups_;
};

std::optional<Nanos> ProgramOfNodes::nanos(std::uint64_t micros) const {
  if (micros > static_cast<std::uint64_t>(INT64_MAX / 4 / kMicrosecond)) return std::nullopt;
  return static_cast<Nanos>(micros) * kMicrosecond;
}

Op ProgramOfNodes::times_of(const ChakraNode& node) const {
  Op op;
  if (node.start_micros == 0) return op;
  op.start = nanos(node.start_micros);
  const auto length = nanos(node.duration_micros);
  if (op.start && length) op.end = *op.start + *length;
  return op;
}

// The format writes no zero, so that "shorter than a microsecond" looks like "not known": it is the former where others
// have a duration and nothing says that there is work to do.
std::optional<Nanos> ProgramOfNodes::length_of(const ChakraNode& node) {
  if (node.duration_micros > 0) return nanos(node.duration_micros);
  const bool moves = node.type == ChakraType::kMemLoad || node.type == ChakraType::kMemStore;
  if (timed_ && node.operations.value_or(0) <= 0 && (!moves || node.tensor_bytes.value_or(0) <= 0)) return 0;
  no_duration_.add(node);
  return std::nullopt;
}

void ProgramOfNodes::compute(const ChakraNode& node, std::uint32_t index) {
  Signature signature;
  signature.kind = OpKind::compute;
  signature.async = true;
  signature.stream = lanes_[index].number;
  signature.compute_time = length_of(node);
  signature.name = out_.trace.strings.intern(printable(node.name, kMostName));
  handles_.emplace(index, async_++);
  builder_.append(std::move(signature), times_of(node));
}

OpKind ProgramOfNodes::kind_of(const ChakraNode& node) {
  if (node.type == ChakraType::kSend) return OpKind::send;
  if (node.type == ChakraType::kReceive) return OpKind::recv;
  if (*node.comm_type >= 0 && *node.comm_type < static_cast<std::int64_t>(kCollectives.size())) {
    return kCollectives[static_cast<std::size_t>(*node.comm_type)];
  }
  if (unknown_kind_.count == 0) first_unknown_kind_ = *node.comm_type;
  unknown_kind_.add(node);
  return OpKind::unknown;
}

// Groups that no node describes keep their name; the ranks that use it are known when all files are read. "0" is the
// name of the default group in PyTorch and in the simulators that read this format.
CommId ProgramOfNodes::comm_of(const ChakraNode& node) {
  const auto at = comms_.find(node.group);
  if (at != comms_.end()) return at->second;
  const std::string name = printable(node.group, kMostName);
  const std::vector<RankId>* members = nodes_.groups.members(name);
  Communicator communicator;
  const bool is_world = (name.empty() || name == "0") && members == nullptr;
  communicator.name = out_.trace.strings.intern(is_world ? kUnlistedWorld : std::string_view(name));
  if (members != nullptr) communicator.members = *members;
  const CommId comm = out_.trace.intern(std::move(communicator));
  comms_.emplace(node.group, comm);
  return comm;
}

void ProgramOfNodes::call(const ChakraNode& node, std::uint32_t index) {
  Signature signature;
  signature.kind = kind_of(node);
  signature.async = true;
  signature.tag = node.tag;
  signature.type_in = signature.type_out = DataType::u8;
  std::string name = printable(node.name, kMostName);
  if (signature.kind == OpKind::unknown) name += fmt::format(" (comm_type {})", *node.comm_type);
  signature.name = out_.trace.strings.intern(name);
  if (node.comm_size && *node.comm_size < 0) {
    negative_size_.add(node);
  } else if (node.comm_size) {
    signature.count_in = static_cast<std::uint64_t>(*node.comm_size);
  } else if (signature.kind != OpKind::barrier) {
    bad_size_.add(node);
  }
  // Ranks of a send are global ones, so its group is that of all ranks.
  ChakraNode in_world;
  const CommId comm = comm_of(is_p2p(signature.kind) ? in_world : node);
  Op op = times_of(node);
  op.comm_slot = builder_.comm_slot(comm);
  if (!op.comm_slot) return too_many_groups_.add(node);
  bool overflow = false;
  const std::size_t size = out_.trace.communicator(comm).members.size();
  if (is_collective(signature.kind)) {
    signature.count_out = ruled_count_out(signature.kind, signature.count_in, size, overflow);
  }
  std::optional<std::uint32_t> peer;
  if (const auto rank = peer_of(node)) {
    peer = builder_.peer_slot(*op.comm_slot, *rank);
    if (is_p2p(signature.kind)) signature.stream = lanes_[index].number;
  } else if (is_p2p(signature.kind)) {
    no_peer_.add(node);
  }
  if (signature.kind == OpKind::send) sends_.emplace(node.id, index);
  handles_.emplace(index, async_++);
  builder_.append(std::move(signature), op, peer);
}

void ProgramOfNodes::run(std::uint32_t index) {
  const ChakraNode& node = nodes_.nodes[index];
  switch (node.type) {
    case ChakraType::kMetadata: return;
    case ChakraType::kMemLoad:
    case ChakraType::kMemStore:
    case ChakraType::kCompute: return compute(node, index);
    case ChakraType::kSend:
    case ChakraType::kReceive: return call(node, index);
    case ChakraType::kCollective:
      if (node.comm_type) return call(node, index);
      no_comm_type_.add(node);
      return compute(node, index);
    default: unknown_type_.add(node); return compute(node, index);
  }
}

void ProgramOfNodes::wait(std::uint32_t index) {
  const auto at = handles_.find(index);
  if (at == handles_.end()) return;
  Signature signature;
  signature.kind = OpKind::wait;
  signature.handle = at->second;
  builder_.append(std::move(signature), {});
}

void ProgramOfNodes::wait_for_sends(std::uint32_t index) {
  const ChakraNode& node = nodes_.nodes[index];
  for (std::uint32_t i = 0; i < node.dep_count + node.control_count && !sends_.empty(); ++i) {
    const auto at = sends_.find(nodes_.deps[node.first_dep + i]);
    if (at == sends_.end()) continue;
    wait(at->second);
    sends_.erase(at);
  }
}

void ProgramOfNodes::report(const std::string& path, std::optional<RankId> of) {
  const std::string rank = rank_text(of);
  const auto tell = [&](const Trouble& trouble, std::string_view name, DiagnosticSeverity severity,
                        std::string_view what) {
    if (trouble.count == 0) return;
    const std::string_view more = trouble.count > trouble.ids.size() ? ", ..." : "";
    out_.diagnostics.count(name, severity,
                           fmt::format("{}: {}node{} {}{}: {}", path, rank, trouble.count == 1 ? "" : "s",
                                       fmt::join(trouble.ids, ", "), more, what),
                           trouble.count);
  };
  tell(no_comm_type_, "chakra.no_comm_type", DiagnosticSeverity::notice,
       "collectives that do not say which (PyTorch writes each a second time, as a kernel), taken as computation");
  tell(bad_size_, "chakra.no_size", DiagnosticSeverity::notice, "communication without a size (comm_size)");
  tell(negative_size_, "chakra.negative_size", DiagnosticSeverity::error,
       "communication of less than nothing: expected a comm_size of 0 or more");
  tell(no_duration_, "chakra.no_duration", DiagnosticSeverity::notice,
       "computation without a duration (duration_micros): no time can be predicted");
  tell(no_peer_, "chakra.no_peer", DiagnosticSeverity::error,
       "a send or receive that does not name its peer: expected comm_dst or comm_src");
  tell(unknown_type_, "chakra.unknown_node_type", DiagnosticSeverity::info,
       "of a type that ddx does not know, taken as computation");
  tell(unknown_kind_, "chakra.unknown_collective", DiagnosticSeverity::error,
       fmt::format("a collective of comm_type {}, which ddx does not know: expected 0 (all_reduce) to 9 (barrier)",
                   first_unknown_kind_));
  tell(too_many_groups_, "chakra.too_many_groups", DiagnosticSeverity::data_loss, "groups beyond the limit of 65,534");
}

std::vector<GraphNode> graph_of(const ChakraTrace& trace) {
  std::vector<GraphNode> graph;
  graph.reserve(trace.nodes.size());
  for (const ChakraNode& node : trace.nodes) {
    const std::uint64_t* deps = trace.deps.data() + node.first_dep;
    GraphNode& to = graph.emplace_back();
    to.id = node.id;
    to.deps = {deps, node.dep_count};
    to.soft_deps = {deps + node.dep_count, node.control_count};
    to.ends_later = ends_later(node);
  }
  return graph;
}

void report_graph(const std::string& path, std::optional<RankId> of, const GraphFaults& faults, Evidence& out) {
  const std::string rank = rank_text(of);
  if (faults.duplicate_count > 0) {
    out.diagnostics.count("chakra.duplicate_id", DiagnosticSeverity::error,
                          fmt::format("{}: {}several nodes have the id {}: expected one, or what depends on it is not "
                                      "known",
                                      path, rank, fmt::join(faults.duplicates, ", ")),
                          faults.duplicate_count);
  }
  if (faults.dangling_count > 0) {
    std::string pairs;
    for (const auto& [node, id] : faults.dangling)
      pairs += fmt::format("{}node {} on {}", pairs.empty() ? "" : ", ", node, id);
    out.diagnostics.count("chakra.dangling_dependency", DiagnosticSeverity::data_loss,
                          fmt::format("{}: {}nodes depend on such as are not in the file, which are taken as done: {}",
                                      path, rank, pairs),
                          faults.dangling_count);
  }
  std::string first, first_soft;
  for (const GraphFaults::Cycle& cycle : faults.cycles) {
    std::string& text = cycle.soft ? first_soft : first;
    if (text.empty()) text = fmt::format("{}", fmt::join(cycle.ids, " on "));
    out.cycles.push_back({InputId(0), cycle.ids, cycle.soft});
  }
  if (faults.cuts > 0) {
    out.diagnostics.count(
        "chakra.dependency_cycle", DiagnosticSeverity::error,
        fmt::format("{}: {}nodes depend on each other in a circle, which was cut: {}", path, rank, first), faults.cuts);
  }
  if (faults.soft_cuts > 0) {
    out.diagnostics.count(
        "chakra.control_cycle", DiagnosticSeverity::data_loss,
        fmt::format("{}: {}control dependencies that close a circle, given up: {}", path, rank, first_soft),
        faults.soft_cuts);
  }
}

// ASTRA-sim's generators of benchmarks name their nodes so: "all_reduce_8npus_1MB".
std::optional<std::uint32_t> world_in_names(const ChakraTrace& trace) {
  for (const ChakraNode& node : trace.nodes) {
    const std::size_t end = node.name.find("npus");
    if (!is_call(node) || !node.group.empty() || end == std::string_view::npos) continue;
    const std::size_t before = node.name.find_last_not_of("0123456789", end - 1);
    const std::size_t begin = end == 0 || before == std::string_view::npos ? 0 : before + 1;
    const auto world = parse_unsigned(node.name.substr(begin, end - begin));
    if (world && *world > 0 && *world <= kMaxRanks) return static_cast<std::uint32_t>(*world);
  }
  return std::nullopt;
}

void report_end(const std::string& path, const ChakraTrace& trace, std::optional<RankId> rank, Evidence& out) {
  if (trace.cut_at) {
    out.diagnostics.count("chakra.truncated_file", DiagnosticSeverity::error,
                          fmt::format("{}: {}what begins at byte {} is no whole node: {} nodes before it were read",
                                      path, rank_text(rank), *trace.cut_at, trace.nodes.size()));
  }
  if (trace.left_out > 0) {
    out.diagnostics.count(
        "chakra.too_many_nodes", DiagnosticSeverity::error,
        fmt::format("{}: {}nodes beyond the limit of {}, left out", path, rank_text(rank), trace.nodes.size()),
        trace.left_out);
  }
}

void read_chakra(const Source& source, const ImportOptions& options, Evidence& out) {
  Input& input = out.inputs.front();
  input.file_rank = rank_of_path(source.path, options);
  const ChakraTrace trace = read_chakra_nodes(source.path, source.bytes, options.max_ops_per_file);
  GraphFaults faults;
  const std::vector<GraphNode> graph = graph_of(trace);
  const std::vector<Lane> lanes = lanes_of(trace);
  ProgramOfNodes program(trace, lanes, out);
  for (const OrderStep& step : lane_order(graph, dependency_order(graph, faults), lanes)) {
    if (step.kind == OrderStep::Kind::run) {
      program.wait_for_sends(step.node);
      program.run(step.node);
    } else {
      program.wait(step.node);
    }
  }
  RankRecord& record = program.finish(input.file_rank);
  record.tail_lost = trace.cut_at || trace.left_out > 0;
  record.whole_program = !record.tail_lost;
  record.sends_end_locally = true;
  program.report(source.path, record.rank);
  report_graph(source.path, record.rank, faults, out);
  report_end(source.path, trace, record.rank, out);
  if (record.rank) input.ranks.insert(*record.rank);
  if (const auto world = world_in_names(trace)) out.trace.world_size = world;
}

Sniff sniff_chakra(const std::string& path, std::string_view head) {
  if (may_be_chakra(head)) return has_extension(path, {".et"}) ? Sniff::sure : Sniff::likely;
  return has_extension(path, {".et"}) ? Sniff::maybe : Sniff::no;
}

}  // namespace

Importer chakra_importer() {
  return {"chakra", "Chakra execution traces (protobuf), one file a rank: NAME.RANK.et", sniff_chakra, read_chakra};
}

}  // namespace ddx::formats
