#include "traces/formats/ddx.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/printable.h"
#include "traces/formats/ddx_codes.h"
#include "traces/formats/ddx_file.h"
#include "traces/formats/flight_recorder_names.h"
#include "traces/formats/ops_text.h"
#include "traces/formats/process_log.h"

namespace ddx::formats {
namespace {

using capture::Call;
using capture::Event;
using capture::EventCode;
using capture::Field;
using capture::Layer;
using capture::More;
using capture::RecordType;

constexpr std::size_t kMostFrames = 64;
constexpr std::size_t kMostSlots = 0xfffe;
constexpr std::size_t kMostText = 1024;
constexpr std::uint64_t kLatest = std::uint64_t{1} << 62;  // the year 2116

Layer layer_of(const Call& call) { return static_cast<Layer>(call.flags & capture::kLayerMask); }

// What a call's further records say.
struct Further {
  std::vector<std::uint64_t> split_in, split_out;
  std::vector<std::int32_t> members;
  std::optional<std::uint64_t> count_out;
  std::optional<std::int64_t> tag;
  std::optional<DataType> type_out;
  std::optional<std::uint32_t> name;
};

class CaptureReader {
 public:
  CaptureReader(const Source& source, const ImportOptions& options, Evidence& out)
      : source_(source), options_(options), out_(out), trace_(out.trace), file_(source.path, source.bytes) {}
  void read();

 private:
  struct Kept {
    Call call;
    Further further;
    std::uint32_t batch = 0;  // its own for each group of calls
    // Of the calls that it made in layers below, where these tell their ends.
    bool inner_told = false, inner_open = false;
    std::int64_t inner_end = 0;
  };

  StringId text(std::uint32_t id);
  std::optional<std::uint16_t> slot_of(std::uint32_t group);
  Communicator communicator(std::uint32_t id, const capture::Group& group);
  std::optional<CallSiteId> site_of(std::uint32_t frame);
  std::uint32_t peer_slot(std::int32_t position);
  std::optional<Nanos> wall(std::int64_t time);
  void take_call(std::uint64_t number, const Call& call);
  bool join_outer(std::uint64_t number, const Call& call);
  Further further_of(std::uint64_t number, const Call& call) const;
  void take_event(const Event& event);
  void tell(LogFact fact, const Event& event, std::string line);
  void append(const Kept& kept);
  SignatureId signature_of(const Kept& kept, std::optional<std::uint16_t> slot);
  std::uint32_t batch_of(std::uint16_t number);
  void finish();
  void note_losses();

  const Source& source_;
  const ImportOptions& options_;
  Evidence& out_;
  Trace& trace_;
  CaptureFile file_;
  RankRecord record_;
  Program program_;
  std::vector<Kept> calls_;
  std::unordered_map<std::uint64_t, std::size_t, KeyedHash> call_index_;  // by number of the record
  std::unordered_map<std::uint32_t, std::uint16_t, KeyedHash> slots_;     // by group
  std::unordered_map<std::uint32_t, StringId, KeyedHash> texts_;
  std::unordered_map<std::uint32_t, std::optional<CallSiteId>, KeyedHash> sites_;
  std::unordered_map<std::int32_t, std::uint32_t, KeyedHash> peers_;
  std::optional<std::uint16_t> batch_;
  std::uint32_t batches_ = 0;
  std::uint64_t missing_ = 0, bad_times_ = 0;
  bool too_many_ = false, left_ = false, any_start_ = false;
};

StringId CaptureReader::text(std::uint32_t id) {
  if (id == 0) return {};
  const auto [at, fresh] = texts_.try_emplace(id);
  if (fresh) {
    if (const auto found = file_.text(id)) at->second = trace_.strings.intern(printable_text(*found, kMostText));
  }
  return at->second;
}

// nullopt: none was recorded, or the number is damaged: no clock shows it, and sums of it would not fit.
std::optional<Nanos> CaptureReader::wall(std::int64_t time) {
  if (time == 0) return std::nullopt;
  const auto sum = static_cast<std::uint64_t>(time) - static_cast<std::uint64_t>(file_.header().start_monotonic) +
                   static_cast<std::uint64_t>(file_.header().start_realtime);
  if (sum <= kLatest) return static_cast<Nanos>(sum);
  ++bad_times_;
  return std::nullopt;
}

Communicator CaptureReader::communicator(std::uint32_t id, const capture::Group& group) {
  Communicator out;
  out.name = text(group.name);
  out.description = text(group.description);
  std::vector<std::int32_t> ranks = file_.members(id, group);
  const auto outer = group.outer == 0 ? std::nullopt : file_.group(group.outer);
  if (outer && out.name == StringId()) {
    out.name = text(outer->name);
    out.description = text(outer->description);
    if (ranks.empty() && outer->size == group.size) ranks = file_.members(group.outer, *outer);
  }
  if (out.name == StringId()) {
    out.name =
        trace_.strings.intern(group.hash != 0 ? fmt::format("comm 0x{:x}", group.hash) : fmt::format("comm {}", id));
    out.synthesized = group.hash == 0;
  }
  for (const std::int32_t rank : ranks) out.members.emplace_back(rank);
  if (ranks.empty() && group.size > 0) out.declared_size = static_cast<std::uint32_t>(group.size);
  return out;
}

std::optional<std::uint16_t> CaptureReader::slot_of(std::uint32_t id) {
  if (const auto at = slots_.find(id); at != slots_.end()) return at->second;
  const auto group = file_.group(id);
  if (!group || record_.comms.size() >= kMostSlots) return std::nullopt;
  const auto slot = static_cast<std::uint16_t>(record_.comms.size());
  record_.comms.push_back(trace_.intern(communicator(id, *group)));
  record_.comm_rank.push_back(group->position >= 0 ? static_cast<std::uint32_t>(group->position)
                                                   : RankRecord::kNoPosition);
  if (record_.backend.empty()) record_.backend = trace_.text(text(group->backend));
  slots_.emplace(id, slot);
  return slot;
}

std::optional<CallSiteId> CaptureReader::site_of(std::uint32_t id) {
  if (id == 0) return std::nullopt;
  const auto [at, fresh] = sites_.try_emplace(id);
  if (!fresh) return at->second;
  CallSite site;
  for (std::uint32_t next = id; next != 0 && site.frames.size() < kMostFrames;) {
    const auto frame = file_.frame(next);
    if (!frame) break;
    StringId function = text(frame->function);
    if (function == StringId() && frame->address != 0) {
      function = trace_.strings.intern(fmt::format("0x{:x}", frame->address));
    }
    site.frames.push_back({function, text(frame->file), frame->line});
    next = frame->caller < next ? frame->caller : 0;  // callers are written first: no circles
  }
  if (!site.frames.empty()) at->second = trace_.intern(std::move(site));
  return at->second;
}

std::uint32_t CaptureReader::peer_slot(std::int32_t position) {
  const auto [at, fresh] = peers_.try_emplace(position, static_cast<std::uint32_t>(record_.peers.size()));
  if (fresh) record_.peers.push_back(position);
  return at->second;
}

Further CaptureReader::further_of(std::uint64_t number, const Call& call) const {
  Further out;
  for (std::uint64_t i = 1; i <= call.more; ++i) {
    const auto bytes = file_.ring(number + i);
    if (!bytes) break;
    const auto more = CaptureFile::as<More>(*bytes);
    if (more.type != static_cast<std::uint8_t>(RecordType::more)) break;
    const std::size_t count = std::min<std::size_t>(more.count, std::size(more.values));
    for (std::size_t k = 0; k < count; ++k) {
      const std::int64_t value = more.values[k];
      switch (static_cast<Field>(more.field)) {
        case Field::split_in:
          out.split_in.push_back(static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0)));
          break;
        case Field::split_out:
          out.split_out.push_back(static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0)));
          break;
        case Field::count_out:
          if (value >= 0) out.count_out = static_cast<std::uint64_t>(value);
          break;
        case Field::tag: out.tag = value; break;
        case Field::name: out.name = static_cast<std::uint32_t>(value); break;
        case Field::element_out: out.type_out = data_type_of(value); break;
        case Field::members: out.members.push_back(RankId(value).value); break;
        default: break;
      }
    }
  }
  return out;
}

// Numbers of batches begin again; two of one number are never near each other.
std::uint32_t CaptureReader::batch_of(std::uint16_t number) {
  if (batch_ != number) {
    batch_ = number;
    ++batches_;
  }
  return batches_;
}

// A call that an outer layer's made: its times are that call's. True where that one is known.
bool CaptureReader::join_outer(std::uint64_t number, const Call& call) {
  if (call.outer_back == 0 || call.outer_back > number) return false;
  const auto at = call_index_.find(number - call.outer_back);
  if (at == call_index_.end()) return false;
  Kept& outer = calls_[at->second];
  if (layer_of(outer.call) >= layer_of(call)) return false;
  if (call.start != 0 && (outer.call.start == 0 || call.start < outer.call.start)) outer.call.start = call.start;
  any_start_ = any_start_ || call.start != 0;
  // It is over once all of them are.
  if ((call.flags & capture::kNoEnd) != 0 && call.end == 0) return true;
  outer.inner_told = true;
  outer.inner_open = outer.inner_open || call.end == 0;
  outer.inner_end = std::max(outer.inner_end, call.end);
  return true;
}

void CaptureReader::take_call(std::uint64_t number, const Call& call) {
  if (join_outer(number, call)) return;
  if (calls_.size() >= options_.max_ops_per_file) {
    too_many_ = true;
    return;
  }
  any_start_ = any_start_ || call.start != 0;
  call_index_.emplace(number, calls_.size());
  calls_.push_back({.call = call, .further = further_of(number, call)});
  if (call.batch != 0) calls_.back().batch = batch_of(call.batch);
}

void CaptureReader::tell(LogFact fact, const Event& event, std::string line) {
  LogEvent out;
  out.input = InputId(0);
  out.text = std::move(line);
  out.rank = record_.rank;
  out.time = wall(event.time);
  if (file_.header().attempt >= 0) out.attempt = static_cast<std::uint32_t>(file_.header().attempt);
  out.host = record_.host;
  out.pid = record_.pid;
  out.fact = std::move(fact);
  out_.events.push_back(std::move(out));
}

void CaptureReader::take_event(const Event& event) {
  const std::string words(trace_.text(text(event.text)));
  switch (static_cast<EventCode>(event.code)) {
    case EventCode::exception: {
      ProcessEnd end;
      end.what = words;
      end.secondary = is_secondary(words);
      if (const auto site = site_of(event.site)) {
        const Frame& frame = trace_.call_site(*site).frames.front();
        end.call_site = fmt::format("{}:{} in {}", trace_.text(frame.file), frame.line, trace_.text(frame.function));
      }
      tell(std::move(end), event, words);
      break;
    }
    case EventCode::async_error:
      tell(NcclWarning{"asynchronous error", words}, event,
           fmt::format("asynchronous error {}: {}", event.value, words));
      break;
    case EventCode::layer_blind:
      out_.diagnostics.count("ddx.not_seen", DiagnosticSeverity::notice, source_.path + ": " + words);
      break;
    case EventCode::torn_down: left_ = true; break;
    default: break;
  }
}

SignatureId CaptureReader::signature_of(const Kept& kept, std::optional<std::uint16_t> slot) {
  const Call& call = kept.call;
  Signature s;
  s.kind = op_kind_of(call.kind);
  s.type_in = s.type_out = data_type_of(call.element);
  if (kept.further.type_out) s.type_out = *kept.further.type_out;
  s.redop = redop_of(call.reduction);
  s.async = (call.flags & capture::kAsync) != 0;
  const bool counted = (call.flags & capture::kNoCount) == 0 && s.kind != OpKind::barrier;
  if (counted && s.kind == OpKind::recv) {
    s.count_out = call.count;
  } else if (counted) {
    s.count_in = call.count;
    bool overflow = false;
    const std::uint64_t size = slot ? trace_.communicator(record_.comms[*slot]).size() : 0;
    if (size > 0) s.count_out = ruled_count_out(s.kind, s.count_in, size, overflow);
  }
  if (kept.further.count_out) s.count_out = kept.further.count_out;
  if (call.peer >= 0) s.peer_slot = peer_slot(call.peer);
  if (call.stream != 0) s.stream = call.stream - 1U;
  s.tag = kept.further.tag;
  s.split_in = kept.further.split_in;
  s.split_out = kept.further.split_out;
  s.members = kept.further.members;
  if (kept.further.name) s.name = text(*kept.further.name);
  return trace_.intern(std::move(s));
}

void CaptureReader::append(const Kept& kept) {
  const Call& call = kept.call;
  Op op;
  op.comm_slot = slot_of(call.group);
  op.signature = signature_of(kept, op.comm_slot);
  if (call.seq != 0) op.seq = call.seq;
  if (kept.batch != 0) op.group = kept.batch;
  op.call_site = site_of(call.site);
  op.issue = wall(call.issue);
  op.start = wall(call.start);
  const bool failed = (call.flags & capture::kFailed) != 0;
  std::int64_t end = call.end;
  if (kept.inner_told) end = kept.inner_open ? 0 : kept.inner_end;
  // An end before the beginning is that of a call whose record this one was written over.
  if (end != 0 && end >= call.issue && !failed) op.end = wall(end);
  if (op.end) {
    op.state = OpState::completed;
  } else if ((call.flags & capture::kNoEnd) != 0) {
    op.state = OpState::unknown;
  } else {
    op.state = op.start ? OpState::started : OpState::scheduled;
  }
  program_.append(op);
}

void CaptureReader::note_losses() {
  const capture::Header& header = file_.header();
  const auto count = [&](std::string_view name, std::string_view what, std::uint64_t times) {
    out_.diagnostics.count(name, DiagnosticSeverity::data_loss, fmt::format("{}: {}", source_.path, what), times);
  };
  if (missing_ > 0)
    count("ddx.unwritten_record", "records that were never finished: their process died, or was at it", missing_);
  if (bad_times_ > 0) count("ddx.bad_time", "times that no clock shows, left out", bad_times_);
  if (header.lost > 0) count("ddx.lost_calls", "calls that could not be recorded", header.lost);
  if (header.lost_strings > 0) count("ddx.lost_texts", "texts that could not be recorded", header.lost_strings);
  if (header.stopped != 0) {
    const bool disk = header.stopped == static_cast<std::uint32_t>(capture::Stopped::disk_full);
    count("ddx.stopped", disk ? "the recorder stopped: the disk is full" : "the recorder stopped", 1);
  }
  if (file_.cut_bytes() > 0) count("ddx.truncated_file", "the last segment is cut", 1);
  if (too_many_) count("ddx.too_many_calls", "calls beyond the limit", 1);
}

void CaptureReader::read() {
  const capture::Header& header = file_.header();
  if (header.rank >= 0) record_.rank = RankId(std::int64_t{header.rank});
  record_.host = printable_text(file_.host(), kMostText);
  record_.pid = header.pid;
  if (header.attempt >= 0) record_.attempt = static_cast<std::uint32_t>(header.attempt);
  for (std::uint64_t number = file_.begin(); number < file_.end(); ++number) {
    const auto bytes = file_.ring(number);
    if (!bytes) {
      ++missing_;
      continue;
    }
    const auto type = static_cast<RecordType>((*bytes)[offsetof(Call, type)]);
    if (type == RecordType::call) take_call(number, CaptureFile::as<Call>(*bytes));
    if (type == RecordType::event) take_event(CaptureFile::as<Event>(*bytes));
  }
  for (const Kept& kept : calls_) append(kept);
  finish();
}

void CaptureReader::finish() {
  const capture::Header& header = file_.header();
  note_losses();
  Input& input = out_.inputs.front();
  if (!record_.rank && calls_.empty()) {
    input.note = "no rank, and no call: a launcher's process";
    return;
  }
  record_.input = InputId(0);
  record_.snapshot = true;
  record_.head_lost = file_.begin() > 0;
  record_.tail_lost = file_.cut_bytes() > 0 || header.stopped != 0 || too_many_;
  record_.whole_program =
      (left_ || header.finished_realtime != 0) && !record_.head_lost && !record_.tail_lost && header.lost == 0;
  record_.stream_ordered = is_stream_ordered(record_.backend);
  record_.progress.resize(record_.comms.size());
  if (!calls_.empty()) record_.timing = any_start_;
  record_.program = ProgramId(trace_.programs.size());
  trace_.programs.push_back(std::move(program_));
  if (header.world_size > 0) trace_.world_size = static_cast<std::uint32_t>(header.world_size);
  input.world_size = trace_.world_size;
  input.file_rank = record_.rank;
  if (record_.rank) input.ranks.insert(*record_.rank);
  trace_.ranks.push_back(std::move(record_));
}

Sniff sniff(const std::string&, std::string_view head) {
  return CaptureFile::is_capture(head) ? Sniff::sure : Sniff::no;
}

void read(const Source& source, const ImportOptions& options, Evidence& out) {
  CaptureReader(source, options, out).read();
}

}  // namespace

Importer ddx_importer() { return {"ddx", "ddx's own capture of a process (ddx wrap, ddx live)", sniff, read}; }

void set_dumps_aside(Evidence& evidence) {
  Trace& trace = evidence.trace;
  const auto format_of = [&](const RankRecord& record) -> std::string_view {
    const Input* input = evidence.input(record.input);
    return input == nullptr ? std::string_view() : input->format;
  };
  std::set<std::pair<RankId, std::optional<std::uint32_t>>> captured;
  for (const RankRecord& record : trace.ranks) {
    // A capture that holds no call may have seen none.
    if (!record.rank || format_of(record) != "ddx" || trace.program(record).size() == 0) continue;
    captured.emplace(*record.rank, record.attempt);
    captured.emplace(*record.rank, std::nullopt);
  }
  std::string first;
  const auto beside = [&](const RankRecord& record) {
    const bool found = record.rank && format_of(record).starts_with("flight-recorder") &&
                       captured.contains({*record.rank, record.attempt});
    if (found && first.empty()) first = evidence.path(record.input);
    return found;
  };
  const std::size_t removed = std::erase_if(trace.ranks, beside);
  if (removed == 0) return;
  evidence.diagnostics.count("ddx.dump_set_aside", DiagnosticSeverity::info,
                             first + ": the capture of the same process says more", removed);
}

void list_captured_members(Evidence& evidence) {
  Trace& trace = evidence.trace;
  // By communicator: who says to stand where.
  std::map<CommId, std::map<std::uint32_t, RankId>> places;
  for (const RankRecord& record : trace.ranks) {
    if (!record.rank || !record.input || evidence.inputs[record.input->value].format != "ddx") continue;
    for (std::size_t slot = 0; slot < record.comms.size(); ++slot) {
      const Communicator& communicator = trace.communicator(record.comms[slot]);
      if (!communicator.members.empty() || communicator.synthesized) continue;
      if (record.comm_rank[slot] != RankRecord::kNoPosition)
        places[record.comms[slot]][record.comm_rank[slot]] = *record.rank;
    }
  }
  for (const auto& [comm, ranks] : places) {
    if (ranks.size() != trace.communicator(comm).declared_size.value_or(0)) continue;
    std::vector<RankId> members;
    for (const auto& [position, rank] : ranks) members.push_back(rank);
    const bool all = ranks.rbegin()->first + 1 == ranks.size();
    if (all) trace.list_members(comm, std::move(members), false);
  }
}

}  // namespace ddx::formats
