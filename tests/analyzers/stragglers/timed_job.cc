#include "tests/analyzers/stragglers/timed_job.h"

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "base/check.h"

namespace ddx::testing {
namespace {

struct Todo {
  OpKind kind = OpKind::compute;
  Nanos length = 0;        // of compute
  std::uint32_t comm = 0;  // of a collective
  std::uint32_t peer = 0;  // rank
};
struct Done {
  Todo op;
  Nanos start = 0, end = 0;
};

class Run {
 public:
  explicit Run(const TimedJob& job) : job_(job), random_(job.seed), todo_(job.ranks()), done_(job.ranks()) {
    for (std::uint32_t rank = 0; rank < job.ranks(); ++rank) add_rank(rank);
    for (std::uint32_t step = 0; step < job.steps; ++step) {
      for (std::uint32_t rank = 0; rank < job.ranks(); ++rank) plan_step(rank, step);
    }
  }

  Evidence evidence() {
    play();
    Evidence evidence;
    for (std::size_t i = 0; i < comms_.size(); ++i)
      comm_ids_.push_back(evidence.trace.intern(communicator(i, evidence)));
    std::map<std::uint32_t, Nanos> clocks;
    for (std::uint32_t rank = 0; rank < job_.ranks(); ++rank) {
      const std::uint32_t host = job_.ranks_per_host > 0 ? rank / job_.ranks_per_host : rank;
      if (!clocks.contains(host)) clocks[host] = static_cast<Nanos>(uniform() * static_cast<double>(job_.clocks_apart));
      record(rank, host, clocks[host], evidence);
    }
    return evidence;
  }

 private:
  double uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
  double normal() {
    double sum = 0;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return sum - 6;
  }

  std::uint32_t comm(const std::string& name, std::vector<std::uint32_t> members) {
    const auto [at, fresh] = comm_index_.try_emplace(name, static_cast<std::uint32_t>(comms_.size()));
    if (fresh) comms_.push_back({name, std::move(members)});
    return at->second;
  }

  struct Place {
    std::uint32_t d, p, t;
  };
  Place place_of(std::uint32_t rank) const {
    return {rank / (job_.pipeline * job_.tensor), rank / job_.tensor % job_.pipeline, rank % job_.tensor};
  }
  std::uint32_t rank_at(Place at) const { return (at.d * job_.pipeline + at.p) * job_.tensor + at.t; }

  void add_rank(std::uint32_t rank) {
    const auto [d, p, t] = place_of(rank);
    std::vector<std::uint32_t> tp, dp, world;
    for (std::uint32_t i = 0; i < job_.tensor; ++i) tp.push_back(rank_at({d, p, i}));
    for (std::uint32_t i = 0; i < job_.data; ++i) dp.push_back(rank_at({i, p, t}));
    for (std::uint32_t i = 0; i < job_.ranks(); ++i) world.push_back(i);
    tp_.push_back(comm("tp" + std::to_string(d * job_.pipeline + p), tp));
    dp_.push_back(comm("dp" + std::to_string(p * job_.tensor + t), dp));
    world_ = comm("world", world);
  }

  void work(std::uint32_t rank, std::uint32_t step, double share) {
    double length = static_cast<double>(job_.compute) * share * std::max(0.1, 1 + job_.noise * normal());
    if (uniform() < job_.tail_chance) length *= job_.tail;
    const bool slow = job_.slow.contains(rank) && step >= job_.slow_from && step < job_.slow_until;
    todo_[rank].push_back({OpKind::compute, static_cast<Nanos>(length * (slow ? job_.slowdown : 1)), 0, 0});
  }

  void plan_pass(std::uint32_t rank, std::uint32_t step, bool forward) {
    const auto [d, p, t] = place_of(rank);
    const bool first = forward ? p == 0 : p + 1 == job_.pipeline, last = forward ? p + 1 == job_.pipeline : p == 0;
    const std::uint32_t before = forward ? p - 1 : p + 1, behind = forward ? p + 1 : p - 1;
    if (!first) todo_[rank].push_back({OpKind::recv, 0, world_, rank_at({d, before, t})});
    for (std::uint32_t layer = 0; layer < job_.layers; ++layer) {
      work(rank, step, forward ? 1 : 2);
      if (job_.tensor > 1) todo_[rank].push_back({OpKind::all_reduce, 0, tp_[rank], 0});
    }
    if (!last) todo_[rank].push_back({OpKind::send, 0, world_, rank_at({d, behind, t})});
  }

  void plan_step(std::uint32_t rank, std::uint32_t step) {
    for (const bool forward : {true, false}) {
      for (std::uint32_t m = 0; m < job_.micro_batches; ++m) plan_pass(rank, step, forward);
    }
    if (job_.data > 1) todo_[rank].push_back({OpKind::all_reduce, 0, dp_[rank], 0});
    work(rank, step, 0.2);
    todo_[rank].push_back({OpKind::barrier, 0, world_, 0});
  }

  // ---- the run ----

  void play() {
    std::vector<std::size_t> at(job_.ranks(), 0);
    std::vector<Nanos> now(job_.ranks(), kSecond);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::uint32_t rank = 0; rank < job_.ranks(); ++rank) {
        while (at[rank] < todo_[rank].size() && advance(rank, at, now)) moved = true;
      }
    }
    for (std::uint32_t rank = 0; rank < job_.ranks(); ++rank) DDX_CHECK(at[rank] == todo_[rank].size());
  }

  void finish(std::uint32_t rank, Nanos end, std::vector<std::size_t>& at, std::vector<Nanos>& now) {
    done_[rank].push_back({todo_[rank][at[rank]++], now[rank], end});
    now[rank] = end;
  }

  // One op of the rank, if all that it needs have come to it; all that take part move on.
  bool advance(std::uint32_t rank, std::vector<std::size_t>& at, std::vector<Nanos>& now) {
    const Todo& op = todo_[rank][at[rank]];
    if (op.kind == OpKind::compute) {
      finish(rank, now[rank] + op.length, at, now);
      return true;
    }
    std::vector<std::uint32_t> members{rank, op.peer};
    if (op.kind != OpKind::send && op.kind != OpKind::recv) members = comms_[op.comm].members;
    Nanos last = 0;
    for (const std::uint32_t member : members) {
      if (at[member] >= todo_[member].size()) return false;
      const Todo& other = todo_[member][at[member]];
      const bool pair =
          is_p2p(op.kind) && is_p2p(other.kind) && (member == rank || (other.peer == rank && other.kind != op.kind));
      const bool same = other.kind == op.kind && other.comm == op.comm;
      if (is_p2p(op.kind) ? !pair : !same) return false;
      last = std::max(last, now[member]);
    }
    for (const std::uint32_t member : members) finish(member, last + job_.transfer, at, now);
    return true;
  }

  // ---- what it leaves ----

  Communicator communicator(std::size_t index, Evidence& evidence) const {
    Communicator communicator;
    communicator.name = evidence.trace.strings.intern(comms_[index].name);
    for (const std::uint32_t member : comms_[index].members) communicator.members.emplace_back(member);
    return communicator;
  }

  void record(std::uint32_t rank, std::uint32_t host, Nanos clock, Evidence& evidence) const {
    RankRecord record;
    record.rank = RankId(rank);
    record.whole_program = true;
    record.input = InputId(evidence.inputs.size());
    if (job_.ranks_per_host > 0) record.host = "node-" + std::to_string(host);
    evidence.inputs.push_back({"rank_" + std::to_string(rank), "test", {RankId(rank)}, RankId(rank), "", false});
    std::map<std::uint32_t, std::uint16_t> slots;
    std::map<std::uint32_t, std::uint32_t> seqs;
    Program program;
    for (const Done& done : done_[rank]) {
      Signature signature;
      signature.kind = done.op.kind;
      Op op;
      if (done.op.kind == OpKind::compute) {
        if (job_.issue_only) continue;
        signature.compute_time = done.op.length;
      } else {
        const auto [slot, fresh] = slots.try_emplace(done.op.comm, static_cast<std::uint16_t>(slots.size()));
        if (fresh) {
          record.comms.push_back(comm_ids_[done.op.comm]);
          const auto& members = comms_[done.op.comm].members;
          record.comm_rank.push_back(
              static_cast<std::uint32_t>(std::find(members.begin(), members.end(), rank) - members.begin()));
          record.progress.emplace_back();
        }
        op.comm_slot = slot->second;
        if (is_p2p(done.op.kind)) {
          signature.peer_slot = static_cast<std::uint32_t>(record.peers.size());
          record.peers.push_back(static_cast<std::int32_t>(done.op.peer));
        } else {
          op.seq = seqs[done.op.comm]++;
        }
      }
      op.issue = done.start + clock;
      op.state = OpState::completed;
      if (!job_.issue_only) {
        op.start = done.start + clock;
        op.end = done.end + clock;
      }
      op.signature = evidence.trace.intern(signature);
      program.append(op);
    }
    record.program = ProgramId(evidence.trace.programs.size());
    evidence.trace.programs.push_back(std::move(program));
    evidence.trace.ranks.push_back(std::move(record));
  }

  struct Comm {
    std::string name;
    std::vector<std::uint32_t> members;
  };

  const TimedJob& job_;
  std::mt19937_64 random_;
  std::vector<std::vector<Todo>> todo_;
  std::vector<std::vector<Done>> done_;
  std::vector<Comm> comms_;
  std::map<std::string, std::uint32_t> comm_index_;
  std::vector<CommId> comm_ids_;
  std::vector<std::uint32_t> tp_, dp_;  // by rank
  std::uint32_t world_ = 0;
};

}  // namespace

Evidence run_timed(const TimedJob& job) { return Run(job).evidence(); }

}  // namespace ddx::testing
