#include "sim/replay/recorded_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "base/error.h"
#include "sim/replay/unrolled_program.h"

namespace ddx::sim {
namespace {

constexpr std::uint64_t kMaxOps = 50'000'000;

// Operations of a stream among which the cause of a late start is looked for.
constexpr std::size_t kRemembered = 8;

// What all records together came to.
struct Tally {
  std::uint64_t by_times = 0, by_order = 0;  // records
  std::uint64_t as_computation = 0;          // operations
  std::uint64_t cut = 0;                     // operations before a group's first common call
};

bool is_call(OpKind kind) { return is_collective(kind) || is_p2p(kind); }

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
  struct Timed {
    Op op;
    Nanos start = 0, end = 0;
    std::uint32_t stream = 0;
    std::uint32_t handle = 0;  // once it was issued
  };
  bool is_lost(std::size_t row) const;
  bool replayable(const Op& op) const;
  void as_computation(Op& op, Nanos length);
  bool has_times(const std::vector<Op>& ops) const;
  std::vector<Op> kept();
  void by_order(const std::vector<Op>& ops);
  void by_times(const std::vector<Op>& ops);
  std::uint32_t stream_of(const Op& op) const;
  void issue(Timed& timed);
  void host(OpKind kind, Nanos length, std::uint32_t handle);
  void mark(OpKind kind);
  // The last operation of another stream that ended in (after, before].
  const Timed* cause(std::uint32_t stream, Nanos after, Nanos before) const;

  Trace& trace_;
  const RankRecord& record_;
  const Program& rows_;
  const std::map<CommId, std::uint32_t>& first_;
  Tally& tally_;
  Program out_;
  std::uint32_t handles_ = 0;
  std::map<std::uint32_t, std::deque<Timed>> latest_;  // by stream: what was issued last, a few of it
};

bool Rebuilder::is_lost(std::size_t row) const {
  const Signature& signature = trace_.signature(rows_.signature(row));
  if (!is_collective(signature.kind) || !rows_.comm_slot(row) || !rows_.seq(row)) return false;
  const auto at = first_.find(record_.comms[*rows_.comm_slot(row)]);
  return at != first_.end() && *rows_.seq(row) < at->second;
}

bool Rebuilder::replayable(const Op& op) const {
  const Signature& signature = trace_.signature(op.signature);
  if (!is_call(signature.kind)) return signature.kind != OpKind::unknown;
  if (!op.comm_slot || (is_p2p(signature.kind) && !signature.peer_slot)) return false;
  return record_.comm_rank[*op.comm_slot] != RankRecord::kNoPosition &&
         !trace_.communicator(record_.comms[*op.comm_slot]).members.empty();
}

void Rebuilder::as_computation(Op& op, Nanos length) {
  Signature signature;
  signature.kind = OpKind::compute;
  signature.compute_time = length;
  signature.name = trace_.signature(op.signature).name;
  signature.stream = trace_.signature(op.signature).stream;
  op = Op{};
  op.signature = trace_.intern(std::move(signature));
  ++tally_.as_computation;
}

// What the rank did of what the replay can use.
std::vector<Op> Rebuilder::kept() {
  std::vector<Op> ops;
  for (OpCursor cursor(rows_); !cursor.done(); cursor.next()) {
    const std::uint32_t row = cursor.op().value;
    if (is_lost(row)) {
      ++tally_.cut;
      continue;
    }
    Op op = rows_.at(OpId(row));
    const OpKind kind = trace_.signature(op.signature).kind;
    if (op.state == OpState::planned || kind == OpKind::coalesced) continue;
    if (!replayable(op)) {
      const bool timed = op.start && op.end && *op.end >= *op.start;
      const auto start = op.start, end = op.end;
      as_computation(op, timed ? *end - *start : 0);
      op.start = start;
      op.end = end;
    }
    ops.push_back(op);
  }
  return ops;
}

bool Rebuilder::has_times(const std::vector<Op>& ops) const {
  return !ops.empty() &&
         std::all_of(ops.begin(), ops.end(), [](const Op& op) { return op.start && op.end && *op.end >= *op.start; });
}

void Rebuilder::mark(OpKind kind) {
  Signature signature;
  signature.kind = kind;
  Op op;
  op.signature = trace_.intern(std::move(signature));
  out_.append(op);
}

void Rebuilder::by_order(const std::vector<Op>& ops) {
  std::optional<std::uint32_t> open;
  for (const Op& op : ops) {
    if (op.group != open) {
      if (open) mark(OpKind::group_end);
      if (op.group) mark(OpKind::group_begin);
      open = op.group;
    }
    Op row;
    row.signature = op.signature;
    row.comm_slot = op.comm_slot;
    row.call_site = op.call_site;
    out_.append(row);
  }
  if (open) mark(OpKind::group_end);
}

// Streams that are not named are the communicators'.
std::uint32_t Rebuilder::stream_of(const Op& op) const {
  const Signature& signature = trace_.signature(op.signature);
  constexpr std::uint32_t kOfComms = 1U << 30;
  if (signature.stream) return *signature.stream;
  return kOfComms + op.comm_slot.value_or(0);
}

void Rebuilder::issue(Timed& timed) {
  Signature signature = trace_.signature(timed.op.signature);
  signature.async = true;
  signature.stream = timed.stream;
  if (signature.kind == OpKind::compute) signature.compute_time = timed.end - timed.start;
  Op row;
  row.signature = trace_.intern(std::move(signature));
  row.comm_slot = timed.op.comm_slot;
  row.call_site = timed.op.call_site;
  timed.handle = handles_++;
  out_.append(row);
}

void Rebuilder::host(OpKind kind, Nanos length, std::uint32_t handle) {
  Signature signature;
  signature.kind = kind;
  if (kind == OpKind::compute) signature.compute_time = length;
  if (kind == OpKind::wait) signature.handle = handle;
  Op op;
  op.signature = trace_.intern(std::move(signature));
  out_.append(op);
}

const Rebuilder::Timed* Rebuilder::cause(std::uint32_t stream, Nanos after, Nanos before) const {
  const Timed* found = nullptr;
  for (const auto& [other, issued] : latest_) {
    if (other == stream) continue;
    for (const Timed& timed : issued) {
      if (timed.end <= after || timed.end > before) continue;
      if (found == nullptr || timed.end > found->end) found = &timed;
    }
  }
  return found;
}

void Rebuilder::by_times(const std::vector<Op>& ops) {
  std::vector<Timed> order;
  for (const Op& op : ops) order.push_back({op, *op.start, *op.end, stream_of(op), 0});
  std::stable_sort(order.begin(), order.end(), [](const Timed& a, const Timed& b) { return a.start < b.start; });
  Nanos now = order.front().start;  // of the host, if all takes as long as recorded
  for (Timed& timed : order) {
    auto& own = latest_[timed.stream];
    Nanos earliest = own.empty() ? now : std::max(now, own.back().end);
    if (timed.start > earliest) {
      if (const Timed* other = cause(timed.stream, earliest, timed.start)) {
        host(OpKind::wait, 0, other->handle);
        now = std::max(now, other->end);
        earliest = std::max(earliest, now);
      }
    }
    if (timed.start > earliest) {
      host(OpKind::compute, timed.start - now, 0);
      now = timed.start;
    }
    issue(timed);
    own.push_back(timed);
    if (own.size() > kRemembered) own.pop_front();
  }
  host(OpKind::host_sync, 0, 0);
}

Program Rebuilder::run() {
  const std::vector<Op> ops = kept();
  if (has_times(ops)) {
    ++tally_.by_times;
    by_times(ops);
  } else {
    ++tally_.by_order;
    by_order(ops);
  }
  return std::move(out_);
}

Assumptions told(const Tally& tally) {
  Assumptions said;
  if (tally.by_times > 0) {
    said.push_back(
        fmt::format("programs of {} follow the recorded times: what began late waited for what ended last "
                    "before it on another stream, else for the host",
                    tally.by_times == 1 ? "one rank" : fmt::format("{} ranks", tally.by_times)));
  }
  if (tally.by_order > 0) {
    said.push_back(fmt::format("of {} the recorded calls are taken for all that there is, in their order",
                               tally.by_order == 1 ? "one rank" : fmt::format("{} ranks", tally.by_order)));
  }
  if (tally.as_computation > 0) {
    said.push_back(
        fmt::format("{} operations of unknown kind, or of groups whose members are not known, are replayed as "
                    "computations of their length",
                    tally.as_computation));
  }
  if (tally.cut > 0) {
    said.push_back(fmt::format("{} calls were left out that not all members still have", tally.cut));
  }
  return said;
}

}  // namespace

Assumptions take_recorded(Trace& trace) {
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
    record.program = ProgramId(trace.programs.size());
    record.snapshot = record.head_lost = record.tail_lost = false;
    record.whole_program = true;
    trace.programs.push_back(std::move(program));
  }
  return told(tally);
}

}  // namespace ddx::sim
