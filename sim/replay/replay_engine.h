// The machine behind replay(): flat arrays over (rank, op), a ring of open instances for each communicator, a ring of
// open pairs for each channel. Internal to sim/replay.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/replay/agreement.h"
#include "sim/replay/reference_replay.h"
#include "sim/replay/unrolled_program.h"
#include "traces/model/trace.h"

namespace ddx::sim {

// One op of one rank: record index and index into its unrolled program.
struct OpRef {
  std::uint32_t rank = kNoOp;
  std::uint32_t op = kNoOp;
};

// Items [base, base + size) of an endless row, of which only a few in the middle are open.
template <class Item>
class OpenRing {
 public:
  Item& at(std::uint64_t number) {
    if (number - base_ >= ring_.size()) grow(number - base_ + 1);
    if (number - base_ >= used_) used_ = number - base_ + 1;
    return ring_[number & (ring_.size() - 1)];
  }
  // The first open item; only where size() > 0.
  Item& front() { return ring_[base_ & (ring_.size() - 1)]; }
  void pop() {
    front().clear();
    ++base_;
    --used_;
  }
  std::uint64_t base() const { return base_; }
  std::uint64_t size() const { return used_; }

 private:
  void grow(std::uint64_t wanted) {
    std::uint64_t size = ring_.empty() ? 2 : ring_.size();
    while (size < wanted) size *= 2;
    std::vector<Item> larger(size);
    for (std::uint64_t i = base_; i < base_ + used_; ++i) {
      larger[i & (size - 1)] = std::move(ring_[i & (ring_.size() - 1)]);
    }
    ring_ = std::move(larger);
  }

  std::vector<Item> ring_;
  std::uint64_t base_ = 0, used_ = 0;
};

class ReplayEngine {
 public:
  ReplayEngine(const Trace& trace, const ReplayOptions& options);
  void run();
  ReplayResult result();

 private:
  enum class HostWait : std::uint8_t { none, op, group, all, room };

  struct Rank {
    std::uint32_t program = 0;        // into unrolled_
    std::uint64_t base = 0;           // of its ops in states_
    std::uint64_t streams = 0;        // of its streams in streams_
    std::uint64_t slots = 0;          // of its communicator slots in collectives_done_
    std::uint64_t peers = 0;          // of its peer slots in channels_of_
    std::uint32_t pc = 0;             // next op of the host
    std::uint32_t issued = 0;         // ops before this one went to their streams
    std::uint32_t waits_for = kNoOp;  // an op, for HostWait::op
    std::uint32_t wait_row = kNoOp;   // the host's own op that waits: wait, host_sync or group_end
    std::uint32_t group_now = kNoOp;  // the group issued last
    std::uint32_t group_left = 0;     // parts of it that the host waits for
    std::uint32_t in_flight = 0;
    HostWait wait = HostWait::none;
    bool queued = false;
    bool stopped = false;
    bool stream_ordered = false;
  };
  struct StreamState {
    std::uint32_t head = kNoOp;  // first op of the batch that runs or is next
    std::uint32_t left = 0;      // parts of it that are not complete; 0: it has not started
  };
  // The calls of one sequence number of one communicator.
  struct Instance {
    std::vector<OpRef> arrived;
    bool mixed = false;  // not all of one class and root
    bool done = false;
    void clear() {
      arrived.clear();
      mixed = done = false;
    }
  };
  struct CommState {
    OpenRing<Instance> instances;  // numbered by sequence number - 1
    std::uint32_t size = 0;
  };
  struct Pair {
    OpRef send, recv;
    bool done = false;
    void clear() { *this = {}; }
  };
  // A pair whose send and receive are there and wait for their groups.
  struct Met {
    std::uint32_t channel = 0;
    std::uint64_t order = 0;
  };
  struct Channel {
    CommId comm;
    std::int32_t from = 0, to = 0;                       // positions
    std::uint32_t send_slot = kNoOp, recv_slot = kNoOp;  // the peer slots by which the two ranks name it
    OpenRing<Pair> pairs;
  };

  // Of the host.
  void run_host(std::uint32_t id);
  bool host_may_go_on(const Rank& rank) const;
  bool step_host(std::uint32_t id);  // false: the host waits, or is done
  bool step_streamed(std::uint32_t id);
  bool step_group(std::uint32_t id);
  bool done_by_host(std::uint32_t id);
  void schedule(std::uint32_t id, std::uint32_t op);
  bool wait_in(Rank& rank, HostWait wait, std::uint32_t waits_for, std::uint32_t wait_row);
  bool wait_for_room(Rank& rank);
  // Of the streams.
  void start_stream(std::uint32_t rank, std::uint16_t stream);
  bool may_start(const Rank& rank, std::uint32_t batch) const;
  void start(std::uint32_t rank, std::uint32_t op);
  void complete(OpRef ref);
  // Of matches.
  void arrive(std::uint32_t rank, std::uint32_t op);
  void meet(CommId comm, std::uint32_t seq, Instance& instance);
  bool instance_agrees(const Instance& instance) const;
  bool splits_agree(const Instance& instance) const;
  void post(std::uint32_t rank, std::uint32_t op);
  std::uint32_t channel_of(std::uint32_t rank, const UnrolledOp& op, std::int32_t peer);
  // Of groups in the strict model, in replay_groups.cc.
  bool release_groups();
  std::uint32_t open_parts(OpRef call, std::optional<OpRef>& lonely);
  bool has_met(OpRef call);
  RankId partner_of(OpRef call) const;
  void finish_pair(const Met& met);
  void note_mismatch(CommId comm, std::uint32_t seq, bool p2p, const std::vector<OpRef>& calls);

  void set_up();
  bool check_records();
  bool check_positions();
  bool unroll_programs();
  void lay_out_ranks();
  bool refuse(const std::string& reason) {
    if (refusal_.empty()) refusal_ = reason;
    return false;
  }
  template <class Item>
  Item draw(std::vector<Item>& from);

  const RankRecord& record(std::uint32_t rank) const { return trace_.ranks[rank]; }
  const UnrolledProgram& program(std::uint32_t rank) const { return unrolled_[ranks_[rank].program]; }
  const UnrolledOp& op_of(OpRef ref) const { return program(ref.rank).ops[ref.op]; }
  const Signature& signature_of(OpRef ref) const { return trace_.signature(signature_id(ref)); }
  SignatureId signature_id(OpRef ref) const { return trace_.program(record(ref.rank)).signature(op_of(ref).row); }
  CommId comm_of(OpRef ref) const { return record(ref.rank).comms[op_of(ref).comm_slot]; }
  std::uint32_t position_of(OpRef ref) const { return record(ref.rank).comm_rank[op_of(ref).comm_slot]; }
  std::optional<std::int32_t> root_of(OpRef ref) const;
  OpState state(OpRef ref) const { return static_cast<OpState>(states_[ranks_[ref.rank].base + ref.op]); }
  void set_state(std::uint32_t rank, std::uint32_t op, OpState to) {
    states_[ranks_[rank].base + op] = static_cast<std::uint8_t>(to);
  }

  // The result, in replay_result.cc.
  bool finished(const Rank& rank) const;
  void snapshot(ReplayResult& result) const;
  ProgramId snapshot_program(std::uint32_t rank, Trace& out) const;
  std::vector<CommProgress> progress(std::uint32_t rank) const;
  std::string waits_text();
  std::string instance_text(CommId comm, std::uint32_t seq, const Instance& instance) const;
  std::string mismatch_text(const ReplayMismatch& mismatch) const;
  std::string group_name(CommId comm) const { return std::string(trace_.text(trace_.communicator(comm).name)); }

  const Trace& trace_;
  const ReplayOptions options_;
  MatchClasses classes_;
  std::mt19937_64 random_;
  std::string refusal_;
  std::vector<UnrolledProgram> unrolled_;
  std::vector<Rank> ranks_;
  std::vector<std::uint8_t> states_;
  std::vector<StreamState> streams_;
  std::vector<std::uint32_t> collectives_done_;
  std::vector<CommState> comms_;
  std::vector<Channel> channels_;
  std::vector<std::uint32_t> channels_of_;  // by rank's peer slot and direction: channel, kNoOp until asked for
  std::unordered_map<std::string, std::uint32_t> channel_index_;
  std::vector<std::uint32_t> hosts_;  // that may go on
  std::vector<OpRef> ready_streams_;  // rank, stream
  std::vector<ReplayMismatch> mismatches_;
  std::vector<Met> met_;         // strict groups: pairs that are not complete
  std::vector<HeldGroup> held_;  // why nothing of them goes on
};

}  // namespace ddx::sim
