#include "sim/replay/recorded_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "sim/replay/recorded_times.h"
#include "sim/replay/unrolled_program.h"

namespace ddx::sim {
namespace {

constexpr std::uint64_t kMaxOps = 50'000'000;

// Operations of a stream among which the cause of a late start is looked for.
constexpr std::size_t kRemembered = 8;

constexpr std::size_t kUnknownTold = 4;  // kinds of unknown calls

// What all records together came to.
struct Tally {
  std::uint64_t by_times = 0, by_order = 0;  // records
  std::uint64_t cut = 0;                     // operations before a group's first common call
  std::uint64_t placed = 0;                  // operations without times, between those that have them
  std::map<std::pair<NotTold, std::string>, UnknownCalls> unknown;
  Recorded out;
};

bool is_call(OpKind kind) {
  return is_collective(kind) || is_p2p(kind) || kind == OpKind::unknown || kind == OpKind::coalesced;
}

// The first sequence number that every member's record still has, by communicator.
std::map<CommId, std::uint32_t> first_common(const Trace& trace) {
  std::map<CommId, std::uint32_t> first;
  for (const RankRecord& record : trace.ranks) {
    if (!record.head_lost) continue;
    std::map<std::uint16_t, std::uint32_t> own;
    const Program& rows = trace.program(record);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      if (!is_collective(trace.signature(rows.signature(row)).kind) || !rows.comm_slot(row) || !rows.seq(row)) continue;
      own.try_emplace(*rows.comm_slot(row), *rows.seq(row));
    }
    for (const auto& [slot, seq] : own) {
      auto& common = first.try_emplace(record.comms[slot], seq).first->second;
      common = std::max(common, seq);
    }
  }
  return first;
}

// Builds the program of one record.
class Rebuilder {
 public:
  Rebuilder(Trace& trace, const RankRecord& record, const std::map<CommId, std::uint32_t>& first, Tally& tally)
      : trace_(trace), record_(record), rows_(trace.program(record)), first_(first), tally_(tally) {}
  Program run();

 private:
  bool is_lost(std::size_t row) const;
  std::optional<NotTold> not_told(const Op& op) const;
  void as_delay(Op& op, NotTold what);
  void keep();
  void keep_row(std::uint32_t row, std::optional<std::uint32_t> group);
  bool follows_times();
  std::size_t end_of_group(std::size_t at) const;
  void by_order();
  void by_times();
  void begin_together(const std::vector<RecordedOp*>& parts);
  void come_late(RecordedOp& row);
  void issue(RecordedOp& row, bool timed);
  void append(Signature&& signature) { append(Op{}, std::move(signature)); }
  void append(Op row, Signature&& signature);
  // The last operation of another stream that ended in (after, before].
  const RecordedOp* cause(std::uint32_t stream, Nanos after, Nanos before) const;

  Trace& trace_;
  const RankRecord& record_;
  const Program& rows_;
  const std::map<CommId, std::uint32_t>& first_;
  Tally& tally_;
  std::vector<RecordedOp> ops_;
  std::vector<std::uint32_t> row_of_handle_;  // of the record
  std::vector<std::uint32_t> latest_of_row_;  // by row of the record: index into ops_ of its latest round
  Program out_;
  std::uint32_t handles_ = 0;
  Nanos now_ = 0;                                           // of the host, if all takes as long as recorded
  Nanos last_end_ = 0;                                      // of what was issued
  std::map<std::uint32_t, std::deque<RecordedOp>> latest_;  // by stream: what was issued last, a few of it
};

bool Rebuilder::is_lost(std::size_t row) const {
  const Signature& signature = trace_.signature(rows_.signature(row));
  if (!is_collective(signature.kind) || !rows_.comm_slot(row) || !rows_.seq(row)) return false;
  const auto at = first_.find(record_.comms[*rows_.comm_slot(row)]);
  return at != first_.end() && *rows_.seq(row) < at->second;
}

// nullopt: it can be replayed as what it is.
std::optional<NotTold> Rebuilder::not_told(const Op& op) const {
  const Signature& signature = trace_.signature(op.signature);
  if (!is_call(signature.kind)) return std::nullopt;
  if (signature.kind == OpKind::unknown) return NotTold::kind;
  if (!op.comm_slot || record_.comm_rank[*op.comm_slot] == RankRecord::kNoPosition ||
      trace_.communicator(record_.comms[*op.comm_slot]).members.empty()) {
    return NotTold::group;
  }
  const bool names_peer = signature.peer_slot || is_collective(signature.kind);
  return names_peer ? std::nullopt : std::optional(NotTold::peer);
}

void Rebuilder::as_delay(Op& op, NotTold what) {
  const Signature& call = trace_.signature(op.signature);
  std::string name(trace_.text(call.name));
  if (name.empty()) name = name_of(call.kind);
  UnknownCalls& unknown = tally_.unknown[{what, name}];
  unknown.what = what;
  unknown.name = name;
  unknown.ranks.insert(*record_.rank);
  ++unknown.calls;
  Signature delay;
  delay.kind = OpKind::delay;
  delay.compute_time = has_times(op) ? *op.end - *op.start : 0;
  delay.name = call.name;
  delay.stream = call.stream;
  delay.async = call.async;
  op.signature = trace_.intern(std::move(delay));
  op.comm_slot.reset();
}

void Rebuilder::keep_row(std::uint32_t row, std::optional<std::uint32_t> group) {
  latest_of_row_[row] = kNoOp;
  if (is_lost(row)) {
    ++tally_.cut;
    return;
  }
  RecordedOp kept{rows_.at(OpId(row)), 0, std::nullopt, group, 0, 0, 0};
  const Signature& signature = trace_.signature(kept.op.signature);
  // A recorder's marker only ends what was posted together; a kernel is all that is known of its parts.
  const bool never_issued = kept.op.state == OpState::planned && !record_.whole_program;
  if (never_issued || (signature.kind == OpKind::coalesced && record_.snapshot)) return;
  if (signature.kind == OpKind::wait) {
    const auto& rows = row_of_handle_;
    if (!signature.handle || *signature.handle >= rows.size() || latest_of_row_[rows[*signature.handle]] == kNoOp)
      return;
    kept.waits_for = latest_of_row_[rows[*signature.handle]];
  }
  if (is_call(signature.kind)) ++tally_.out.calls;
  if (const auto what = not_told(kept.op)) as_delay(kept.op, *what);
  latest_of_row_[row] = static_cast<std::uint32_t>(ops_.size());
  ops_.push_back(kept);
}

// What the rank did of what the replay can use, its loops run out.
void Rebuilder::keep() {
  for (std::uint32_t row = 0; row < rows_.size(); ++row) {
    if (trace_.signature(rows_.signature(row)).async) row_of_handle_.push_back(row);
  }
  latest_of_row_.assign(rows_.size(), kNoOp);
  std::uint32_t depth = 0, groups = 0;
  std::optional<std::uint32_t> open;  // the recorder's number of what is posted together
  std::uint32_t before = 0;
  for (OpCursor cursor(rows_); !cursor.done(); cursor.next()) {
    const std::uint32_t row = cursor.op().value;
    const OpKind kind = trace_.signature(rows_.signature(row)).kind;
    if (kind == OpKind::group_begin || kind == OpKind::group_end) {
      if (kind == OpKind::group_begin ? depth++ == 0 : depth > 0 && --depth == 0) ++groups;
      continue;
    }
    const auto number = rows_.group(row);
    if (depth == 0 && (number != open || row <= before)) ++groups;
    open = number;
    before = row;
    keep_row(row, depth > 0 || number ? std::optional(groups) : std::nullopt);
  }
}

// Whether the program can follow the recorded times. Where it cannot although there are computations, nobody knows when
// these were.
bool Rebuilder::follows_times() {
  std::uint64_t all = 0, timed = 0, calls = 0, timed_calls = 0, lengths = 0, computations = 0;
  for (const RecordedOp& row : ops_) {
    const Signature& signature = trace_.signature(row.op.signature);
    if (is_of_host(signature.kind)) continue;
    const std::uint64_t has = has_times(row.op) ? 1 : 0;
    ++all;
    timed += has;
    if (takes_length(signature.kind)) {
      ++computations;
      lengths += has > 0 || signature.compute_time ? 1U : 0U;
    } else {
      ++calls;
      timed_calls += has;
    }
  }
  const bool follows = timed > 0 && timed * 2 >= all && timed_calls * 2 >= calls;
  if (lengths < computations) {
    tally_.out.untimed.push_back(fmt::format("{} of {} computations of rank {} have no length", computations - lengths,
                                             computations, record_.rank->value));
  } else if (!follows && timed > 0 && computations > 0) {
    tally_.out.untimed.push_back(fmt::format(
        "{} of {} calls of rank {} have no times, so that nobody knows which of its computations come before "
        "which call",
        calls - timed_calls, calls, record_.rank->value));
  }
  if (follows) tally_.placed += all - timed;
  return follows;
}

void Rebuilder::append(Op row, Signature&& signature) {
  row.signature = trace_.intern(std::move(signature));
  out_.append(row);
}

void Rebuilder::issue(RecordedOp& row, bool timed) {
  Signature signature = trace_.signature(row.op.signature);
  const bool streams = !is_of_host(signature.kind);
  if (row.waits_for) signature.handle = ops_[*row.waits_for].handle;
  if (timed && streams) {
    signature.async = true;
    signature.stream = row.stream;
    if (takes_length(signature.kind)) signature.compute_time = row.end - row.start;
  } else if (takes_length(signature.kind) && has_times(row.op)) {
    signature.compute_time = *row.op.end - *row.op.start;
  }
  if (signature.async) row.handle = handles_++;
  Op op;
  op.comm_slot = row.op.comm_slot;
  op.call_site = row.op.call_site;
  append(op, std::move(signature));
}

// Behind the last of what is posted together with `at`.
std::size_t Rebuilder::end_of_group(std::size_t at) const {
  std::size_t end = at + 1;
  while (ops_[at].group && end < ops_.size() && ops_[end].group == ops_[at].group) ++end;
  return end;
}

Signature mark(OpKind kind) {
  Signature signature;
  signature.kind = kind;
  return signature;
}

void Rebuilder::by_order() {
  for (std::size_t at = 0; at < ops_.size();) {
    const std::size_t end = end_of_group(at);
    const bool together = ops_[at].group.has_value();
    if (together) append(mark(OpKind::group_begin));
    for (; at < end; ++at) issue(ops_[at], false);
    if (together) append(mark(OpKind::group_end));
  }
}

const RecordedOp* Rebuilder::cause(std::uint32_t stream, Nanos after, Nanos before) const {
  const RecordedOp* found = nullptr;
  for (const auto& [other, issued] : latest_) {
    if (other == stream) continue;
    for (const RecordedOp& row : issued) {
      if (row.end <= after || row.end > before) continue;
      if (found == nullptr || row.end > found->end) found = &row;
    }
  }
  return found;
}

// Puts a late start down to what it may have waited for.
void Rebuilder::come_late(RecordedOp& row) {
  const auto own = latest_.find(row.stream);
  Nanos earliest = own == latest_.end() ? now_ : std::max(now_, own->second.back().end);
  if (row.start <= earliest) return;
  if (const RecordedOp* other = cause(row.stream, earliest, row.start)) {
    Signature wait = mark(OpKind::wait);
    wait.handle = other->handle;
    append(std::move(wait));
    now_ = std::max(now_, other->end);
    earliest = std::max(earliest, now_);
  }
  if (row.start <= earliest) return;
  Signature delay = mark(OpKind::delay);
  delay.async = true;
  delay.stream = row.stream;
  delay.compute_time = row.start - earliest;
  ++handles_;
  append(std::move(delay));
}

void Rebuilder::begin_together(const std::vector<RecordedOp*>& parts) {
  std::vector<std::uint32_t> late;  // streams whose late start is accounted for
  for (RecordedOp* row : parts) {
    if (is_of_host(trace_.signature(row->op.signature).kind)) continue;
    if (std::find(late.begin(), late.end(), row->stream) != late.end()) continue;
    late.push_back(row->stream);
    come_late(*row);
  }
  const bool together = parts.front()->group.has_value();
  if (together) append(mark(OpKind::group_begin));
  for (RecordedOp* row : parts) {
    issue(*row, true);
    const OpKind kind = trace_.signature(row->op.signature).kind;
    if (row->waits_for) now_ = std::max(now_, ops_[*row->waits_for].end);
    if (kind == OpKind::host_sync) now_ = std::max(now_, last_end_);
    if (is_of_host(kind)) continue;
    last_end_ = std::max(last_end_, row->end);
    auto& own = latest_[row->stream];
    own.push_back(*row);
    if (own.size() > kRemembered) own.pop_front();
  }
  if (together) append(mark(OpKind::group_end));
}

void Rebuilder::by_times() {
  place(trace_, ops_);
  std::vector<std::vector<RecordedOp*>> order;  // what is posted together
  for (std::size_t at = 0; at < ops_.size();) {
    auto& parts = order.emplace_back();
    for (const std::size_t end = end_of_group(at); at < end; ++at) parts.push_back(&ops_[at]);
  }
  const auto start = [](const std::vector<RecordedOp*>& parts) {
    return (*std::min_element(parts.begin(), parts.end(),
                              [](const RecordedOp* a, const RecordedOp* b) { return a->start < b->start; }))
        ->start;
  };
  std::stable_sort(order.begin(), order.end(), [&](const auto& a, const auto& b) { return start(a) < start(b); });
  now_ = last_end_ = start(order.front());
  for (const auto& parts : order) begin_together(parts);
  append(mark(OpKind::host_sync));
}

Program Rebuilder::run() {
  keep();
  if (record_.whole_program) {
    by_order();
  } else if (follows_times()) {
    ++tally_.by_times;
    by_times();
  } else {
    ++tally_.by_order;
    by_order();
  }
  return std::move(out_);
}

std::string_view text_of(NotTold what) {
  switch (what) {
    case NotTold::kind: return "kind";
    case NotTold::group: return "group";
    case NotTold::peer: return "peer";
  }
  return "";
}

// "40 ncclKernel_SendRecv (group) of ranks 0-7".
std::string unknown_text(const Recorded& recorded) {
  std::vector<const UnknownCalls*> most;
  for (const UnknownCalls& unknown : recorded.unknown) most.push_back(&unknown);
  std::stable_sort(most.begin(), most.end(),
                   [](const UnknownCalls* a, const UnknownCalls* b) { return a->calls > b->calls; });
  std::string text;
  for (std::size_t i = 0; i < std::min(most.size(), kUnknownTold); ++i) {
    text += fmt::format("{}the {} of {} {} of {}", i == 0 ? "" : ", ", text_of(most[i]->what), most[i]->calls,
                        most[i]->name, most[i]->ranks.label(4));
  }
  if (most.size() > kUnknownTold)
    text += " and of " + counted(most.size() - kUnknownTold, "more kind of call", "more kinds of call");
  return text;
}

void tell(Tally& tally) {
  Recorded& out = tally.out;
  for (auto& [key, unknown] : tally.unknown) {
    out.unknown_calls += unknown.calls;
    out.unknown.push_back(std::move(unknown));
  }
  Assumptions& said = out.assumed;
  if (tally.by_times > 0) {
    said.push_back(
        fmt::format("programs of {} follow the recorded times: what began late waited for what ended last before it on "
                    "another stream; what is left of its gap is a delay of that length, whatever else changes",
                    tally.by_times == 1 ? "one rank" : counted(tally.by_times, "rank", "ranks")));
  }
  if (tally.by_order > 0) {
    said.push_back(fmt::format("of {} the recorded calls are taken for all that there is, in their order",
                               tally.by_order == 1 ? "one rank" : counted(tally.by_order, "rank", "ranks")));
  }
  if (tally.placed > 0) {
    said.push_back(fmt::format("{} without a time {} put between {} neighbours",
                               counted(tally.placed, "operation", "operations"), tally.placed == 1 ? "was" : "were",
                               tally.placed == 1 ? "its" : "their"));
  }
  if (out.unknown_calls > 0) {
    said.push_back(fmt::format("{} of {} cannot be replayed and {} passed over: not recorded {} {}", out.unknown_calls,
                               counted(out.calls, "call", "calls"), out.unknown_calls == 1 ? "was" : "were",
                               out.unknown_calls == 1 ? "is" : "are", unknown_text(out)));
  }
  if (tally.cut > 0) {
    said.push_back(
        fmt::format("{} left out that not all members still have", counted(tally.cut, "call was", "calls were")));
  }
}

}  // namespace

std::string why_untimed(const Recorded& recorded) {
  std::string why;
  if (recorded.unknown_calls > 0) {
    why = fmt::format("{} of {} {} no time on another network: not recorded {} {}", recorded.unknown_calls,
                      counted(recorded.calls, "call", "calls"), recorded.unknown_calls == 1 ? "has" : "have",
                      recorded.unknown_calls == 1 ? "is" : "are", unknown_text(recorded));
  }
  for (const std::string& sentence : recorded.untimed) why += (why.empty() ? "" : "; ") + sentence;
  return why;
}

Untold untold_calls(const Recorded& recorded) {
  Untold untold;
  if (recorded.unknown_calls == 0) return untold;
  for (const UnknownCalls& unknown : recorded.unknown) untold.ranks.insert(unknown.ranks);
  untold.why = fmt::format("{} of {} calls could not be replayed (not recorded are {})", recorded.unknown_calls,
                           recorded.calls, unknown_text(recorded));
  return untold;
}

Recorded take_recorded(Trace& trace) {
  Tally tally;
  const auto first = first_common(trace);
  for (std::size_t i = 0; i < trace.ranks.size(); ++i) {
    RankRecord& record = trace.ranks[i];
    if (record.whole_program && !record.snapshot) continue;
    if (!record.rank) throw Error("a record does not say of which rank it is: name its file so (--rank-from)");
    if (length_of(trace.program(record)) > kMaxOps) {
      throw Error(fmt::format("rank {} was recorded to do more than {} operations", record.rank->value, kMaxOps));
    }
    record.comm_rank.resize(record.comms.size(), RankRecord::kNoPosition);
    Program program = Rebuilder(trace, record, first, tally).run();
    ++tally.out.records;
    record.program = ProgramId(trace.programs.size());
    // A window of a run ends where it was closed; a file that was cut holds less than its rank did.
    record.tail_lost = record.tail_lost && !record.head_lost;
    record.snapshot = record.head_lost = false;
    record.whole_program = true;
    trace.programs.push_back(std::move(program));
  }
  tell(tally);
  return std::move(tally.out);
}

}  // namespace ddx::sim
