#include "traces/formats/perfetto_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "base/hash.h"
#include "traces/formats/timeline_layout.h"

namespace ddx::formats {
namespace {

std::string json_text(std::string_view text) {
  return nlohmann::json(std::string(text)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Microseconds with the nanoseconds as decimals.
std::string micros(Nanos time) {
  const Nanos part = time % kMicrosecond;
  return part == 0 ? fmt::format("{}", time / kMicrosecond) : fmt::format("{}.{:03}", time / kMicrosecond, part);
}

constexpr std::int64_t kFirstOther = 1'000'000'000;  // process numbers of records that are not a rank's first

// The calls that meet: of one collective, or one send with its receive.
struct MeetKey {
  std::uint64_t comm_and_kind, pair, call;
  bool operator==(const MeetKey&) const = default;
};
struct MeetKeyHash {
  std::size_t operator()(const MeetKey& key) const {
    RowHash hash;
    for (const std::uint64_t word : {key.comm_and_kind, key.pair, key.call}) hash.add(word);
    return hash.value();
  }
};

// An arrow leaves its first call and ends in its last, by time and then by place in the file: readers follow it so.
struct Meeting {
  std::uint64_t number = 0;
  Nanos first_time = 0, last_time = 0;
  std::uint32_t first_record = 0, last_record = 0;
  bool left = false, arrived = false;  // written already
};

class Writer {
 public:
  Writer(const Trace& trace, std::ostream& out, const PerfettoLimits& limits)
      : trace_(trace), out_(out), limits_(limits), span_(span_of(trace)) {}

  PerfettoCount write();

 private:
  std::optional<MeetKey> key_of(const RankRecord& record, const TimelineSlice& slice) const;
  void find_meetings();
  void join(std::uint32_t record, const TimelineSlice& slice);
  void write_record(std::uint32_t index);
  void write_names(std::uint32_t index, const TimelineLayout& layout);
  void write_slice(std::uint32_t index, const TimelineSlice& slice);
  void write_arrow(std::uint32_t index, const TimelineSlice& slice);
  std::string arguments(const RankRecord& record, const TimelineSlice& slice) const;
  std::string label(const RankRecord& record, std::uint32_t row) const;
  std::optional<std::int64_t> peer_rank(const RankRecord& record, std::uint32_t row) const;
  void event(const std::string& text);
  void number_processes();

  const Trace& trace_;
  std::ostream& out_;
  const PerfettoLimits& limits_;
  TimelineSpan span_;
  PerfettoCount count_;
  std::vector<std::int64_t> processes_;  // by record
  std::unordered_map<MeetKey, Meeting, MeetKeyHash> meetings_;
  bool first_event_ = true;
};

// The rank's number; further records of a rank and those of none come behind all ranks.
void Writer::number_processes() {
  std::unordered_set<std::int32_t> taken;
  for (std::uint32_t i = 0; i < trace_.ranks.size(); ++i) {
    const auto rank = trace_.ranks[i].rank;
    const bool own = rank && rank->value >= 0 && rank->value < kFirstOther && taken.insert(rank->value).second;
    processes_.push_back(own ? rank->value : kFirstOther + std::int64_t{i});
  }
}

std::optional<MeetKey> Writer::key_of(const RankRecord& record, const TimelineSlice& slice) const {
  const Program& program = trace_.program(record);
  const Signature& signature = trace_.signature(program.signature(slice.row));
  const auto slot = program.comm_slot(slice.row);
  if (slice.call == 0 || !slot || *slot >= record.comms.size()) return std::nullopt;
  MeetKey key{std::uint64_t{record.comms[*slot].value} << 1, 0, slice.call};
  if (is_collective(signature.kind)) return key;
  const auto peer = trace_.peer(record, signature);
  const std::uint32_t own = *slot < record.comm_rank.size() ? record.comm_rank[*slot] : RankRecord::kNoPosition;
  if (!peer || *peer < 0 || own == RankRecord::kNoPosition) return std::nullopt;
  const auto other = static_cast<std::uint32_t>(*peer);
  const bool sends = signature.kind == OpKind::send;
  key.comm_and_kind |= 1;
  key.pair = std::uint64_t{sends ? own : other} << 32 | (sends ? other : own);
  return key;
}

void Writer::join(std::uint32_t record, const TimelineSlice& slice) {
  const auto key = key_of(trace_.ranks[record], slice);
  if (!key) return;
  auto at = meetings_.find(*key);
  if (at == meetings_.end()) {
    if (meetings_.size() >= limits_.arrows) return;
    at = meetings_.emplace(*key, Meeting{meetings_.size() + 1, slice.begin, slice.begin, record, record}).first;
  }
  Meeting& meeting = at->second;
  if (slice.begin < meeting.first_time) {
    meeting.first_time = slice.begin;
    meeting.first_record = record;
  }
  if (slice.begin >= meeting.last_time) {
    meeting.last_time = slice.begin;
    meeting.last_record = record;
  }
}

void Writer::find_meetings() {
  std::uint64_t slices = 0;
  for (std::uint32_t i = 0; i < trace_.ranks.size() && slices < limits_.slices; ++i) {
    TimelineLayout(trace_, trace_.ranks[i], span_).run([&](const TimelineSlice& slice) {
      join(i, slice);
      return ++slices < limits_.slices;
    });
  }
}

void Writer::event(const std::string& text) {
  out_ << (first_event_ ? "\n" : ",\n") << text;
  first_event_ = false;
}

// The global rank of root or peer; its position where the members are not listed.
std::optional<std::int64_t> Writer::peer_rank(const RankRecord& record, std::uint32_t row) const {
  const Program& program = trace_.program(record);
  const auto position = trace_.peer(record, trace_.signature(program.signature(row)));
  const auto slot = program.comm_slot(row);
  if (!position || *position < 0 || !slot || *slot >= record.comms.size()) return position;
  const auto& members = trace_.communicator(record.comms[*slot]).members;
  const auto index = static_cast<std::size_t>(*position);
  return index < members.size() ? std::int64_t{members[index].value} : *position;
}

std::string Writer::label(const RankRecord& record, std::uint32_t row) const {
  const Signature& signature = trace_.signature(trace_.program(record).signature(row));
  const std::string_view name = trace_.text(signature.name);
  if (!name.empty() && (signature.kind == OpKind::unknown || signature.kind == OpKind::compute))
    return std::string(name);
  const auto peer = is_p2p(signature.kind) ? peer_rank(record, row) : std::nullopt;
  if (!peer) return std::string(name_of(signature.kind));
  return fmt::format("{} {} {}", name_of(signature.kind), signature.kind == OpKind::send ? "to" : "from", *peer);
}

std::string Writer::arguments(const RankRecord& record, const TimelineSlice& slice) const {
  const Program& program = trace_.program(record);
  const Op op = program.at(OpId(slice.row));
  const Signature& signature = trace_.signature(op.signature);
  std::string text = fmt::format("\"kind\":\"{}\"", name_of(signature.kind));
  const auto number = [&](std::string_view key, const auto& value) {
    if (value) text += fmt::format(",\"{}\":{}", key, *value);
  };
  if (op.comm_slot && *op.comm_slot < record.comms.size()) {
    text += ",\"group\":" + json_text(trace_.text(trace_.communicator(record.comms[*op.comm_slot]).name));
  }
  number("seq", op.seq);
  number("count", signature.count_in);
  number("count out", signature.count_out);
  if (signature.type_in != DataType::unknown) text += fmt::format(",\"dtype\":\"{}\"", name_of(signature.type_in));
  const std::uint64_t size = element_bytes(signature.type_in).value_or(0);
  std::uint64_t bytes = 0;
  if (size > 0 && signature.count_in && !__builtin_mul_overflow(size, *signature.count_in, &bytes)) {
    text += fmt::format(",\"bytes\":{}", bytes);
  }
  if (signature.redop != RedOp::unknown) text += fmt::format(",\"redop\":\"{}\"", name_of(signature.redop));
  if (is_rooted(signature.kind)) number("root", peer_rank(record, slice.row));
  number("tag", signature.tag);
  if (op.state != OpState::unknown) text += fmt::format(",\"state\":\"{}\"", name_of(op.state));
  if (slice.open) text += ",\"end\":\"not recorded\"";
  if (slice.placed_by_order) text += ",\"time\":\"not recorded: placed by order\"";
  return text;
}

void Writer::write_slice(std::uint32_t index, const TimelineSlice& slice) {
  const RankRecord& record = trace_.ranks[index];
  const Signature& signature = trace_.signature(trace_.program(record).signature(slice.row));
  const std::string_view category = is_collective(signature.kind) || signature.kind == OpKind::coalesced ? "collective"
                                    : is_p2p(signature.kind)                                             ? "p2p"
                                    : signature.kind == OpKind::compute                                  ? "compute"
                                                                                                         : "host";
  event(fmt::format(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"cat":"{}","name":{},"args":{{{}}}}})",
                    processes_[index], slice.track, micros(slice.begin), micros(slice.length), category,
                    json_text(label(record, slice.row)), arguments(record, slice)));
}

void Writer::write_arrow(std::uint32_t index, const TimelineSlice& slice) {
  const auto key = key_of(trace_.ranks[index], slice);
  const auto at = key ? meetings_.find(*key) : meetings_.end();
  if (at == meetings_.end() || at->second.first_record == at->second.last_record) return;
  Meeting& meeting = at->second;
  std::string_view phase = "t";
  if (index == meeting.first_record || index == meeting.last_record) {
    // Calls of a batch share a number: one of them carries the arrow.
    const bool first = index == meeting.first_record;
    bool& done = first ? meeting.left : meeting.arrived;
    if (done || slice.begin != (first ? meeting.first_time : meeting.last_time)) return;
    done = true;
    phase = first ? "s" : "f";
  }
  event(fmt::format(R"({{"ph":"{}","id":{},"pid":{},"tid":{},"ts":{},"cat":"match","name":"match"{}}})", phase,
                    meeting.number, processes_[index], slice.track, micros(slice.begin),
                    phase == "f" ? R"(,"bp":"e")" : ""));
}

void Writer::write_names(std::uint32_t index, const TimelineLayout& layout) {
  const RankRecord& record = trace_.ranks[index];
  const std::int64_t pid = processes_[index];
  std::string name = record.rank ? fmt::format("rank {}", record.rank->value) : std::string("rank not known");
  if (!record.host.empty()) name += " on " + record.host;
  if (!has_times(trace_.program(record))) name += " (no times recorded: by order, 10 us each)";
  const auto meta = [&](std::string_view what, const std::string& arguments) {
    event(fmt::format(R"({{"ph":"M","pid":{},"name":"{}","args":{{{}}}}})", pid, what, arguments));
  };
  meta("process_name", "\"name\":" + json_text(name));
  meta("process_sort_index", fmt::format("\"sort_index\":{}", index));
  for (std::size_t track = 0; track < layout.tracks().size(); ++track) {
    const auto thread = [&](std::string_view what, const std::string& arguments) {
      event(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"{}","args":{{{}}}}})", pid, track, what, arguments));
    };
    thread("thread_name", "\"name\":" + json_text(layout.tracks()[track]));
    thread("thread_sort_index", fmt::format("\"sort_index\":{}", track));
  }
}

void Writer::write_record(std::uint32_t index) {
  TimelineLayout layout(trace_, trace_.ranks[index], span_);
  layout.run([&](const TimelineSlice& slice) {
    if (count_.slices >= limits_.slices) {
      count_.cut = true;
      return false;
    }
    ++count_.slices;
    if (slice.placed_by_order) ++count_.without_times;
    write_slice(index, slice);
    write_arrow(index, slice);
    return true;
  });
  write_names(index, layout);
}

PerfettoCount Writer::write() {
  number_processes();
  find_meetings();
  out_ << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
  for (std::uint32_t i = 0; i < trace_.ranks.size() && !count_.cut; ++i) write_record(i);
  out_ << "\n],\"otherData\":{\"writer\":\"ddx\"";
  if (span_.known) out_ << ",\"base_time_ns\":\"" << span_.first << '"';
  if (count_.without_times > 0) {
    out_ << ",\"without_times\":\"" << count_.without_times << " operations have no recorded time: placed by order\"";
  }
  if (count_.cut) out_ << ",\"cut\":\"only the first " << count_.slices << " operations are in this file\"";
  out_ << "}}\n";
  return count_;
}

}  // namespace

PerfettoCount write_perfetto(const Trace& trace, std::ostream& out, const PerfettoLimits& limits) {
  return Writer(trace, out, limits).write();
}

}  // namespace ddx::formats
