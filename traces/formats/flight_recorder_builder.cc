#include "traces/formats/flight_recorder_builder.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/printable.h"

namespace ddx::formats {
namespace {

constexpr std::uint32_t kAbsent = 0xffffffff;
constexpr std::size_t kMostShapes = 8;        // operations of more tensors keep their count alone
constexpr std::size_t kMostDimensions = 16;   // PyTorch itself allows 64; more than a handful is never printed
constexpr std::size_t kElementsOfAShape = 4;  // what an empty one weighs
constexpr std::size_t kMostText = 1024;       // a pickle can name one long text a million times
// Elements that a file may name again and again: the first are free, as real jobs do so with the ranks of the world.
constexpr std::uint64_t kFreeElements = 1'000'000, kElementsPerByte = 8;

struct TroubleName {
  std::string_view name;
  DiagnosticSeverity severity;
  std::string_view what;
};

// In the order of FlightRecorderBuilder::Trouble.
constexpr std::array<TroubleName, 11> kTroubles{{
    {"flight_recorder.unknown_key", DiagnosticSeverity::info, "a key that ddx does not know"},
    {"flight_recorder.wrong_type", DiagnosticSeverity::data_loss, "a value of an unexpected type, taken as absent"},
    {"flight_recorder.unknown_op", DiagnosticSeverity::info, "an operation that ddx does not know"},
    {"flight_recorder.unknown_dtype", DiagnosticSeverity::info, "a datatype that ddx does not know"},
    {"flight_recorder.count_overflow", DiagnosticSeverity::data_loss, "sizes whose product is no element count"},
    {"flight_recorder.empty_entry", DiagnosticSeverity::data_loss, "an entry that says nothing, skipped"},
    {"flight_recorder.too_many_entries", DiagnosticSeverity::data_loss, "entries beyond the limit, skipped"},
    {"flight_recorder.too_many_groups", DiagnosticSeverity::data_loss, "groups beyond the limit of 65,535, left out"},
    {"flight_recorder.too_large", DiagnosticSeverity::data_loss,
     "lists that the file names more often than its size explains, left out"},
    {"flight_recorder.bad_text", DiagnosticSeverity::notice, "text that is not printable, or very long, mended"},
    {"flight_recorder.process_wide_seq", DiagnosticSeverity::notice,
     "sequence numbers count all groups of the process together, so that they do not compare between ranks"},
}};

// Elements of all tensors; nullopt where a dimension is negative or the product does not fit.
std::optional<std::uint64_t> elements_of(std::span<const std::vector<std::int64_t>> tensors) {
  std::uint64_t sum = 0;
  for (const auto& dimensions : tensors) {
    std::uint64_t product = 1;
    for (std::int64_t dimension : dimensions) {
      if (dimension < 0) return std::nullopt;
      if (__builtin_mul_overflow(product, static_cast<std::uint64_t>(dimension), &product)) return std::nullopt;
    }
    if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
  }
  return sum;
}

bool keeps_shapes(std::span<const std::vector<std::int64_t>> tensors) {
  return tensors.size() <= kMostShapes &&
         std::all_of(tensors.begin(), tensors.end(), [](const auto& shape) { return shape.size() <= kMostDimensions; });
}

std::optional<Nanos> time_of(Nanos time) {
  if (time <= 0) return std::nullopt;
  return time;
}

}  // namespace

std::size_t FlightRecorderBuilder::WordsHash::operator()(const SignatureKey& key) const {
  RowHash hash;
  for (std::size_t i = 0; i < key.words.size(); i += 2) {
    hash.add(std::uint64_t{key.words[i]} << 32 | key.words[i + 1]);
  }
  return hash.value();
}

std::size_t FlightRecorderBuilder::WordsHash::operator()(const std::vector<std::int64_t>& words) const {
  RowHash hash;
  for (std::int64_t word : words) hash.add(static_cast<std::uint64_t>(word));
  return hash.value();
}

FlightRecorderBuilder::FlightRecorderBuilder(const Source& source, const ImportOptions& options, Evidence& out)
    : source_(source),
      options_(options),
      out_(out),
      elements_left_(kFreeElements + kElementsPerByte * source.bytes.size()) {
  static_assert(kTroubles.size() == static_cast<std::size_t>(Trouble::count_of_troubles));
}

void FlightRecorderBuilder::count(Trouble trouble, std::string_view detail) {
  Tally& tally = tallies_[static_cast<std::size_t>(trouble)];
  if (tally.count++ == 0) tally.detail = std::string(detail.substr(0, 200));
}

bool FlightRecorderBuilder::afford(std::uint64_t elements) {
  if (elements > elements_left_) {
    count(Trouble::too_large, fmt::format("{} elements, {} are left", elements, elements_left_));
    return false;
  }
  elements_left_ -= elements;
  return true;
}

// Reports print it and JSON writers insist on UTF-8.
StringId FlightRecorderBuilder::text(std::string_view text) {
  if (text.size() <= kMostText && is_plain_ascii(text)) return out_.trace.strings.intern(text);
  const std::string mended = printable_text(text.substr(0, kMostText), kMostText);
  if (mended != text) count(Trouble::bad_text, mended);
  return out_.trace.strings.intern(mended);
}

RecorderHandle FlightRecorderBuilder::op_name(std::string_view profiling_name) {
  if (const auto at = name_index_.find(profiling_name); at != name_index_.end()) return at->second;
  const ProfilingName parsed = parse_profiling_name(profiling_name);
  Name name{parsed.kind, text(parsed.name), std::nullopt, backend(parsed.backend), parsed.may_end_batch};
  if (parsed.peer) {
    if (*parsed.peer < std::numeric_limits<std::int32_t>::min() ||
        *parsed.peer > std::numeric_limits<std::int32_t>::max()) {
      count(Trouble::wrong_type, profiling_name);
    } else {
      name.peer_slot = peer_slot(static_cast<std::int32_t>(*parsed.peer));
    }
  }
  const auto handle = static_cast<RecorderHandle>(names_.size());
  names_.push_back(name);
  name_index_.emplace(profiling_name, handle);
  return handle;
}

std::uint32_t FlightRecorderBuilder::backend(std::string_view name) {
  const StringId id = text(name);
  const auto [at, added] = backend_index_.try_emplace(id.value, static_cast<std::uint32_t>(backends_.size()));
  if (added) {
    backends_.push_back(id);
    backend_uses_.push_back(0);
  }
  return at->second;
}

std::uint32_t FlightRecorderBuilder::peer_slot(std::int32_t peer) {
  const auto [at, added] = peer_index_.try_emplace(peer, static_cast<std::uint32_t>(peers_.size()));
  if (added) peers_.push_back(peer);
  return at->second;
}

RecorderHandle FlightRecorderBuilder::group(std::string_view name, std::string_view description) {
  const StringId name_id = text(name), description_id = text(description);
  const std::uint64_t key = std::uint64_t{name_id.value} << 32 | description_id.value;
  const auto [at, added] = group_index_.try_emplace(key, static_cast<RecorderHandle>(groups_.size()));
  if (added) {
    groups_.push_back({name_id, description_id, std::nullopt, std::nullopt});
    runs_.resize(runs_.size() + 2);
  }
  return at->second;
}

RecorderHandle FlightRecorderBuilder::sizes(std::span<const std::vector<std::int64_t>> tensors) {
  std::vector<std::int64_t> key;
  for (const auto& dimensions : tensors) {
    key.push_back(static_cast<std::int64_t>(dimensions.size()));
    key.insert(key.end(), dimensions.begin(), dimensions.end());
  }
  const auto [at, added] = tensors_index_.try_emplace(std::move(key), static_cast<RecorderHandle>(tensors_.size()));
  if (added) {
    Tensors kept;
    kept.none = tensors.empty();
    if (!kept.none) kept.count = elements_of(tensors);
    if (!kept.none && !kept.count) count(Trouble::count_overflow, "sizes of an entry");
    if (keeps_shapes(tensors)) kept.shapes.assign(tensors.begin(), tensors.end());
    tensors_.push_back(std::move(kept));
  }
  return at->second;
}

RecorderHandle FlightRecorderBuilder::splits(const std::vector<std::int64_t>& elements) {
  const auto [at, added] = splits_index_.try_emplace(elements, static_cast<RecorderHandle>(splits_.size()));
  if (added) {
    std::vector<std::uint64_t> kept;
    if (std::any_of(elements.begin(), elements.end(), [](std::int64_t count) { return count < 0; })) {
      count(Trouble::count_overflow, "split sizes of an entry");
    } else {
      kept.assign(elements.begin(), elements.end());
    }
    splits_.push_back(std::move(kept));
  }
  return at->second;
}

DataType FlightRecorderBuilder::type(std::string_view name) {
  const DataType found = recorder_data_type(name);
  if (found == DataType::unknown) count(Trouble::unknown_dtype, name);
  return found;
}

Frame FlightRecorderBuilder::frame(std::string_view function, std::string_view file, std::int64_t line) {
  const bool fits = line > 0 && line <= std::numeric_limits<std::uint32_t>::max();
  return {text(function), text(file), fits ? static_cast<std::uint32_t>(line) : 0};
}

std::optional<CallSiteId> FlightRecorderBuilder::call_site(std::vector<Frame> frames) {
  if (frames.empty()) return std::nullopt;
  return out_.trace.intern(CallSite{std::move(frames)});
}

bool FlightRecorderBuilder::assign(RecorderEntry& entry, RecorderField field, const RecorderScalar& value) {
  using Kind = RecorderScalar::Kind;
  const auto number = [&](std::optional<std::int64_t>& into) {
    if (value.kind == Kind::integer) into = value.integer;
    return value.kind == Kind::integer || value.kind == Kind::none;
  };
  const auto flag = [&](std::optional<bool>& into) {
    if (value.kind == Kind::boolean) into = value.integer != 0;
    return value.kind == Kind::boolean || value.kind == Kind::none;
  };
  if (field == RecorderField::unknown || field == RecorderField::ignored) return true;
  entry.has_known_key = true;
  std::optional<std::int64_t> unused;
  switch (field) {
    case RecorderField::record_id: return number(entry.record_id);
    case RecorderField::pg_id: return number(entry.pg_id);
    case RecorderField::collective_seq_id: return number(entry.collective_seq);
    case RecorderField::p2p_seq_id: return number(entry.p2p_seq);
    case RecorderField::op_id: return number(unused);
    case RecorderField::time_created: return number(entry.created);
    case RecorderField::time_started: return number(entry.started);
    case RecorderField::time_completed: return number(entry.completed);
    case RecorderField::timeout: return number(entry.timeout_ms);
    case RecorderField::is_p2p: return flag(entry.is_p2p);
    case RecorderField::retired: return flag(entry.retired);
    case RecorderField::duration:
      entry.has_duration = value.kind == Kind::real || value.kind == Kind::integer;
      return entry.has_duration || value.kind == Kind::none;
    case RecorderField::profiling_name:
      if (value.kind == Kind::text) entry.name = op_name(value.text);
      return value.kind == Kind::text || value.kind == Kind::none;
    case RecorderField::state:
      if (value.kind != Kind::text) return value.kind == Kind::none;
      if (value.text == "scheduled") entry.state = OpState::scheduled;
      if (value.text == "started") entry.state = OpState::started;
      if (value.text == "completed") entry.state = OpState::completed;
      return entry.state != OpState::unknown;
    default: return value.kind == Kind::none;  // a list is due
  }
}

void FlightRecorderBuilder::note_evidence(const RecorderEntry& entry) {
  if (entry.record_id && (!first_record_ || *entry.record_id < *first_record_)) first_record_ = entry.record_id;
  timed_ = timed_ || entry.state == OpState::started || entry.has_duration || entry.started.value_or(0) > 0;
  saw_completion_ = saw_completion_ || entry.state == OpState::completed || entry.completed.value_or(0) > 0;
  saw_p2p_counter_ = saw_p2p_counter_ || entry.p2p_seq.value_or(0) > 0 || entry.is_p2p.value_or(false);
  has_p2p_ops_ = has_p2p_ops_ || (entry.name != kNoHandle && is_p2p(names_[entry.name].kind));
  std::int64_t offset = 0;
  if (!entry.record_id || !entry.collective_seq ||
      __builtin_sub_overflow(*entry.collective_seq, *entry.record_id, &offset) || (offset_ && *offset_ != offset)) {
    steady_offset_ = false;
  }
  offset_ = offset;
  if (entry.name != kNoHandle) ++backend_uses_[names_[entry.name].backend];
  if (entry.group != kNoHandle && entry.pg_id && !groups_[entry.group].pg_id) {
    groups_[entry.group].pg_id = entry.pg_id;
  }
}

// Point-to-point operations and collectives count apart. The p2p counter of a recorder that has none stays at 0.
std::uint32_t FlightRecorderBuilder::seq_of(const RecorderEntry& entry, bool p2p) {
  const std::optional<std::int64_t>& seq = p2p ? entry.p2p_seq : entry.collective_seq;
  if (!seq || (p2p && *seq == 0)) return kAbsent;
  if (*seq < 0 || *seq >= kAbsent) {
    count(Trouble::wrong_type, fmt::format("sequence number {}", *seq));
    return kAbsent;
  }
  return static_cast<std::uint32_t>(*seq);
}

void FlightRecorderBuilder::note_limit(const RecorderEntry& entry, std::uint32_t seq) {
  std::optional<CallLimit>& limit = groups_[entry.group].limit;
  constexpr std::int64_t kNanosPerMilli = 1'000'000;
  Nanos timeout = 0;
  if (entry.timeout_ms.value_or(0) <= 0 || __builtin_mul_overflow(*entry.timeout_ms, kNanosPerMilli, &timeout)) {
    limit.reset();
  } else if (!limit || limit->timeout != timeout) {
    limit = CallLimit{timeout, seq};
  }
}

// "ALLGATHER_coalesced" is the end of a batch where it follows operations with its number, or moves nothing itself.
bool FlightRecorderBuilder::ends_batch(const RecorderEntry& entry, const Run* run, std::uint32_t seq) const {
  if (entry.name == kNoHandle || !names_[entry.name].may_end_batch) return false;
  if (run != nullptr && seq != kAbsent && run->seq == seq) return true;
  const auto none = [&](RecorderHandle sizes) { return sizes != kNoHandle && tensors_[sizes].none; };
  return none(entry.sizes_in) && none(entry.sizes_out);
}

// Recorders write no begin of a batch: its operations are those of one group that share a sequence number.
void FlightRecorderBuilder::join_batch(Run& run, std::uint32_t seq, Row& row, bool marker) {
  if (seq == kAbsent) {
    run = {};
  } else if (run.seq != seq) {
    run = {seq, static_cast<std::uint32_t>(rows_.size()), kAbsent};
    if (marker) row.batch = run.batch = batches_++;
  } else {
    if (run.batch == kAbsent) rows_[run.first_row].batch = run.batch = batches_++;
    row.batch = run.batch;
  }
}

SignatureId FlightRecorderBuilder::signature(const RecorderEntry& entry, OpKind kind) {
  const auto codes = static_cast<std::uint32_t>(static_cast<std::uint32_t>(kind) << 16 |
                                                static_cast<std::uint32_t>(entry.type_out) << 8 |
                                                static_cast<std::uint32_t>(entry.type_in));
  const SignatureKey key{{entry.name, entry.sizes_in, entry.sizes_out, entry.splits_in, entry.splits_out, codes}};
  const auto [at, added] = signatures_.try_emplace(key);
  if (!added) return at->second;
  Signature made;
  made.kind = kind;
  made.type_in = entry.type_in;
  made.type_out = entry.type_out;
  if (entry.name != kNoHandle) {
    made.name = names_[entry.name].text;
    made.peer_slot = names_[entry.name].peer_slot;
  }
  const auto sizes = [&](RecorderHandle handle, std::optional<std::uint64_t>& count_of, Sizes& shapes) {
    if (handle == kNoHandle) return;
    count_of = tensors_[handle].count;
    std::size_t elements = 0;
    for (const auto& shape : tensors_[handle].shapes) elements += kElementsOfAShape + shape.size();
    if (afford(elements)) shapes = tensors_[handle].shapes;
  };
  const auto splits = [&](RecorderHandle handle, std::vector<std::uint64_t>& into) {
    if (handle != kNoHandle && afford(splits_[handle].size())) into = splits_[handle];
  };
  sizes(entry.sizes_in, made.count_in, made.shape_in);
  sizes(entry.sizes_out, made.count_out, made.shape_out);
  splits(entry.splits_in, made.split_in);
  splits(entry.splits_out, made.split_out);
  return at->second = out_.trace.intern(std::move(made));
}

void FlightRecorderBuilder::add(const RecorderEntry& entry) {
  if (!entry.has_known_key) return count(Trouble::empty_entry, "an entry without any known key");
  if (rows_.size() >= options_.max_ops_per_file || rows_.size() >= kAbsent - 1) {
    return count(Trouble::too_many_entries, fmt::format("limit {}", rows_.size()));
  }
  note_evidence(entry);
  OpKind kind = entry.name == kNoHandle ? OpKind::unknown : names_[entry.name].kind;
  if (kind == OpKind::unknown) {
    count(Trouble::unknown_op, entry.name == kNoHandle ? "no name" : out_.trace.text(names_[entry.name].text));
  }
  const bool flagged = entry.is_p2p.value_or(false) && (kind == OpKind::coalesced || kind == OpKind::unknown);
  const bool p2p = is_p2p(kind) || flagged;
  const std::uint32_t seq = seq_of(entry, p2p);
  Run* run = entry.group == kNoHandle ? nullptr : &runs_[entry.group * 2 + (p2p ? 1 : 0)];
  if (ends_batch(entry, run, seq)) kind = OpKind::coalesced;
  Row row{entry.created.value_or(0),
          entry.started.value_or(0),
          entry.completed.value_or(0),
          signature(entry, kind),
          entry.group,
          seq,
          kAbsent,
          entry.call_site ? entry.call_site->value : kAbsent,
          entry.state,
          entry.retired.value_or(false)};
  if (run != nullptr) join_batch(*run, seq, row, kind == OpKind::coalesced);
  if (run != nullptr && !p2p && seq != kAbsent) note_limit(entry, seq);
  rows_.push_back(row);
}

void FlightRecorderBuilder::version(std::string_view text) {
  version_ = parse_recorder_version(text);
  if (!version_) return count(Trouble::wrong_type, "version");
  const auto [major, minor] = *version_;
  if (major == 2 && minor <= 11) return;
  const std::string_view name = major == 2 ? "flight_recorder.newer_version" : "flight_recorder.other_major_version";
  out_.diagnostics.count(
      name, DiagnosticSeverity::notice,
      fmt::format("{}: version {}.{}; ddx knows 2.0 to 2.11 and reads what it recognises", source_.path, major, minor));
}

void FlightRecorderBuilder::library_version(std::string_view version) {
  library_version_ = std::string(out_.trace.text(text(version)));
}

void FlightRecorderBuilder::add_group(std::string_view name, std::string_view description,
                                      std::optional<std::vector<RankId>> members) {
  configured_.push_back({text(name), text(description), std::move(members).value_or(std::vector<RankId>())});
}

bool FlightRecorderBuilder::add_status(std::int64_t pg_id, std::string_view key, std::int64_t value) {
  CommProgress& progress = status_[pg_id];
  const auto counter = static_cast<std::uint64_t>(std::max<std::int64_t>(0, value));  // -1: none yet
  if (key == "last_enqueued_collective") {
    progress.last_enqueued = counter;
  } else if (key == "last_started_collective") {
    progress.last_started = counter;
  } else if (key == "last_completed_collective") {
    progress.last_completed = counter;
  } else {
    return false;
  }
  return true;
}

void FlightRecorderBuilder::cut(std::uint64_t offset, std::string_view why) {
  cut_ = true;
  out_.inputs.front().note =
      fmt::format("cut or damaged at byte {} of {} ({}): read up to there", offset, source_.bytes.size(), why);
  out_.diagnostics.count("flight_recorder.truncated_file", DiagnosticSeverity::data_loss,
                         fmt::format("{} at byte {}: {}", source_.path, offset, why));
}

void FlightRecorderBuilder::trailing(std::uint64_t bytes) {
  out_.diagnostics.count("flight_recorder.trailing_bytes", DiagnosticSeverity::notice,
                         fmt::format("{}: {} bytes behind the end of the dump, not read", source_.path, bytes));
}

std::string FlightRecorderBuilder::main_backend() const {
  const auto most = std::max_element(backend_uses_.begin(), backend_uses_.end());
  return most == backend_uses_.end()
             ? std::string()
             : std::string(out_.trace.text(backends_[static_cast<std::size_t>(most - backend_uses_.begin())]));
}

// torchcomms writes neither the status of groups nor a point-to-point counter. Versions before 2.4 lack them too.
bool FlightRecorderBuilder::is_torchcomms() const {
  return status_.empty() && !saw_p2p_counter_ && (!version_ || *version_ >= std::pair{2U, 4U});
}

// torchcomms numbers all operations of a process in one row, so the numbers of one group differ between ranks that are
// in different other groups. Counting each group's collectives again gives numbers that compare, if none is lost.
void FlightRecorderBuilder::renumber() {
  if (!is_torchcomms() || !steady_offset_ || (groups_.size() < 2 && !has_p2p_ops_)) return;
  const bool complete = first_record_ == 0 && offset_ && (*offset_ == 0 || *offset_ == 1);
  if (!complete) count(Trouble::process_wide_seq, "the first operations are lost");
  std::vector<std::uint32_t> next(groups_.size(), complete ? static_cast<std::uint32_t>(*offset_) : 0);
  for (Row& row : rows_) {
    row.batch = row.seq = kAbsent;
    const OpKind kind = out_.trace.signature(row.signature).kind;
    if (complete && row.group != kNoHandle && !is_p2p(kind)) row.seq = next[row.group]++;
  }
}

// Recorders without device events (gloo, some of torchcomms) never see an operation complete; they only retire it when
// it has ended, be it with an error. RankRecord keeps `retired`, so that a reader can tell.
void FlightRecorderBuilder::settle_retired(const RankRecord& record) {
  if (timed_ || saw_completion_ || (record.stream_ordered && !is_torchcomms())) return;
  for (Row& row : rows_) {
    if (row.retired && row.state == OpState::scheduled) row.state = OpState::completed;
  }
}

// gloo's recorder lists one group without a name: the last one made. Where the job used the default group alone, that
// is it; else nobody can say whose members these are.
void FlightRecorderBuilder::name_the_nameless() {
  const bool default_only = groups_.size() == 1 && out_.trace.text(groups_[0].description) == "default_pg";
  if (!default_only || configured_.size() != 1 || configured_[0].name != StringId()) return;
  configured_[0].name = groups_[0].name;
  configured_[0].description = groups_[0].description;
}

// A slot for each configured group and for each group of an entry that is not configured. Returns slots by group. Takes
// the members of the configured groups.
std::vector<std::uint16_t> FlightRecorderBuilder::bind_groups(RankRecord& record) {
  Trace& trace = out_.trace;
  const auto bind = [&](Communicator communicator) {
    const auto& members = communicator.members;
    const auto at = record.rank ? std::find(members.begin(), members.end(), *record.rank) : members.end();
    record.comm_rank.push_back(at == members.end() ? RankRecord::kNoPosition
                                                   : static_cast<std::uint32_t>(at - members.begin()));
    record.comms.push_back(trace.intern(std::move(communicator)));
  };
  std::unordered_map<std::uint64_t, std::uint16_t, KeyedHash> exact;
  std::unordered_map<std::uint32_t, std::vector<std::size_t>, KeyedHash> by_name;
  constexpr std::size_t kMostSlots = 0xffff;
  const auto too_many = [&](StringId name) { count(Trouble::too_many_groups, trace.text(name)); };
  for (ConfiguredGroup& configured : configured_) {
    if (configured.name == StringId()) continue;
    if (record.comms.size() >= kMostSlots) {
      too_many(configured.name);
      continue;
    }
    const std::size_t slot = record.comms.size();
    exact.try_emplace(std::uint64_t{configured.name.value} << 32 | configured.description.value,
                      static_cast<std::uint16_t>(slot));
    by_name[configured.name.value].push_back(slot);
    bind({configured.name, configured.description, std::move(configured.members), std::nullopt, false});
  }
  std::vector<std::uint16_t> slots;
  for (const Group& group : groups_) {
    std::size_t slot = record.comms.size();
    const auto at = exact.find(std::uint64_t{group.name.value} << 32 | group.description.value);
    const auto named = by_name.find(group.name.value);
    const auto undescribed = [&](StringId text) { return text == StringId() || trace.text(text) == "undefined"; };
    if (at != exact.end()) {
      slot = at->second;
    } else if (named != by_name.end() && named->second.size() == 1 &&
               (undescribed(group.description) ||
                undescribed(trace.communicator(record.comms[named->second[0]]).description))) {
      slot = named->second[0];
    } else if (slot < kMostSlots) {
      bind({group.name, group.description, {}, std::nullopt, false});
    } else {
      too_many(group.name);
    }
    slots.push_back(static_cast<std::uint16_t>(std::min(slot, kMostSlots)));
  }
  return slots;
}

// pg_status is keyed by a number that only this process knows; entries say which group has it.
void FlightRecorderBuilder::bind_progress(RankRecord& record, const std::vector<std::uint16_t>& slots) {
  record.progress.resize(record.comms.size());
  bind_counters(record, slots);
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    if (slots[i] < record.progress.size()) record.progress[slots[i]].limit = groups_[i].limit;
  }
}

void FlightRecorderBuilder::bind_counters(RankRecord& record, const std::vector<std::uint16_t>& slots) {
  bool has_zero = false;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    if (!groups_[i].pg_id) continue;
    has_zero = has_zero || *groups_[i].pg_id == 0;
    const auto at = status_.find(*groups_[i].pg_id);
    if (at != status_.end() && slots[i] < record.progress.size()) record.progress[slots[i]] = at->second;
  }
  // The default group is made first, so it is number 0 even where no entry says so.
  if (has_zero || !status_.contains(0)) return;
  for (std::size_t slot = 0; slot < record.comms.size(); ++slot) {
    const StringId description = out_.trace.communicator(record.comms[slot]).description;
    if (out_.trace.text(description) == "default_pg") record.progress[slot] = status_[0];
  }
}

Program FlightRecorderBuilder::program(const std::vector<std::uint16_t>& slots) {
  const auto present = [](std::uint32_t value) {
    return value == kAbsent ? std::nullopt : std::optional<std::uint32_t>(value);
  };
  Program program;
  program.reserve(rows_.size());
  for (const Row& row : rows_) {
    Op op;
    op.signature = row.signature;
    if (row.group != kNoHandle && slots[row.group] != 0xffff) op.comm_slot = slots[row.group];
    op.seq = present(row.seq);
    op.group = present(row.batch);
    if (row.call_site != kAbsent) op.call_site = CallSiteId(row.call_site);
    op.issue = time_of(row.created);
    op.start = time_of(row.started);
    op.end = time_of(row.completed);
    op.state = row.state;
    op.retired = row.retired;
    program.append(op);
  }
  return program;
}

// Only the default group says how large the job is: where the list has lost it, or a recorder never had it
// (torchcomms), the largest of the others is a part of the job.
void FlightRecorderBuilder::state_world_size() {
  std::size_t world = 0;
  for (const ConfiguredGroup& configured : configured_) {
    const bool is_world =
        out_.trace.text(configured.description) == "default_pg" || out_.trace.text(configured.name) == "0";
    if (is_world) world = std::max(world, configured.members.size());
  }
  if (world > 0 && world <= kAbsent) out_.trace.world_size = static_cast<std::uint32_t>(world);
}

void FlightRecorderBuilder::report() {
  for (std::size_t i = 0; i < tallies_.size(); ++i) {
    if (tallies_[i].count == 0) continue;
    out_.diagnostics.count(
        kTroubles[i].name, kTroubles[i].severity,
        fmt::format("{}: {}: {}", source_.path, kTroubles[i].what, printable_text(tallies_[i].detail)),
        tallies_[i].count);
  }
}

void FlightRecorderBuilder::finish() {
  RankRecord record;
  record.rank = rank_of_path(source_.path, options_);
  record.input = InputId(0);
  record.snapshot = true;
  record.backend = main_backend();
  record.stream_ordered = is_stream_ordered(record.backend);
  record.library_version = library_version_;
  record.head_lost = first_record_.value_or(0) > 0;
  record.tail_lost = cut_ || tallies_[static_cast<std::size_t>(Trouble::too_many_entries)].count > 0;
  if (!rows_.empty()) record.timing = timed_;
  record.peers = peers_;
  renumber();
  settle_retired(record);
  name_the_nameless();
  state_world_size();
  const std::vector<std::uint16_t> slots = bind_groups(record);
  bind_progress(record, slots);
  record.program = ProgramId(out_.trace.programs.size());
  out_.trace.programs.push_back(program(slots));
  Input& input = out_.inputs.front();
  input.file_rank = record.rank;
  if (record.rank) input.ranks.insert(*record.rank);
  out_.trace.ranks.push_back(std::move(record));
  report();
}

}  // namespace ddx::formats
