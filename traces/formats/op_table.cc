#include "traces/formats/op_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "traces/formats/csv.h"
#include "traces/formats/flight_recorder_names.h"
#include "traces/formats/log_scan.h"
#include "traces/formats/ops_text.h"
#include "traces/formats/record_builder.h"

namespace ddx::formats {
namespace {

constexpr std::size_t kMostName = 255;

struct Columns {
  std::optional<std::size_t> rank, seq, op, peer, root, count, count_out, tag, group, type;
};

Columns columns_of(const std::vector<std::string>& header) {
  Columns columns;
  columns.rank = column(header, {"rank", "global_rank"});
  columns.seq = column(header, {"seq", "sequence", "index"});
  columns.op = column(header, {"op", "operation", "collective"});
  columns.peer = column(header, {"peer"});
  columns.root = column(header, {"root"});
  columns.count = column(header, {"count", "count_in", "numel", "numel_in"});
  columns.count_out = column(header, {"count_out", "numel_out"});
  columns.tag = column(header, {"tag"});
  columns.group = column(header, {"group", "comm", "pg", "communicator", "process_group"});
  columns.type = column(header, {"dtype", "datatype", "type"});
  return columns;
}

bool is_op_table(const Columns& columns) {
  return columns.rank && columns.op && (columns.peer || columns.count || columns.tag || columns.group || columns.type);
}

Sniff sniff_op_table(const std::string& path, std::string_view head) {
  if (!has_extension(path, {".csv"})) return Sniff::no;
  return is_op_table(columns_of(header_of(head))) ? Sniff::sure : Sniff::no;
}

struct Row {
  std::int32_t rank = 0;
  std::uint64_t line = 0;
  std::optional<std::int64_t> seq, peer;  // peer: also the root
  std::string group;                      // empty: all ranks
  Signature signature;
};

// "nccl:all_reduce", "ncclAllReduce", "isend": the kind, and whether the call returns at once.
OpKind kind_of(std::string_view name, bool& async) {
  if (const auto kind = op_kind_from(name); kind && *kind != OpKind::unknown) return *kind;
  if (name.size() > 4 && name.starts_with("nccl") && name[4] != ':') name.remove_prefix(4);
  const std::string small = lower(name);
  async = small == "isend" || small == "irecv";
  return parse_profiling_name(async ? std::string_view(small).substr(1) : name).kind;
}

// What a row of such a table can say: a call, or the bounds of a batch.
bool is_row_kind(OpKind kind) {
  return is_p2p(kind) || kind == OpKind::unknown || kind == OpKind::group_begin || kind == OpKind::group_end ||
         (is_collective(kind) && kind != OpKind::new_group && kind != OpKind::split_group);
}

DataType type_of(std::string_view text) {
  static constexpr std::pair<std::string_view, DataType> kNames[] = {
      {"float32", DataType::f32}, {"float", DataType::f32},  {"float16", DataType::f16},   {"half", DataType::f16},
      {"float64", DataType::f64}, {"double", DataType::f64}, {"bfloat16", DataType::bf16}, {"int8", DataType::i8},
      {"uint8", DataType::u8},    {"int16", DataType::i16},  {"int32", DataType::i32},     {"int", DataType::i32},
      {"int64", DataType::i64},   {"long", DataType::i64},   {"uint32", DataType::u32},    {"uint64", DataType::u64},
      {"bool", DataType::boolean}};
  if (text.starts_with("torch.")) text.remove_prefix(6);
  if (const auto type = data_type_from(text)) return *type;
  const std::string small = lower(text);
  for (const auto& [name, type] : kNames) {
    if (small == name) return type;
  }
  return recorder_data_type(text);
}

class Table {
 public:
  Table(const Source& source, const ImportOptions& options, Evidence& out)
      : source_(source), options_(options), out_(out) {}

  void read();

 private:
  std::string_view cell(const std::vector<std::string>& cells, std::optional<std::size_t> at) const {
    return at && *at < cells.size() ? std::string_view(cells[*at]) : std::string_view();
  }
  // A number of a cell; an empty cell, or one that says none, is absent.
  std::optional<std::int64_t> number(std::string_view text, std::string_view what);
  std::optional<std::uint64_t> count(std::string_view text, std::string_view what);
  void count_trouble(std::string_view name, DiagnosticSeverity severity, const std::string& what);
  void read_row(const std::vector<std::string>& cells);
  void read_kind(Row& row, std::string_view name);
  void sort_rows();
  void find_groups();
  void build();
  void append(RecordBuilder& builder, const Row& row, std::optional<std::uint32_t> batch);

  const Source& source_;
  const ImportOptions& options_;
  Evidence& out_;
  Columns columns_;
  std::uint64_t line_ = 1;
  std::vector<Row> rows_;
  std::uint32_t world_ = 0;
  std::map<std::string, CommId, std::less<>> groups_;
};

void Table::count_trouble(std::string_view name, DiagnosticSeverity severity, const std::string& what) {
  out_.diagnostics.count(name, severity, fmt::format("{}:{}: {}", source_.path, line_, what));
}

std::optional<std::int64_t> Table::number(std::string_view text, std::string_view what) {
  if (text.empty() || text == "-" || text == "?") return std::nullopt;
  const auto value = parse_signed(text);
  if (!value) {
    count_trouble("op_table.bad_cell", DiagnosticSeverity::data_loss,
                  fmt::format("expected a number for {}, found \"{}\"", what, printable(text, 80)));
  }
  return value;
}

std::optional<std::uint64_t> Table::count(std::string_view text, std::string_view what) {
  const auto value = number(text, what);
  if (!value || *value >= 0) return value;
  count_trouble("op_table.bad_cell", DiagnosticSeverity::data_loss,
                fmt::format("expected no negative number for {}, found {}", what, *value));
  return std::nullopt;
}

void Table::read_kind(Row& row, std::string_view name) {
  row.signature.kind = kind_of(name, row.signature.async);
  if (row.signature.kind != OpKind::unknown) return;
  row.signature.name = out_.trace.strings.intern(printable(name, kMostName));
  count_trouble("op_table.unknown_op", DiagnosticSeverity::info,
                fmt::format("an operation that ddx does not know: \"{}\"", printable(name, 80)));
}

void Table::read_row(const std::vector<std::string>& cells) {
  Row row;
  row.line = line_;
  const auto rank = number(cell(cells, columns_.rank), "rank");
  if (!rank || *rank < 0 || *rank >= std::int64_t{kMaxRanks}) {
    return count_trouble("op_table.bad_rank", DiagnosticSeverity::data_loss,
                         fmt::format("expected a rank from 0 to {}, row left out", kMaxRanks - 1));
  }
  row.rank = static_cast<std::int32_t>(*rank);
  const std::string_view name = cell(cells, columns_.op);
  read_kind(row, name);
  if (name.empty() || !is_row_kind(row.signature.kind)) {
    return count_trouble(
        "op_table.unsupported_op", DiagnosticSeverity::data_loss,
        fmt::format("expected a collective, a send or a receive, found \"{}\", row left out", printable(name, 80)));
  }
  row.seq = number(cell(cells, columns_.seq), "seq");
  const auto root = number(cell(cells, columns_.root), "root");
  const auto peer = number(cell(cells, columns_.peer), "peer");
  if (is_p2p(row.signature.kind)) row.peer = peer;
  if (is_rooted(row.signature.kind)) row.peer = root ? root : peer;
  row.group = printable(cell(cells, columns_.group), kMostName);
  row.signature.count_in = count(cell(cells, columns_.count), "count");
  row.signature.count_out = count(cell(cells, columns_.count_out), "count_out");
  if (const std::string_view type = cell(cells, columns_.type); !type.empty()) {
    row.signature.type_in = type_of(type);
    row.signature.type_out = ruled_type_out(row.signature.kind, row.signature.type_in);
  }
  row.signature.tag = number(cell(cells, columns_.tag), "tag");
  rows_.push_back(std::move(row));
}

void Table::read() {
  std::string_view rest = source_.bytes;
  columns_ = columns_of(header_of(rest));
  take_line(rest);
  if (!is_op_table(columns_)) throw Error(source_.path, {std::nullopt, 1}, "expected the columns rank and op");
  while (!rest.empty()) {
    ++line_;
    const std::string_view row = take_line(rest);
    if (trimmed(row).empty()) continue;
    if (rows_.size() >= options_.max_ops_per_file || row.size() > kMaxCsvRow) {
      count_trouble("op_table.too_long", DiagnosticSeverity::data_loss, "more rows, or a longer one, than ddx keeps");
      continue;
    }
    read_row(cells_of(row));
  }
  if (rows_.empty()) throw Error(source_.path, {std::nullopt, 2}, "expected a row with a rank and an operation");
  sort_rows();
  find_groups();
  build();
}

// By rank, and in each rank by its own numbers, where these say an order.
void Table::sort_rows() {
  std::stable_sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) { return a.rank < b.rank; });
  for (auto begin = rows_.begin(); begin != rows_.end();) {
    const auto end = std::find_if(begin, rows_.end(), [&](const Row& row) { return row.rank != begin->rank; });
    std::vector<std::int64_t> numbers;
    for (auto row = begin; row != end; ++row) {
      if (row->seq) numbers.push_back(*row->seq);
    }
    std::sort(numbers.begin(), numbers.end());
    const bool apart = std::adjacent_find(numbers.begin(), numbers.end()) == numbers.end();
    if (apart && numbers.size() == static_cast<std::size_t>(end - begin)) {
      std::sort(begin, end, [](const Row& a, const Row& b) { return *a.seq < *b.seq; });
      const auto length = static_cast<std::int64_t>(numbers.size());
      line_ = begin->line;
      if (numbers.back() > numbers.front() && numbers.back() - (length - 1) > numbers.front()) {
        count_trouble("op_table.gap", DiagnosticSeverity::notice,
                      fmt::format("rank {} has {} rows numbered from {} to {}: some may be missing", begin->rank,
                                  length, numbers.front(), numbers.back()));
      }
    }
    begin = end;
  }
}

// A named group has the ranks that use it and, of sends and receives, their peers.
void Table::find_groups() {
  std::map<std::string, std::vector<RankId>, std::less<>> members;
  for (const Row& row : rows_) {
    world_ = std::max(world_, static_cast<std::uint32_t>(row.rank) + 1);
    if (!row.group.empty()) members[row.group].emplace_back(std::int64_t{row.rank});
  }
  for (const Row& row : rows_) {
    if (!row.group.empty() && row.peer && *row.peer >= 0 && *row.peer < std::int64_t{world_}) {
      members[row.group].emplace_back(*row.peer);
    }
  }
  groups_.emplace(std::string(), intern_world(out_.trace, kWorldGroup, world_));
  for (auto& [name, ranks] : members) {
    Communicator communicator;
    communicator.name = out_.trace.strings.intern(name);
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    communicator.members = std::move(ranks);
    groups_.emplace(name, out_.trace.intern(std::move(communicator)));
  }
}

void Table::append(RecordBuilder& builder, const Row& row, std::optional<std::uint32_t> batch) {
  line_ = row.line;
  Op op;
  Signature signature = row.signature;
  if (signature.kind == OpKind::group_begin || signature.kind == OpKind::group_end) {
    signature = Signature{};
    signature.kind = row.signature.kind;
    builder.append(std::move(signature), op);
    return;
  }
  op.group = batch;
  const CommId comm = groups_.find(row.group)->second;
  op.comm_slot = builder.comm_slot(comm);
  if (!op.comm_slot) {
    return count_trouble("op_table.too_many_groups", DiagnosticSeverity::data_loss,
                         fmt::format("more groups on rank {} than ddx keeps, row left out", row.rank));
  }
  bool overflow = false;
  if (!signature.count_out && !is_p2p(signature.kind)) {
    const std::size_t size = out_.trace.communicator(comm).members.size();
    signature.count_out = ruled_count_out(signature.kind, signature.count_in, size, overflow);
  }
  std::optional<std::uint32_t> peer;
  if (row.peer) {
    peer = builder.peer_slot(*op.comm_slot, *row.peer);
  } else if (is_p2p(signature.kind)) {
    count_trouble("op_table.no_peer", DiagnosticSeverity::data_loss, "expected a peer for this send or receive");
  }
  builder.append(std::move(signature), op, peer);
}

void Table::build() {
  out_.trace.world_size = world_;
  std::vector<RankId> ranks;
  MemberPositions positions(out_.trace);
  for (std::size_t at = 0; at < rows_.size();) {
    RecordBuilder builder(out_.trace, positions);
    const std::int32_t rank = rows_[at].rank;
    std::uint32_t open = 0, batches = 0;
    for (; at < rows_.size() && rows_[at].rank == rank; ++at) {
      const OpKind kind = rows_[at].signature.kind;
      line_ = rows_[at].line;
      if (kind == OpKind::group_end && open == 0) {
        count_trouble("op_table.unpaired_group", DiagnosticSeverity::data_loss, "a group_end without its group_begin");
        continue;
      }
      if (kind == OpKind::group_begin && open++ == 0) ++batches;
      if (kind == OpKind::group_end) --open;
      append(builder, rows_[at], open > 0 ? std::optional(batches - 1) : std::nullopt);
    }
    if (open > 0) {
      count_trouble("op_table.unpaired_group", DiagnosticSeverity::data_loss,
                    fmt::format("rank {} begins a group that it does not end", rank));
      Signature end;
      end.kind = OpKind::group_end;
      for (; open > 0; --open) builder.append(end, {});
    }
    builder.finish(RankId(std::int64_t{rank})).whole_program = true;
    ranks.emplace_back(std::int64_t{rank});
  }
  out_.inputs.front().ranks = RankSet(std::move(ranks));
}

void read_op_table(const Source& source, const ImportOptions& options, Evidence& out) {
  Table(source, options, out).read();
}

}  // namespace

Importer op_table_importer() {
  return {"op-table", "CSV with one call a row: rank, op, and seq, peer, count, tag, group, dtype, root",
          sniff_op_table, read_op_table};
}

}  // namespace ddx::formats
