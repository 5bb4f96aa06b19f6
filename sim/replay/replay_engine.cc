// Hosts and streams.
#include "sim/replay/replay_engine.h"

#include <algorithm>
#include <utility>

namespace ddx::sim {

template <class Item>
Item ReplayEngine::draw(std::vector<Item>& from) {
  if (options_.visit_seed != 0) std::swap(from.back(), from[random_() % from.size()]);
  const Item item = from.back();
  from.pop_back();
  return item;
}

void ReplayEngine::run() {
  if (!refusal_.empty()) return;
  for (std::size_t i = ranks_.size(); i-- > 0;) {
    hosts_.push_back(static_cast<std::uint32_t>(i));
    ranks_[i].queued = true;
  }
  // Everything that follows from a completion is put on one of the two lists, never called: nothing recurses.
  const auto can_go_on = [this] {
    return !ready_streams_.empty() || !hosts_.empty() || (!met_.empty() && release_groups()) || advance_network();
  };
  for (std::uint64_t turn = 0; refusal_.empty() && can_go_on(); ++turn) {
    if (options_.stop_after && turn >= *options_.stop_after) return;
    const bool in_mid_run = options_.stop_after && options_.visit_seed != 0;
    const bool stream_first = hosts_.empty() || !in_mid_run || random_() % 2 == 0;
    if (!ready_streams_.empty() && stream_first) {
      const OpRef ready = draw(ready_streams_);
      start_stream(ready.rank, static_cast<std::uint16_t>(ready.op));
    } else if (!hosts_.empty()) {
      run_host(draw(hosts_));
    }
  }
}

void ReplayEngine::run_host(std::uint32_t id) {
  Rank& rank = ranks_[id];
  rank.queued = false;
  if (!host_may_go_on(rank)) return;
  wake(rank);
  rank.wait = HostWait::none;
  rank.wait_row = kNoOp;
  const std::size_t size = program(id).ops.size();
  while (!rank.stopped && rank.pc < size) {
    if (!wait_for_room(id) || !step_host(id)) return;
    if (options_.stop_after && !rank.stopped && rank.pc < size) {
      // Its next step is another turn, so that hosts come apart.
      rank.queued = true;
      hosts_.push_back(id);
      return;
    }
  }
}

bool ReplayEngine::host_may_go_on(const Rank& rank) const {
  switch (rank.wait) {
    case HostWait::none: return true;
    case HostWait::op: return static_cast<OpState>(states_[rank.base + rank.waits_for]) == OpState::completed;
    case HostWait::group: return rank.group_left == 0;
    case HostWait::all: return rank.in_flight == 0;
  }
  return true;
}

// Whether the host may go on at once.
bool ReplayEngine::wait_in(Rank& rank, HostWait wait, std::uint32_t waits_for, std::uint32_t wait_row) {
  rank.wait = wait;
  rank.waits_for = waits_for;
  if (host_may_go_on(rank)) {
    wake(rank);
    rank.wait = HostWait::none;
    return true;
  }
  rank.wait_row = wait_row;
  return false;
}

bool ReplayEngine::wait_for_room(std::uint32_t id) {
  Rank& rank = ranks_[id];
  if (!rank.stream_ordered) return true;
  const auto& ops = program(id).ops;
  while (rank.ahead > options_.max_ahead) {
    while (!ops[rank.oldest].streamed) ++rank.oldest;
    if (!wait_in(rank, HostWait::op, rank.oldest, kNoOp)) return false;
    ++rank.oldest;
    --rank.ahead;
  }
  return true;
}

// The host has no end of such a send to wait for, in any model.
bool ReplayEngine::ends_locally(std::uint32_t id, std::uint32_t at) const {
  const UnrolledOp& op = program(id).ops[at];
  return op.kind == OpKind::send && op.async && record(id).sends_end_locally && !options_.rendezvous;
}

bool ReplayEngine::step_host(std::uint32_t id) {
  Rank& rank = ranks_[id];
  const UnrolledOp& op = program(id).ops[rank.pc];
  if (op.streamed && rank.group_open != kNoOp) {
    ++rank.pc;
    return true;
  }
  note_issue(rank, rank.pc);
  if (op.streamed) return step_streamed(id);
  switch (op.kind) {
    case OpKind::stop: rank.stopped = true; return done_by_host(id);
    case OpKind::wait: {
      // For a part of the open group, the group's end waits.
      const bool of_open_group = rank.group_open != kNoOp && op.target > rank.group_open;
      if (op.target == kNoOp || of_open_group || ends_locally(id, op.target) ||
          wait_in(rank, HostWait::op, op.target, rank.pc)) {
        return done_by_host(id);
      }
      return false;
    }
    case OpKind::host_sync:
      if (!wait_in(rank, HostWait::all, kNoOp, rank.pc)) return false;
      return done_by_host(id);
    case OpKind::group_begin: return open_group(id);
    case OpKind::group_end: return end_group(id);
    case OpKind::compute:
    case OpKind::delay: rank.now = later(rank.now, compute_time(id, rank.pc)); return done_by_host(id);
    default: return done_by_host(id);
  }
}

bool ReplayEngine::done_by_host(std::uint32_t id) {
  Rank& rank = ranks_[id];
  set_state(id, rank.pc, OpState::completed);
  end_at(rank, rank.pc);
  ++rank.pc;
  return true;
}

void ReplayEngine::schedule(std::uint32_t id, std::uint32_t op) {
  set_state(id, op, OpState::scheduled);
  note_issue(ranks_[id], op);
  ++ranks_[id].in_flight;
  ++ranks_[id].ahead;
}

bool ReplayEngine::step_streamed(std::uint32_t id) {
  Rank& rank = ranks_[id];
  const std::uint32_t at = rank.pc++;
  const UnrolledOp& op = program(id).ops[at];
  schedule(id, at);
  rank.issued = rank.pc;
  start_stream(id, op.stream);
  // A computation on a stream of its own never holds the host.
  const bool blocks = !op.async || (options_.blocking && !ends_locally(id, at));
  const bool holds_host = !rank.stream_ordered && blocks && !takes_length(op.kind);
  return !holds_host || wait_in(rank, HostWait::op, at, kNoOp);
}

// What communicates in a group is posted at its end; what the host does there, it does when it comes to it.
bool ReplayEngine::open_group(std::uint32_t id) {
  Rank& rank = ranks_[id];
  const auto& ops = program(id).ops;
  const std::uint32_t begin = rank.pc;
  done_by_host(id);
  if (rank.group_open != kNoOp) return true;
  std::uint32_t end = begin;
  while (end < ops.size() && end != ops[begin].target && ops[end].kind != OpKind::stop) ++end;
  if (end == ops[begin].target) {
    rank.group_open = begin;
  } else {
    // The rank stops before the group's end: nothing of it was posted.
    rank.pc = end;
  }
  return true;
}

bool ReplayEngine::end_group(std::uint32_t id) {
  Rank& rank = ranks_[id];
  const auto& ops = program(id).ops;
  const std::uint32_t begin = rank.group_open, end = rank.pc;
  if (begin == kNoOp || ops[begin].target != end) return done_by_host(id);
  set_state(id, end, OpState::completed);
  rank.group_open = kNoOp;
  rank.group_end = rank.now;
  rank.group_now = kNoOp;
  rank.group_left = 0;
  for (std::uint32_t at = begin + 1; at < end; ++at) {
    if (!ops[at].streamed) continue;
    schedule(id, at);
    rank.group_now = ops[at].group;
    if (!ops[at].async && !takes_length(ops[at].kind)) ++rank.group_left;
  }
  rank.pc = rank.issued = end + 1;
  for (std::uint32_t at = begin + 1; at < end; ++at) {
    if (ops[at].leads_batch) start_stream(id, ops[at].stream);
  }
  end_at(rank, end);
  return rank.stream_ordered || wait_in(rank, HostWait::group, kNoOp, end);
}

void ReplayEngine::start_stream(std::uint32_t id, std::uint16_t stream) {
  const Rank& rank = ranks_[id];
  StreamState& state = streams_[rank.streams + stream];
  if (state.head == kNoOp || state.left > 0 || state.head >= rank.issued || !may_start(rank, state.head)) return;
  const auto& ops = program(id).ops;
  const std::uint32_t head = state.head;
  for (std::uint32_t at = head; at != kNoOp; at = ops[at].next_in_batch) ++state.left;
  for (std::uint32_t at = head; at != kNoOp; at = ops[at].next_in_batch) start(id, at);
}

bool ReplayEngine::may_start(const Rank& rank, std::uint32_t batch) const {
  const UnrolledProgram& program = unrolled_[rank.program];
  if (!program.crosses_streams) return true;
  for (std::uint32_t at = batch; at != kNoOp; at = program.ops[at].next_in_batch) {
    const UnrolledOp& op = program.ops[at];
    if (is_collective(op.kind) && collectives_done_[rank.slots + op.comm_slot] < op.order) return false;
  }
  return true;
}

void ReplayEngine::start(std::uint32_t id, std::uint32_t at) {
  set_state(id, at, OpState::started);
  const UnrolledOp& op = program(id).ops[at];
  if (timed()) note_start(ranks_[id], op, at);
  if (is_p2p(op.kind)) {
    post(id, at);
  } else if (is_collective(op.kind)) {
    arrive(id, at);
  } else {
    complete({id, at}, later(start_of({id, at}), compute_time(id, at)), start_of({id, at}));
  }
}

void ReplayEngine::complete(OpRef ref, Picos end, Picos ready) {
  Rank& rank = ranks_[ref.rank];
  const UnrolledProgram& program = unrolled_[rank.program];
  const UnrolledOp& op = program.ops[ref.op];
  set_state(ref.rank, ref.op, OpState::completed);
  --rank.in_flight;
  if (timed()) note_end(rank, op, ref.op, end, ready);
  if (op.group == rank.group_now && op.group != kNoOp && !op.async && !takes_length(op.kind)) --rank.group_left;
  StreamState& stream = streams_[rank.streams + op.stream];
  if (--stream.left == 0) {
    stream.head = program.ops[stream.head].next_batch;
    if (stream.head < rank.issued) ready_streams_.push_back({ref.rank, op.stream});
  }
  if (is_collective(op.kind)) {
    ++collectives_done_[rank.slots + op.comm_slot];
    for (std::uint16_t s = 0; program.crosses_streams && s < program.streams; ++s)
      ready_streams_.push_back({ref.rank, s});
  }
  if (rank.wait != HostWait::none && !rank.queued && host_may_go_on(rank)) {
    rank.queued = true;
    hosts_.push_back(ref.rank);
  }
}

}  // namespace ddx::sim
