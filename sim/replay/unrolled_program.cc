#include "sim/replay/unrolled_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <unordered_map>

namespace ddx::sim {
namespace {

std::uint64_t saturating_product(std::uint64_t a, std::uint64_t b) {
  return b != 0 && a > std::numeric_limits<std::uint64_t>::max() / b ? std::numeric_limits<std::uint64_t>::max()
                                                                     : a * b;
}

// Keeps the counters of a program while it is walked.
class Unroller {
 public:
  Unroller(const Trace& trace, const Program& program, std::string& refusal)
      : trace_(trace), program_(program), refusal_(refusal) {}
  UnrolledProgram run();

 private:
  void index_async_rows();
  void append(std::size_t row);
  void begin_or_end_group(std::uint32_t index);
  void communicate(UnrolledOp& op, std::uint32_t index, const Signature& signature);
  void to_stream(UnrolledOp& op, std::uint32_t index, std::uint64_t key);
  void count_collective(UnrolledOp& op);
  void count_p2p(UnrolledOp& op, std::uint32_t peer_slot);
  std::uint64_t stream_key(const UnrolledOp& op, const Signature& signature) const {
    return signature.stream ? std::uint64_t{1} << 32 | *signature.stream : op.comm_slot;
  }

  struct Stream {
    std::uint32_t last_lead = kNoOp;  // the batch that was appended last
    std::uint32_t last_part = kNoOp;
    std::uint32_t group = kNoOp;  // of that batch
  };
  struct Counter {
    std::uint32_t collectives = 0, p2p = 0;
    std::uint32_t before_group = 0;  // collectives when the open group began
    std::uint32_t group = kNoOp;     // and which one that was
    std::optional<std::uint16_t> stream;
  };

  const Trace& trace_;
  const Program& program_;
  std::string& refusal_;
  UnrolledProgram out_;
  std::unordered_map<std::uint64_t, std::uint16_t> stream_of_;
  std::vector<Stream> streams_;
  std::unordered_map<std::uint16_t, Counter> counters_;
  std::unordered_map<std::uint64_t, std::uint32_t> endpoint_of_;
  std::vector<std::uint32_t> endpoint_counts_;
  std::set<Root> roots_;
  std::set<std::uint16_t> split_slots_;
  std::vector<std::uint32_t> handle_row_;                    // by handle: its row
  std::unordered_map<std::uint32_t, std::uint32_t> latest_;  // by row of an async op: its latest index
  std::uint32_t depth_ = 0, groups_ = 0, group_begin_ = kNoOp;
};

void Unroller::index_async_rows() {
  for (std::size_t row = 0; row < program_.size(); ++row) {
    if (trace_.signature(program_.signature(row)).async) handle_row_.push_back(static_cast<std::uint32_t>(row));
  }
}

UnrolledProgram Unroller::run() {
  index_async_rows();
  out_.ops.reserve(length_of(program_));
  for (OpCursor cursor(program_); !cursor.done() && refusal_.empty(); cursor.next()) append(cursor.op().value);
  out_.roots.assign(roots_.begin(), roots_.end());
  out_.split_slots.assign(split_slots_.begin(), split_slots_.end());
  return std::move(out_);
}

void Unroller::append(std::size_t row) {
  const Signature& signature = trace_.signature(program_.signature(row));
  const auto index = static_cast<std::uint32_t>(out_.ops.size());
  UnrolledOp op;
  op.row = static_cast<std::uint32_t>(row);
  op.kind = signature.kind;
  op.async = signature.async;
  if (op.kind == OpKind::wait) {
    if (!signature.handle || *signature.handle >= handle_row_.size()) {
      refusal_ = "a wait names no asynchronous operation of its program";
      return;
    }
    const auto at = latest_.find(handle_row_[*signature.handle]);
    if (at != latest_.end()) op.target = at->second;
  }
  if (op.async) latest_[op.row] = index;
  if (is_collective(op.kind) || is_p2p(op.kind)) communicate(op, index, signature);
  if (takes_length(op.kind) && signature.stream) {
    if (depth_ > 0) op.group = groups_ - 1;
    to_stream(op, index, std::uint64_t{1} << 32 | *signature.stream);
  }
  if (op.kind == OpKind::unknown) {
    refusal_ = fmt::format("operation '{}' is of no kind that can be replayed", trace_.text(signature.name));
  }
  out_.ops.push_back(op);
  begin_or_end_group(index);
}

void Unroller::begin_or_end_group(std::uint32_t index) {
  if (out_.ops[index].kind == OpKind::group_begin && depth_++ == 0) {
    group_begin_ = index;
    ++groups_;
  } else if (out_.ops[index].kind == OpKind::group_end) {
    if (depth_ == 0) {
      refusal_ = "a group ends that did not begin";
    } else if (--depth_ == 0) {
      out_.ops[group_begin_].target = index;
    }
  }
}

void Unroller::communicate(UnrolledOp& op, std::uint32_t index, const Signature& signature) {
  const auto slot = program_.comm_slot(op.row);
  if (!slot || (is_p2p(op.kind) && !signature.peer_slot)) {
    refusal_ = fmt::format("a {} names no communicator or no peer", name_of(op.kind));
    return;
  }
  op.comm_slot = *slot;
  out_.comm_slots = std::max(out_.comm_slots, std::uint32_t{*slot} + 1);
  if (signature.peer_slot) out_.peer_slots = std::max(out_.peer_slots, *signature.peer_slot + 1);
  if (depth_ > 0) op.group = groups_ - 1;
  to_stream(op, index, stream_key(op, signature));
  if (is_p2p(op.kind)) {
    count_p2p(op, *signature.peer_slot);
    return;
  }
  count_collective(op);
  if (is_rooted(op.kind) && signature.peer_slot) roots_.insert({*slot, *signature.peer_slot});
  if (!signature.split_in.empty() || !signature.split_out.empty()) split_slots_.insert(*slot);
}

void Unroller::count_p2p(UnrolledOp& op, std::uint32_t peer_slot) {
  op.seq = ++counters_[op.comm_slot].p2p;
  const bool sends = op.kind == OpKind::send;
  const std::uint64_t key = std::uint64_t{op.comm_slot} << 33 | std::uint64_t{sends} << 32 | peer_slot;
  const auto [at, fresh] = endpoint_of_.try_emplace(key, static_cast<std::uint32_t>(out_.endpoints.size()));
  if (fresh) {
    out_.endpoints.push_back({op.comm_slot, peer_slot, sends});
    endpoint_counts_.push_back(0);
  }
  op.endpoint = at->second;
  op.order = endpoint_counts_[op.endpoint]++;
}

void Unroller::count_collective(UnrolledOp& op) {
  Counter& counter = counters_[op.comm_slot];
  if (op.group == kNoOp || op.group != counter.group) {
    counter.before_group = counter.collectives;
    counter.group = op.group;
  }
  op.order = counter.before_group;
  op.seq = ++counter.collectives;
  if (counter.stream && *counter.stream != op.stream) out_.crosses_streams = true;
  counter.stream = op.stream;
}

void Unroller::to_stream(UnrolledOp& op, std::uint32_t index, std::uint64_t key) {
  const auto [at, fresh] = stream_of_.try_emplace(key, static_cast<std::uint16_t>(streams_.size()));
  if (fresh && streams_.size() == 0xffff) {
    refusal_ = "a program uses more than 65,535 streams";
    return;
  }
  if (fresh) {
    streams_.emplace_back();
    out_.first_batch.push_back(index);
    ++out_.streams;
  }
  Stream& stream = streams_[at->second];
  op.streamed = true;
  op.stream = at->second;
  if (op.group != kNoOp && stream.last_lead != kNoOp && stream.group == op.group) {
    out_.ops[stream.last_part].next_in_batch = index;
  } else {
    if (stream.last_lead != kNoOp) out_.ops[stream.last_lead].next_batch = index;
    op.leads_batch = true;
    stream.last_lead = index;
    stream.group = op.group;
  }
  stream.last_part = index;
}

}  // namespace

std::uint64_t length_of(const Program& program) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  struct Open {
    std::uint32_t end;
    std::uint64_t times;
  };
  std::vector<Open> open;
  std::size_t next_loop = 0;
  std::uint64_t total = 0;
  for (std::size_t row = 0; row < program.size(); ++row) {
    while (!open.empty() && open.back().end <= row) open.pop_back();
    for (; next_loop < program.loops.size() && program.loops[next_loop].begin <= row; ++next_loop) {
      const Loop& loop = program.loops[next_loop];
      if (loop.end <= row) continue;
      open.push_back({loop.end, saturating_product(open.empty() ? 1 : open.back().times, loop.count)});
    }
    const std::uint64_t times = open.empty() ? 1 : open.back().times;
    if (total > kMax - times) return kMax;
    total += times;
  }
  return total;
}

UnrolledProgram unroll(const Trace& trace, const Program& program, std::string& refusal) {
  return Unroller(trace, program, refusal).run();
}

}  // namespace ddx::sim
