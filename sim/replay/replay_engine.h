// The machine behind replay(): flat arrays over (class of ranks, op), a ring of open instances for each class of
// communicators, a ring of open pairs for each class of channels. Internal to sim/replay.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "sim/collectives/step_network.h"
#include "sim/network/flow_set.h"
#include "sim/replay/agreement.h"
#include "sim/replay/folding.h"
#include "sim/replay/reference_replay.h"
#include "sim/replay/unrolled_program.h"
#include "traces/model/trace.h"

namespace ddx::sim {

// One op of one class of ranks: class and index into its unrolled program.
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
  // What calls that are not all alike move, by communicator and sequence number: found by a run without times, and
  // needed by one that goes step by step, which begins a call before all are there.
  using UnlikeWork = std::map<std::pair<std::uint32_t, std::uint32_t>, std::optional<Work>>;
  void note_unlike() { notes_unlike_ = true; }
  UnlikeWork take_unlike() { return std::exchange(unlike_work_, {}); }
  void know_unlike(UnlikeWork work) { unlike_work_ = std::move(work); }

 private:
  enum class HostWait : std::uint8_t { none, op, group, all };

  static constexpr Picos kNoTime = -1;  // not yet

  struct OpTimes {
    Picos start = kNoTime;  // until it starts on its stream: when the host came to it
    Picos ready = kNoTime;  // when all that take part were there
    Picos end = kNoTime;
  };
  // A class of ranks, run as its representative.
  struct Rank {
    std::uint32_t program = 0;         // into unrolled_
    std::uint64_t base = 0;            // of its ops in states_
    std::uint64_t streams = 0;         // of its streams in streams_
    std::uint64_t slots = 0;           // of its communicator slots in collectives_done_ and in the folding
    std::uint64_t endpoints = 0;       // of its endpoints in the folding
    std::uint32_t pc = 0;              // next op of the host
    std::uint32_t issued = 0;          // ops before this one went to their streams
    std::uint32_t waits_for = kNoOp;   // an op, for HostWait::op
    std::uint32_t wait_row = kNoOp;    // the host's own op that waits: wait, host_sync or group_end
    std::uint32_t group_open = kNoOp;  // the begin of the group that the host is in
    std::uint32_t group_now = kNoOp;   // the group issued last
    std::uint32_t group_left = 0;      // parts of it that the host waits for
    std::uint32_t in_flight = 0;
    std::uint32_t ahead = 0;   // stream model: streamed ops issued from `oldest` on
    std::uint32_t oldest = 0;  // all streamed ops before this one are complete
    HostWait wait = HostWait::none;
    bool queued = false;
    bool stopped = false;
    bool stream_ordered = false;
    // With times:
    Picos now = 0;        // of the host
    Picos group_end = 0;  // of the parts of group_now that are complete
    Picos last_end = 0;   // of all ops that are complete
  };
  struct StreamState {
    std::uint32_t head = kNoOp;  // first op of the batch that runs or is next
    std::uint32_t left = 0;      // parts of it that are not complete; 0: it has not started
    Picos busy_until = 0;
  };
  // The calls of one sequence number of one communicator.
  struct Instance {
    std::vector<OpRef> arrived;
    std::uint32_t members = 0;  // that arrived: a class counts for all its ranks in the communicator
    bool mixed = false;         // not all of one class and root
    bool unlike = false;        // not all of one signature, or with split lists
    bool done = false;
    Picos latest = 0;  // arrival
    std::uint32_t step_call = kNoOp;
    void clear() {
      arrived.clear();
      members = 0;
      mixed = unlike = done = false;
      latest = 0;
      step_call = kNoOp;
    }
  };
  struct CommState {
    OpenRing<Instance> instances;  // numbered by sequence number - 1
    std::uint32_t size = 0;
    // What its collectives of `uses` take of each resource, all members together; the latest kind of them.
    std::vector<ResourceUse> uses;
    std::vector<LinkUse> links;
    bool rooted = false;
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
    OpenRing<Pair> pairs;
  };
  // The calls of one communicator, or at one end of a channel, of a class of ranks.
  struct CallRow {
    std::uint64_t ranks = 0;
    std::uint64_t calls = 0;
    std::uint64_t base = 0;  // those before it are complete on all sides
  };
  // A collective or a transfer whose ranks are all there.
  struct Transit {
    bool pair = false;
    std::uint32_t at = 0;      // class of communicators, or of channels
    std::uint64_t number = 0;  // sequence number, or order
    const Cost* cost = nullptr;
  };
  // A collective or a transfer on the StepNetwork.
  struct StepCall {
    bool pair = false;
    std::uint32_t at = 0;  // as in Transit
    std::uint64_t number = 0;
    std::uint32_t left = 0;    // members that have not ended
    std::uint32_t root = 0;    // position of member 0: they go round from there
    std::vector<OpRef> calls;  // by member; not of a pair
  };
  struct Departure {
    Picos time;
    std::uint32_t transit;
    // The order of those that start at one time does not matter: they share from the same moment on.
    bool operator>(const Departure& other) const { return time > other.time; }
  };

  // Of the host.
  void run_host(std::uint32_t id);
  bool host_may_go_on(const Rank& rank) const;
  bool step_host(std::uint32_t id);  // false: the host waits, or is done
  bool step_streamed(std::uint32_t id);
  bool open_group(std::uint32_t id);
  bool end_group(std::uint32_t id);
  bool done_by_host(std::uint32_t id);
  void schedule(std::uint32_t id, std::uint32_t op);
  bool wait_in(Rank& rank, HostWait wait, std::uint32_t waits_for, std::uint32_t wait_row);
  bool wait_for_room(std::uint32_t id);
  // Of the streams.
  void start_stream(std::uint32_t rank, std::uint16_t stream);
  bool may_start(const Rank& rank, std::uint32_t batch) const;
  void start(std::uint32_t rank, std::uint32_t op);
  void complete(OpRef ref, Picos end, Picos ready);  // ready: when all that take part were there
  // Of matches.
  void arrive(std::uint32_t rank, std::uint32_t op);
  void meet(std::uint32_t comm, std::uint32_t seq, Instance& instance);
  bool instance_agrees(const Instance& instance) const;
  bool splits_agree(const Instance& instance) const;
  void post(std::uint32_t rank, std::uint32_t op);
  void pair_up(std::uint32_t channel, std::uint64_t order);
  bool is_eager(OpRef send) const;
  bool ends_locally(std::uint32_t id, std::uint32_t at) const;
  // Of groups in the strict model, in replay_groups.cc.
  bool release_groups();
  std::uint32_t open_parts(OpRef call, std::optional<OpRef>& lonely);
  bool has_met(OpRef call);
  void finish_pair(const Met& met);
  void note_mismatch(std::uint32_t comm, std::uint32_t seq, bool p2p, const std::vector<OpRef>& calls);
  void note_pair_mismatch(std::uint32_t seq, OpRef send, OpRef recv);

  // Times, in replay_times.cc. All of them do nothing where the replay has no cost model.
  bool timed() const { return options_.timing.costs != nullptr; }
  void note_issue(const Rank& rank, std::uint32_t op);
  void note_start(const Rank& rank, const UnrolledOp& op, std::uint32_t at);
  void note_end(Rank& rank, const UnrolledOp& op, std::uint32_t at, Picos end, Picos ready);
  // An operation of the host itself is over now.
  void end_at(Rank& rank, std::uint32_t at) {
    if (!timed()) return;
    if (rank.now == kForever) refuse_time();
    OpTimes& times = times_[rank.base + at];
    times.ready = times.end = rank.now;
    rank.last_end = std::max(rank.last_end, rank.now);
  }
  void wake(Rank& rank);  // the host's clock to the end of what it waited for
  Picos compute_time(std::uint32_t id, std::uint32_t op) const;
  Picos start_of(OpRef ref) const { return timed() ? times_[ranks_[ref.rank].base + ref.op].start : 0; }
  const Cost& cost_of(const Instance& instance);
  const Cost& cost_of(OpRef send);  // of a pair
  const Cost& cost_at(std::uint64_t key, OpRef call, std::optional<Cost> (ReplayEngine::*find)(OpRef) const);
  std::optional<Cost> collective_cost(OpRef call) const;
  void refuse_price(OpRef call);
  const Cost& cost_of_unlike(const Instance& instance);
  std::optional<Work> work_of_unlike(const Instance& instance) const;
  std::uint64_t heaviest_split(const Instance& instance, std::uint64_t even) const;
  std::optional<Cost> transfer_cost(OpRef send) const;

  // Step by step, in replay_steps.cc.
  bool by_steps() const { return timed() && steps_ != nullptr; }
  void set_up_steps();
  bool begin_call_by_steps(OpRef call, std::uint32_t comm, Instance& instance);
  void arrive_by_steps(OpRef call, std::uint32_t comm, Instance& instance);
  void send_by_steps(const Met& met);
  StepCall* begin_steps(const std::optional<StepWork>& work, std::optional<std::uint64_t> alike, OpRef call,
                        std::uint32_t& id);
  bool advance_steps();
  void end_by_steps(StepCall& step_call, const StepNetwork::End& end);

  // What is under way on shared links, in replay_network.cc.
  bool shares() const { return timed() && folding_.resources > 0; }
  void send_off(const Transit& transit, Picos start);
  bool advance_network();  // to its next event; false: nothing is under way
  void enter_network(std::uint32_t transit, Picos now);
  void arrive_from_network(const Transit& transit, Picos end);
  const std::vector<ResourceUse>& uses_of(const Cost& cost, OpRef call, std::uint32_t members) const;
  void add_loads(std::uint32_t rank, const std::vector<ResourceUse>& uses);
  const std::vector<LinkUse>& links_of(const Transit& transit);
  void complete_instance(std::uint32_t comm, std::uint32_t seq, Picos end);
  TimeShares shares_of(std::uint32_t rank, Picos run_end) const;  // in replay_shares.cc
  void complete_pair(const Met& met, Picos send_end, Picos recv_end);

  // In replay_setup.cc.
  void set_up();
  bool check_records();
  bool check_positions();
  bool check_lengths();
  bool unroll_programs();
  bool check_slots();
  bool fold_ranks();
  bool check_length();
  void lay_out_ranks();
  bool refuse_length();
  bool refuse_time() { return refuse("it takes more than 106 days, longer than can be timed"); }
  bool refuse(const std::string& reason) {
    if (refusal_.empty()) refusal_ = reason;
    return false;
  }
  template <class Item>
  Item draw(std::vector<Item>& from);

  // What a snapshot holds of each communicator and channel, in replay_window.cc: calls before and behind where it
  // stands; nullopt: all.
  std::optional<std::uint64_t> window_of(const ReplayResult& result) const;
  std::vector<CallRow> call_rows() const;
  std::vector<std::uint64_t> calls_by_slot(std::uint32_t rank) const;
  std::uint64_t comm_base(std::uint64_t row) const { return comms_[folding_.comm[row]].instances.base(); }
  std::uint64_t channel_base(std::uint64_t row) const;
  bool keeps(std::uint32_t rank, std::uint32_t op, std::uint64_t window) const;
  bool same_bases(std::uint32_t a, std::uint32_t b) const;

  const RankRecord& record(std::uint32_t rank) const { return trace_.ranks[folding_.representative[rank]]; }
  const UnrolledProgram& program(std::uint32_t rank) const { return unrolled_[ranks_[rank].program]; }
  const UnrolledOp& op_of(OpRef ref) const { return program(ref.rank).ops[ref.op]; }
  const Signature& signature_of(OpRef ref) const { return trace_.signature(signature_id(ref)); }
  SignatureId signature_id(OpRef ref) const { return trace_.program(record(ref.rank)).signature(op_of(ref).row); }
  // Of the representative.
  CommId comm_of(OpRef ref) const { return record(ref.rank).comms[op_of(ref).comm_slot]; }
  std::uint32_t position_of(OpRef ref) const { return record(ref.rank).comm_rank[op_of(ref).comm_slot]; }
  // Class of its communicator.
  std::uint64_t slot_row(OpRef ref) const { return ranks_[ref.rank].slots + op_of(ref).comm_slot; }
  std::uint32_t channel_of(OpRef ref) const {
    return folding_.channel[ranks_[ref.rank].endpoints + op_of(ref).endpoint];
  }
  std::optional<std::int32_t> root_of(OpRef ref) const;
  RankId partner_of(const RankRecord& record, OpRef call) const;
  OpState state(OpRef ref) const { return static_cast<OpState>(states_[ranks_[ref.rank].base + ref.op]); }
  void set_state(std::uint32_t rank, std::uint32_t op, OpState to) {
    states_[ranks_[rank].base + op] = static_cast<std::uint8_t>(to);
  }

  // The result, in replay_result.cc and replay_snapshot.cc.
  bool finished(const Rank& rank) const;
  ReplayResult::Outcome outcome(ReplayResult& result);
  void tell_ranks(ReplayResult& result);
  void tell_held(ReplayResult& result) const;
  void snapshot(ReplayResult& result) const;
  void add_snapshot_program(std::uint32_t rank, std::optional<std::uint64_t> window, Trace& out) const;
  bool same_run(std::uint32_t a, std::uint32_t b) const;
  std::size_t run_hash(std::uint32_t rank) const;
  std::vector<CommProgress> progress(std::uint32_t rank) const;
  void tell_lengths(std::uint32_t rank, std::vector<CommProgress>& progress) const;
  std::string waits_text();
  std::string instance_text(CommId comm, std::uint32_t seq, const Instance& instance) const;
  std::string pair_text(OpRef call) const;
  std::string mismatch_text(const ReplayMismatch& mismatch) const;
  std::string group_name(CommId comm) const { return std::string(trace_.text(trace_.communicator(comm).name)); }

  const Trace& trace_;
  const ReplayOptions options_;
  MatchClasses classes_;
  std::mt19937_64 random_;
  std::string refusal_;
  std::vector<UnrolledProgram> unrolled_;
  Folding folding_;
  std::vector<Rank> ranks_;
  std::vector<std::uint8_t> states_;
  std::vector<OpTimes> times_;  // with times, beside states_
  std::vector<StreamState> streams_;
  std::vector<std::uint32_t> collectives_done_;  // by slot row
  std::vector<Picos> comm_until_;                // by slot row: the end of its latest collective
  std::vector<CommState> comms_;                 // by class of communicators
  std::vector<Channel> channels_;                // by class of channels
  std::vector<std::uint32_t> hosts_;             // that may go on
  std::vector<OpRef> ready_streams_;             // rank, stream
  std::vector<ReplayMismatch> mismatches_;
  std::vector<Met> met_;  // strict groups: pairs that are not complete
  // And why nothing of them goes on: for each held group the call whose partner has not come, or is held itself.
  std::vector<OpRef> held_;
  std::unordered_map<std::uint64_t, Cost, KeyedHash> costs_;  // of a class of communicators or channels, and signature
  std::map<std::tuple<std::uint32_t, OpKind, std::uint64_t, DataType, RedOp>, Cost> unlike_costs_;  // by communicator
  bool notes_unlike_ = false;
  UnlikeWork unlike_work_;
  std::unique_ptr<StepNetwork> steps_;  // absent: closed forms
  std::uint32_t step_ranks_ = 0;        // that its network has
  std::vector<StepCall> step_calls_;    // by id
  std::vector<StepNetwork::End> step_ends_;
  std::vector<Transit> transits_;  // under way; entries of free_transits_ are not
  std::vector<std::uint32_t> free_transits_;
  std::priority_queue<Departure, std::vector<Departure>, std::greater<>> departures_;
  std::optional<FlowSet> flows_;
  std::vector<std::uint32_t> transit_of_flow_;
  std::vector<LinkUse> loads_;
  std::vector<LinkUse> pair_links_;
  std::vector<FlowSet::FlowId> finished_;
};

}  // namespace ddx::sim
