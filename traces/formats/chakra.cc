#include "traces/formats/chakra.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "traces/formats/chakra_nodes.h"
#include "traces/formats/csv.h"
#include "traces/formats/dependency_order.h"
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

// Something wrong with some nodes: how many, and the ids of the first ones.
struct Trouble {
  std::uint64_t count = 0;
  std::vector<std::uint64_t> ids;
  void add(const ChakraNode& node) {
    ++count;
    if (ids.size() < kMostIds) ids.push_back(node.id);
  }
};

// Turns the ordered nodes of one file into a program.
class ProgramOfNodes {
 public:
  ProgramOfNodes(const ChakraTrace& nodes, Evidence& out)
      : nodes_(nodes), out_(out), positions_(out.trace), builder_(out.trace, positions_) {}

  void run(std::uint32_t index);
  void wait(std::uint32_t index);
  RankRecord& finish(std::optional<RankId> rank) { return builder_.finish(rank); }
  void report(const std::string& path);

  // Whether a node is a call that goes on beside what follows it.
  static bool ends_later(const ChakraNode& node) {
    return node.type == ChakraType::kReceive || (node.type == ChakraType::kCollective && node.comm_type);
  }

 private:
  void compute(const ChakraNode& node);
  void call(const ChakraNode& node, std::uint32_t index);
  OpKind kind_of(const ChakraNode& node);
  CommId comm_of(const ChakraNode& node);
  std::optional<std::int64_t> peer_of(const ChakraNode& node);
  std::uint32_t stream_of(std::int64_t peer, bool sends);
  Op times_of(const ChakraNode& node) const;
  std::optional<Nanos> nanos(std::uint64_t micros) const;

  const ChakraTrace& nodes_;
  Evidence& out_;
  MemberPositions positions_;
  RecordBuilder builder_;
  std::map<std::string_view, CommId> comms_;  // by pg_name
  std::optional<CommId> world_;
  std::unordered_map<std::uint32_t, std::uint32_t> handles_;             // of asynchronous calls, by node index
  std::unordered_map<std::uint64_t, std::uint32_t, KeyedHash> streams_;  // by peer and direction
  std::uint32_t async_ = 0;
  Trouble no_comm_type_, bad_size_, no_peer_, unknown_type_, unknown_kind_, too_many_groups_;
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

void ProgramOfNodes::compute(const ChakraNode& node) {
  Signature signature;
  signature.kind = OpKind::compute;
  signature.compute_time = nanos(node.duration_micros).value_or(0);
  signature.name = out_.trace.strings.intern(printable(node.name, kMostName));
  builder_.append(std::move(signature), times_of(node));
}

OpKind ProgramOfNodes::kind_of(const ChakraNode& node) {
  if (node.type == ChakraType::kSend) return OpKind::send;
  if (node.type == ChakraType::kReceive) return OpKind::recv;
  if (*node.comm_type >= 0 && *node.comm_type < static_cast<std::int64_t>(kCollectives.size())) {
    return kCollectives[static_cast<std::size_t>(*node.comm_type)];
  }
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

std::optional<std::int64_t> ProgramOfNodes::peer_of(const ChakraNode& node) {
  std::optional<std::int64_t> peer = node.root;
  if (node.type == ChakraType::kSend) peer = node.destination;
  if (node.type == ChakraType::kReceive) peer = node.source;
  if (!peer && node.type != ChakraType::kCollective) no_peer_.add(node);
  return peer;
}

// Calls to and from each peer are in order; those of different ones do not hold each other up.
std::uint32_t ProgramOfNodes::stream_of(std::int64_t peer, bool sends) {
  const std::uint64_t key = static_cast<std::uint64_t>(peer) << 1 | static_cast<std::uint64_t>(sends);
  return streams_.try_emplace(key, static_cast<std::uint32_t>(streams_.size())).first->second;
}

void ProgramOfNodes::call(const ChakraNode& node, std::uint32_t index) {
  Signature signature;
  signature.kind = kind_of(node);
  signature.async = true;
  signature.tag = node.tag;
  signature.type_in = signature.type_out = DataType::u8;
  signature.name = out_.trace.strings.intern(printable(node.name, kMostName));
  if (node.comm_size && *node.comm_size >= 0) signature.count_in = static_cast<std::uint64_t>(*node.comm_size);
  if (!signature.count_in && signature.kind != OpKind::barrier) bad_size_.add(node);
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
    if (is_p2p(signature.kind)) signature.stream = stream_of(*rank, signature.kind == OpKind::send);
  }
  handles_.emplace(index, async_++);
  builder_.append(std::move(signature), op, peer);
}

void ProgramOfNodes::run(std::uint32_t index) {
  const ChakraNode& node = nodes_.nodes[index];
  switch (node.type) {
    case ChakraType::kMetadata: return;
    case ChakraType::kMemLoad:
    case ChakraType::kMemStore:
    case ChakraType::kCompute: return compute(node);
    case ChakraType::kSend:
    case ChakraType::kReceive: return call(node, index);
    case ChakraType::kCollective:
      if (node.comm_type) return call(node, index);
      no_comm_type_.add(node);
      return compute(node);
    default: unknown_type_.add(node); return compute(node);
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

void ProgramOfNodes::report(const std::string& path) {
  const auto tell = [&](const Trouble& trouble, std::string_view name, DiagnosticSeverity severity,
                        std::string_view what) {
    if (trouble.count == 0) return;
    const std::string_view more = trouble.count > trouble.ids.size() ? ", ..." : "";
    out_.diagnostics.count(name, severity,
                           fmt::format("{}: {}: nodes {}{}", path, what, fmt::join(trouble.ids, ", "), more),
                           trouble.count);
  };
  tell(no_comm_type_, "chakra.no_comm_type", DiagnosticSeverity::notice,
       "collectives that do not say which (PyTorch writes each a second time, as a kernel), taken as computation");
  tell(bad_size_, "chakra.no_size", DiagnosticSeverity::notice, "communication without a size");
  tell(no_peer_, "chakra.no_peer", DiagnosticSeverity::data_loss, "a send or receive that does not name its peer");
  tell(unknown_type_, "chakra.unknown_node_type", DiagnosticSeverity::info,
       "of a type that ddx does not know, taken as computation");
  tell(unknown_kind_, "chakra.unknown_collective", DiagnosticSeverity::info, "a collective that ddx does not know");
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
    to.ends_later = ProgramOfNodes::ends_later(node);
  }
  return graph;
}

void report_graph(const std::string& path, const GraphFaults& faults, Evidence& out) {
  if (faults.duplicate_count > 0) {
    out.diagnostics.count("chakra.duplicate_id", DiagnosticSeverity::data_loss,
                          fmt::format("{}: nodes with an id that is taken, kept; dependencies mean the first: {}", path,
                                      fmt::join(faults.duplicates, ", ")),
                          faults.duplicate_count);
  }
  if (faults.dangling_count > 0) {
    std::string pairs;
    for (const auto& [node, id] : faults.dangling)
      pairs += fmt::format("{}{} on {}", pairs.empty() ? "" : ", ", node, id);
    out.diagnostics.count("chakra.dangling_dependency", DiagnosticSeverity::notice,
                          fmt::format("{}: nodes that depend on one that is not in the file: {}", path, pairs),
                          faults.dangling_count);
  }
  std::string first, first_soft;
  for (const GraphFaults::Cycle& cycle : faults.cycles) {
    std::string& text = cycle.soft ? first_soft : first;
    if (text.empty()) text = fmt::format("{}", fmt::join(cycle.ids, " on "));
    out.cycles.push_back({InputId(0), cycle.ids, cycle.soft});
  }
  if (faults.cuts > 0) {
    out.diagnostics.count("chakra.dependency_cycle", DiagnosticSeverity::error,
                          fmt::format("{}: nodes depend on each other in a circle, which was cut: {}", path, first),
                          faults.cuts);
  }
  if (faults.soft_cuts > 0) {
    out.diagnostics.count("chakra.control_cycle", DiagnosticSeverity::data_loss,
                          fmt::format("{}: control dependencies that close a circle, given up: {}", path, first_soft),
                          faults.soft_cuts);
  }
}

// NAME.RANK.et, whatever the name is.
std::optional<RankId> rank_of_name(const std::string& path, const ImportOptions& options) {
  if (options.rank_from) return rank_of_path(path, options);
  std::string_view name = file_name(path);
  if (name.ends_with(".gz")) name.remove_suffix(3);
  if (name.ends_with(".et")) name.remove_suffix(3);
  const std::size_t dot = name.rfind('.');
  const std::string_view digits = dot == std::string_view::npos ? std::string_view() : name.substr(dot + 1);
  return all_digits(digits) ? rank_at(digits) : rank_of_path(path, options);
}

void read_chakra(const Source& source, const ImportOptions& options, Evidence& out) {
  const ChakraTrace trace = read_chakra_nodes(source.path, source.bytes, options.max_ops_per_file);
  GraphFaults faults;
  const std::vector<OrderStep> order = dependency_order(graph_of(trace), faults);
  ProgramOfNodes program(trace, out);
  for (const OrderStep& step : order) {
    if (step.kind == OrderStep::Kind::run) {
      program.run(step.node);
    } else {
      program.wait(step.node);
    }
  }
  RankRecord& record = program.finish(rank_of_name(source.path, options));
  record.tail_lost = trace.cut_at || trace.left_out > 0;
  record.whole_program = !record.tail_lost;
  program.report(source.path);
  report_graph(source.path, faults, out);
  if (trace.cut_at) {
    out.diagnostics.count("chakra.truncated_file", DiagnosticSeverity::data_loss,
                          fmt::format("{}: what begins at byte {} is no whole node: {} nodes before it were read",
                                      source.path, *trace.cut_at, trace.nodes.size()));
  }
  if (trace.left_out > 0) {
    out.diagnostics.count("chakra.too_many_nodes", DiagnosticSeverity::data_loss,
                          source.path + ": nodes beyond the limit, left out", trace.left_out);
  }
  Input& input = out.inputs.front();
  input.file_rank = record.rank;
  if (record.rank) input.ranks.insert(*record.rank);
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
