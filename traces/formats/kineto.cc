#include "traces/formats/kineto.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "base/error.h"
#include "base/printable.h"
#include "traces/formats/flight_recorder_names.h"
#include "traces/formats/kineto_events.h"
#include "traces/formats/log_scan.h"
#include "traces/formats/nccl_kernel_name.h"
#include "traces/formats/record_builder.h"

namespace ddx::formats {
namespace {

constexpr std::size_t kMostName = 255;
constexpr Nanos kLargestGap = 10 * kMicrosecond;
constexpr Nanos kLongestMerged = kMillisecond;
constexpr Nanos kLatest = INT64_MAX / 2;

// One row to come.
struct Row {
  Nanos when = 0;  // of its issue, or else of its start
  std::uint32_t order = 0;
  Signature signature;
  Op op;
  std::optional<std::uint32_t> peer;
  bool carries_batch = false;  // its kernel is that of all sends and receives that are posted together
  bool is_marker = false;      // and it is none of them
};

class Profile {
 public:
  Profile(const Source& source, const ImportOptions& options, Evidence& out)
      : source_(source), options_(options), out_(out), positions_(out.trace), builder_(out.trace, positions_) {}

  void read(KinetoProfile profile);

 private:
  std::optional<Nanos> absolute(std::optional<Nanos> time) const;
  void join_kernels();
  void add_record(const KinetoRecord& record);
  void add_lone_kernels();
  void add_computation();
  void add_untimed(const KinetoKernel& kernel);
  void describe(const KinetoCall& call, Row& row);
  void add_splits(const KinetoCall& call, Signature& signature);
  std::optional<CommId> comm_of(const KinetoCall& call);
  std::vector<RankId> ranks_of(const KinetoCall& call, const KinetoGroup* group);
  bool is_batch(const KinetoKernel& kernel) const {
    return kernel.call != KinetoKernel::kNoCall && profile_.kernel_calls[kernel.call].name == "coalesced";
  }
  void join_batches();
  void emit();
  RankRecord& finish();
  void report();
  void count(std::string_view name, DiagnosticSeverity severity, std::string_view what, std::uint64_t times);
  std::uint32_t next() { return static_cast<std::uint32_t>(rows_.size()); }

  const Source& source_;
  const ImportOptions& options_;
  Evidence& out_;
  KinetoProfile profile_;
  MemberPositions positions_;
  RecordBuilder builder_;
  std::vector<Row> rows_;
  std::unordered_map<std::int64_t, std::vector<std::uint32_t>, KeyedHash> kernels_of_;  // by external id
  std::vector<bool> joined_;                                                            // by kernel
  std::map<std::tuple<std::string, std::string, std::string>, CommId> comms_;
  std::uint64_t without_arguments_ = 0, unknown_ops_ = 0, cut_lists_ = 0, lone_kernels_ = 0, unknown_types_ = 0;
  std::uint64_t bad_numbers_ = 0, unplaced_ = 0;
  bool timed_calls_ = false;  // calls of the host have times
  std::string unknown_op_, unknown_type_, bad_number_;
};

std::optional<Nanos> Profile::absolute(std::optional<Nanos> time) const {
  if (!time) return std::nullopt;
  Nanos sum = 0;
  if (__builtin_add_overflow(*time, profile_.base_time.value_or(0), &sum)) return std::nullopt;
  // So that no difference of two overflows.
  return sum >= -kLatest && sum <= kLatest ? std::optional(sum) : std::nullopt;
}

void Profile::join_kernels() {
  joined_.assign(profile_.kernels.size(), false);
  for (std::uint32_t i = 0; i < profile_.kernels.size(); ++i) {
    const KinetoKernel& kernel = profile_.kernels[i];
    if (kernel.communicates && kernel.external_id) kernels_of_[*kernel.external_id].push_back(i);
  }
}

// The list of pg_config, which is whole, before the one beside the call, which is cut where it is long.
std::vector<RankId> Profile::ranks_of(const KinetoCall& call, const KinetoGroup* group) {
  if (group != nullptr && !group->ranks.empty()) return group->ranks;
  if (contains(call.ranks, "...")) {
    ++cut_lists_;
    return {};
  }
  auto ranks = parse_rank_list(call.ranks);
  return ranks ? std::move(*ranks) : std::vector<RankId>();
}

std::optional<CommId> Profile::comm_of(const KinetoCall& call) {
  if (call.group.empty() && call.ranks.empty()) return std::nullopt;
  const auto [at, fresh] = comms_.try_emplace({call.group, call.description, call.ranks});
  if (!fresh) return at->second;
  const auto noted = profile_.groups.find(call.group);
  const KinetoGroup* group = noted == profile_.groups.end() ? nullptr : &noted->second;
  Communicator communicator;
  communicator.name = out_.trace.strings.intern(printable(call.group, kMostName));
  communicator.description = out_.trace.strings.intern(printable(call.description, kMostName));
  communicator.members = ranks_of(call, group);
  if (communicator.members.empty() && call.size && *call.size > 0 && *call.size < UINT32_MAX) {
    communicator.declared_size = static_cast<std::uint32_t>(*call.size);
  }
  return at->second = out_.trace.intern(std::move(communicator));
}

void Profile::add_splits(const KinetoCall& call, Signature& signature) {
  const auto read = [](const std::string& text, std::vector<std::uint64_t>& to) {
    const auto numbers = parse_rank_list(text);
    if (!numbers) return;  // none, or cut
    for (const RankId number : *numbers) to.push_back(static_cast<std::uint64_t>(std::max(number.value, 0)));
  };
  if (signature.kind != OpKind::all_to_all) return;
  read(call.splits_in, signature.split_in);
  read(call.splits_out, signature.split_out);
}

void Profile::describe(const KinetoCall& call, Row& row) {
  Signature& signature = row.signature;
  signature.kind = parse_profiling_name(call.name).kind;
  signature.name = out_.trace.strings.intern(printable(call.name, kMostName));
  signature.async = true;  // of a stream: who needs the result waits on the device
  if (signature.kind == OpKind::unknown && ++unknown_ops_ == 1) unknown_op_ = call.name;
  if (!call.type.empty()) {
    signature.type_in = signature.type_out = recorder_data_type(call.type);
    if (signature.type_in == DataType::unknown && ++unknown_types_ == 1) unknown_type_ = call.type;
  }
  if (!call.bad_number.empty() && ++bad_numbers_ == 1) bad_number_ = call.bad_number;
  if (call.count_in && *call.count_in >= 0) signature.count_in = static_cast<std::uint64_t>(*call.count_in);
  if (call.count_out && *call.count_out >= 0) signature.count_out = static_cast<std::uint64_t>(*call.count_out);
  add_splits(call, signature);
  if (call.seq && *call.seq >= 0 && *call.seq < UINT32_MAX) row.op.seq = static_cast<std::uint32_t>(*call.seq);
  const auto comm = comm_of(call);
  if (comm) row.op.comm_slot = builder_.comm_slot(*comm);
  const auto peer = signature.kind == OpKind::send ? call.destination : call.source;
  const bool listed = comm && !out_.trace.communicator(*comm).members.empty();
  if (is_p2p(signature.kind) && peer && listed && row.op.comm_slot) {
    row.peer = builder_.peer_slot(*row.op.comm_slot, *peer);
  }
}

void Profile::add_record(const KinetoRecord& record) {
  if (!record.call.has_arguments()) {
    ++without_arguments_;
    return;
  }
  if (record.call.name == "wait") return;  // of the host, for an earlier call
  Row row;
  row.order = next();
  row.op.issue = absolute(record.time);
  describe(record.call, row);
  const auto at = record.external_id ? kernels_of_.find(*record.external_id) : kernels_of_.end();
  if (at != kernels_of_.end()) {
    for (const std::uint32_t index : at->second) {
      const KinetoKernel& kernel = profile_.kernels[index];
      joined_[index] = true;
      const auto start = absolute(kernel.time), end = absolute(kernel.time + kernel.length);
      if (start && kernel.timed) row.op.start = std::min(row.op.start.value_or(*start), *start);
      if (end && kernel.timed) row.op.end = std::max(row.op.end.value_or(*end), *end);
      row.signature.stream = kernel.stream;
      row.op.state = OpState::completed;  // without a kernel nobody knows: its end may lie outside the window
      const NcclKernelName name = parse_nccl_kernel(out_.trace.text(kernel.name));
      if (name.kind == row.signature.kind) row.signature.redop = name.redop;
      row.carries_batch = row.signature.kind == OpKind::coalesced || is_batch(kernel);
    }
  }
  row.when = row.op.issue.value_or(row.op.start.value_or(0));
  if (timed_calls_ && !row.op.issue && !row.op.start) ++unplaced_;
  rows_.push_back(std::move(row));
}

// Kernels whose call on the host was not recorded: by their own arguments, or else by their names.
void Profile::add_lone_kernels() {
  for (std::size_t i = 0; i < profile_.kernels.size(); ++i) {
    const KinetoKernel& kernel = profile_.kernels[i];
    if (!kernel.communicates || joined_[i]) continue;
    Row row;
    row.order = next();
    const std::string_view text = out_.trace.text(kernel.name);
    const NcclKernelName name = parse_nccl_kernel(text);
    if (kernel.call != KinetoKernel::kNoCall) {
      describe(profile_.kernel_calls[kernel.call], row);
    } else {
      ++lone_kernels_;
      row.signature.kind = name.kind;
      row.signature.type_in = row.signature.type_out = name.type;
      row.signature.name = out_.trace.strings.intern(std::string(text.substr(0, text.find_first_of("(<"))));
      row.signature.async = true;
    }
    if (name.kind == row.signature.kind) row.signature.redop = name.redop;
    row.signature.stream = kernel.stream;
    row.op.state = OpState::completed;
    if (kernel.timed) row.op.start = absolute(kernel.time);
    if (kernel.timed) row.op.end = absolute(kernel.time + kernel.length);
    row.when = row.op.start.value_or(0);
    if (!row.op.start) ++unplaced_;
    rows_.push_back(std::move(row));
  }
}

// Work of which nobody knows how long it was, nor when.
void Profile::add_untimed(const KinetoKernel& kernel) {
  Row row;
  row.order = next();
  row.signature.kind = OpKind::compute;
  row.signature.stream = kernel.stream;
  row.signature.name = kernel.name;
  row.op.state = OpState::completed;
  rows_.push_back(std::move(row));
}

void Profile::add_computation() {
  std::vector<const KinetoKernel*> kernels;
  for (const KinetoKernel& kernel : profile_.kernels) {
    if (kernel.communicates) continue;
    if (kernel.timed) {
      kernels.push_back(&kernel);
    } else {
      add_untimed(kernel);
    }
  }
  std::stable_sort(kernels.begin(), kernels.end(), [](const KinetoKernel* a, const KinetoKernel* b) {
    return std::tie(a->stream, a->time) < std::tie(b->stream, b->time);
  });
  for (std::size_t first = 0; first < kernels.size();) {
    const KinetoKernel* longest = kernels[first];
    const Nanos begin = kernels[first]->time;
    Nanos end = begin + kernels[first]->length;
    std::size_t last = first + 1;
    for (; last < kernels.size(); ++last) {
      const KinetoKernel& kernel = *kernels[last];
      const bool apart = kernel.stream != kernels[first]->stream || kernel.time - end > kLargestGap;
      if (apart || kernel.time + kernel.length - begin > kLongestMerged) break;
      end = std::max(end, kernel.time + kernel.length);
      if (kernel.length > longest->length) longest = &kernel;
    }
    Row row;
    row.order = next();
    row.signature.kind = OpKind::compute;
    row.signature.compute_time = end - begin;
    row.signature.stream = kernels[first]->stream;
    row.signature.name = longest->name;
    row.op.start = absolute(begin);
    row.op.end = absolute(end);
    row.op.state = OpState::completed;
    row.when = row.op.start.value_or(0);
    rows_.push_back(std::move(row));
    first = last;
  }
}

// What is posted together has one kernel, which is recorded with the last of its calls, or with a call of its own that
// stands for all.
void Profile::join_batches() {
  std::vector<std::size_t> open;  // sends and receives before that have no kernel
  std::uint32_t batches = 0;
  for (std::size_t at = 0; at < rows_.size(); ++at) {
    Row& row = rows_[at];
    if (!row.op.issue) continue;
    const bool call = is_p2p(row.signature.kind);
    if (!open.empty() && (row.op.comm_slot != rows_[open.front()].op.comm_slot || (!call && !row.carries_batch)))
      open.clear();
    if (call && !row.op.start) open.push_back(at);
    if (!row.carries_batch || !row.op.start) continue;
    for (const std::size_t part : open) {
      rows_[part].op.start = row.op.start;
      rows_[part].op.end = row.op.end;
      rows_[part].op.state = OpState::completed;
      rows_[part].op.group = batches;
      rows_[part].signature.stream = row.signature.stream;
    }
    if (!open.empty() && call) row.op.group = batches;
    row.is_marker = !open.empty() && !call;
    if (!open.empty()) ++batches;
    open.clear();
  }
  std::erase_if(rows_, [](const Row& row) { return row.is_marker; });
}

void Profile::emit() {
  std::sort(rows_.begin(), rows_.end(),
            [](const Row& a, const Row& b) { return std::tie(a.when, a.order) < std::tie(b.when, b.order); });
  join_batches();
  for (Row& row : rows_) builder_.append(std::move(row.signature), row.op, row.peer);
}

RankRecord& Profile::finish() {
  std::optional<RankId> rank;
  if (options_.rank_from) rank = rank_of_path(source_.path, options_);
  if (!rank && profile_.rank) rank = RankId::from(*profile_.rank);
  if (!rank) rank = rank_of_path(source_.path, options_);
  RankRecord& record = builder_.finish(rank);
  record.backend = printable(profile_.backend, kMostName);
  record.library_version = printable(profile_.library_version, kMostName);
  record.device = profile_.device;
  record.head_lost = record.tail_lost = true;  // a window of the run
  record.stream_ordered = is_stream_ordered(record.backend);
  if (!profile_.kernels.empty()) record.timing = true;
  if (profile_.world_size && *profile_.world_size > 0 && *profile_.world_size <= INT32_MAX) {
    out_.trace.world_size = static_cast<std::uint32_t>(*profile_.world_size);
  }
  Input& input = out_.inputs.front();
  input.file_rank = record.rank;
  if (record.rank) input.ranks.insert(*record.rank);
  return record;
}

void Profile::count(std::string_view name, DiagnosticSeverity severity, std::string_view what, std::uint64_t times) {
  if (times > 0) out_.diagnostics.count(name, severity, fmt::format("{}: {}", source_.path, what), times);
}

void Profile::report() {
  using enum DiagnosticSeverity;
  count("kineto.no_arguments", notice,
        "collectives without arguments: only the names of their kernels are known. PyTorch 2.3 and later write them "
        "where torch.profiler runs with record_shapes=True",
        without_arguments_);
  count("kineto.kernel_alone", notice, "communication kernels without a call on the host: their group is unknown",
        lone_kernels_);
  count("kineto.unknown_op", info, "an operation that ddx does not know: " + printable(unknown_op_, 80), unknown_ops_);
  count("kineto.unknown_dtype", info, "a datatype that ddx does not know: " + printable(unknown_type_, 80),
        unknown_types_);
  count("kineto.cut_rank_list", notice,
        "lists of ranks that the profiler cut (\"...\"), and pg_config has no whole one", cut_lists_);
  // What a run of the calls, or its times, would rest on and is not there: error.
  count("kineto.bad_event", data_loss, "kernels without a usable time (ts, dur): expected numbers, dur 0 or more",
        profile_.bad_times);
  count("kineto.unplaced_call", error,
        "calls without a usable time: where they stood among the others is not known, and what is not known proves "
        "nothing",
        unplaced_);
  count("kineto.bad_number", error,
        fmt::format("calls of a size that cannot be: {}; expected a number of 0 or more", printable(bad_number_, 80)),
        bad_numbers_);
  count("kineto.too_many_events", error,
        fmt::format("events beyond the limit of {}, left out", options_.max_ops_per_file), profile_.left_out);
  count("kineto.mended_json", notice, "text that is no strict JSON (NaN, stray commas, bad escapes), mended",
        profile_.mends);
  if (profile_.broken_at) {
    count("kineto.truncated_file", error,
          fmt::format("cut or damaged at byte {}: {} events before it were read", *profile_.broken_at, profile_.events),
          1);
  }
}

void Profile::read(KinetoProfile profile) {
  profile_ = std::move(profile);
  if (profile_.events == 0 && profile_.broken_at) {
    throw Error(source_.path, {*profile_.broken_at, std::nullopt}, "expected JSON with trace events");
  }
  if (profile_.events == 0) throw Error(source_.path, {}, "expected trace events, and there are none");
  join_kernels();
  timed_calls_ = std::any_of(profile_.records.begin(), profile_.records.end(),
                             [](const KinetoRecord& record) { return record.time.has_value(); });
  for (const KinetoRecord& record : profile_.records) add_record(record);
  add_lone_kernels();
  add_computation();
  emit();
  finish();
  report();
}

void read_kineto(const Source& source, const ImportOptions& options, Evidence& out) {
  Profile(source, options, out).read(read_kineto_events(source.bytes, out.trace.strings, options.max_ops_per_file));
}

void read_host(const Source& source, const ImportOptions& options, Evidence& out) {
  Profile(source, options, out).read(read_host_trace(source.bytes, options.max_ops_per_file));
}

Sniff sniff_host(const std::string&, std::string_view head) {
  const std::size_t begin = head.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (begin == std::string_view::npos || head[begin] != '{') return Sniff::no;
  return contains(head, "\"schema\"") && contains(head, "\"nodes\"") && contains(head, "\"ctrl_deps\"") ? Sniff::sure
                                                                                                        : Sniff::no;
}

// Of what other tools write as trace events, a profile is told by its own keys.
Sniff sniff_kineto(const std::string&, std::string_view head) {
  const std::size_t begin = head.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (begin == std::string_view::npos || (head[begin] != '{' && head[begin] != '[')) return Sniff::no;
  const bool events = contains(head, "\"traceEvents\"") || contains(head, "\"ph\"");
  const bool marks = contains(head, "\"deviceProperties\"") || contains(head, "\"distributedInfo\"") ||
                     contains(head, "\"External id\"") || contains(head, "\"cpu_op\"") ||
                     contains(head, "record_param_comms") || contains(head, "\"baseTimeNanoseconds\"");
  if (head[begin] == '{' && contains(head, "\"schemaVersion\"") && (events || marks)) return Sniff::sure;
  return events && marks ? Sniff::sure : Sniff::no;
}

}  // namespace

Importer kineto_importer() {
  return {"kineto", "profiles of torch.profiler (Kineto's trace events in JSON), one file a rank", sniff_kineto,
          read_kineto};
}

Importer host_trace_importer() {
  return {"host-trace", "host execution traces of PyTorch (JSON), one file a rank", sniff_host, read_host};
}

}  // namespace ddx::formats
