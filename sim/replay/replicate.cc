// Replicas of a whole job: data parallel groups grow, all others are there once a replica.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "base/error.h"
#include "sim/replay/virtual_ranks.h"

namespace ddx::sim {
namespace {

// One word of a command line, to be pasted: in quotes where it needs them.
std::string for_a_shell(const std::string& word) {
  constexpr std::string_view kPlain = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-=./:,+@%";
  if (word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

class Replicator {
 public:
  Replicator(Trace& trace, std::uint32_t world_size, const RoleMap& roles, Batch batch)
      : trace_(trace), roles_(roles), batch_(batch), world_(world_size) {}
  Assumptions run();

 private:
  void check();
  void find_roles();
  CommId replica(CommId comm, std::uint32_t j);
  ProgramId grown(const RankRecord& record);
  void shrink(Op& op, const std::vector<GroupRole>& slots);
  bool grow(Op& op, const std::vector<GroupRole>& slots);
  RankRecord copy_of(const RankRecord& record, std::uint32_t j, ProgramId program);
  Assumptions told() const;

  Trace& trace_;
  const RoleMap& roles_;
  Batch batch_;
  std::uint32_t world_;
  std::uint32_t recorded_ = 0;  // ranks of one replica
  std::uint32_t factor_ = 1;
  std::uint32_t peer_slots_ = 0;             // of any record: those from here on are shifted by replica
  std::vector<GroupRole> role_;              // by old CommId
  std::vector<std::vector<CommId>> copies_;  // by old CommId: by replica, or one
  std::map<std::pair<std::uint32_t, std::vector<GroupRole>>, ProgramId> programs_;
  // By new program: peer slots of sends and receives in data groups, as they were, and the group's slot.
  std::map<ProgramId, std::set<std::pair<std::uint32_t, std::uint16_t>>> shifted_;
  bool parts_shrink_ = false;
  bool activations_shrink_ = false;
};

void Replicator::check() {
  recorded_ = trace_.world_size.value_or(static_cast<std::uint32_t>(trace_.ranks.size()));
  if (world_ == 0 || recorded_ == 0 || world_ % recorded_ != 0) {
    throw RequestError(fmt::format("{} ranks cannot be made of replicas of {}: expected a multiple of {}", world_,
                                   recorded_, recorded_));
  }
  factor_ = world_ / recorded_;
  std::vector<bool> there(recorded_, false);
  for (const RankRecord& record : trace_.ranks) {
    const bool fits = record.rank && record.rank->value >= 0 &&
                      static_cast<std::uint32_t>(record.rank->value) < recorded_ &&
                      !there[static_cast<std::size_t>(record.rank->value)];
    if (!fits) throw Error("replicas need one record for each rank of the trace");
    there[static_cast<std::size_t>(record.rank->value)] = true;
    peer_slots_ = std::max(peer_slots_, static_cast<std::uint32_t>(record.peers.size()));
  }
  const auto absent = std::find(there.begin(), there.end(), false);
  if (absent != there.end())
    throw Error(fmt::format("replicas need every rank: there is none for rank {}", absent - there.begin()));
}

void Replicator::find_roles() {
  role_.reserve(trace_.communicators().size());
  for (const Communicator& communicator : trace_.communicators()) {
    const auto role = role_of(trace_, communicator, roles_);
    if (!role) {
      const std::string name(trace_.text(communicator.name));
      throw Error(
          fmt::format("what is group {} for? Its name does not tell: expected --map {} (it grows with the replicas) or "
                      "--map {} (each replica has its own)",
                      name, for_a_shell(name + "=data"), for_a_shell(name + "=model")));
    }
    if (communicator.members.empty()) {
      throw Error(fmt::format("the members of group {} are not known", trace_.text(communicator.name)));
    }
    role_.push_back(*role);
  }
  copies_.resize(role_.size());
}

CommId Replicator::replica(CommId comm, std::uint32_t j) {
  auto& copies = copies_[comm.value];
  const bool data = role_[comm.value] == GroupRole::data;
  if (copies.empty()) copies.assign(data ? 1 : factor_, comm);
  const std::size_t at = data ? 0 : j;
  if (copies[at] != comm || (!data && j == 0)) return copies[at];
  Communicator made = trace_.communicator(comm);
  const std::vector<RankId> members = std::exchange(made.members, {});
  for (std::uint32_t r = data ? 0 : j; r < (data ? factor_ : j + 1); ++r) {
    for (const RankId member : members) made.members.emplace_back(std::int64_t{r} * recorded_ + member.value);
  }
  if (made.declared_size) made.declared_size = static_cast<std::uint32_t>(made.members.size());
  if (!data) made.name = trace_.strings.intern(fmt::format("{}@{}", trace_.text(made.name), j));
  return copies[at] = trace_.intern(std::move(made));
}

// With a fixed batch: activations of a rank's part of it.
void Replicator::shrink(Op& op, const std::vector<GroupRole>& slots) {
  if (batch_ == Batch::grows || !op.comm_slot) return;
  Signature part = trace_.signature(op.signature);
  if (slots[*op.comm_slot] == GroupRole::data && !is_p2p(part.kind)) return;
  const auto divide = [&](std::uint64_t count) { return count / factor_ + (count % factor_ != 0 ? 1 : 0); };
  const auto share = [&](std::optional<std::uint64_t>& count, std::vector<std::uint64_t>& splits) {
    if (count) count = divide(*count);
    if (splits.empty()) return;
    // Each by itself, so that what one sends is what the other expects.
    for (std::uint64_t& split : splits) split = divide(split);
    count = std::accumulate(splits.begin(), splits.end(), std::uint64_t{0});
  };
  const std::optional<std::uint64_t> in = part.count_in, out = part.count_out;
  share(part.count_in, part.split_in);
  share(part.count_out, part.split_out);
  // The total of what is gathered or scattered is that of its parts, which are rounded.
  if (in && out && *in > 0 && *out > 0 && *out % *in == 0 && *out > *in) part.count_out = *part.count_in * (*out / *in);
  if (in && out && *in > 0 && *out > 0 && *in % *out == 0 && *in > *out) part.count_in = *part.count_out * (*in / *out);
  part.shape_in.clear();
  part.shape_out.clear();
  op.signature = trace_.intern(std::move(part));
  activations_shrink_ = true;
}

// True: its peer is now named by a slot that is shifted with the replica.
bool Replicator::grow(Op& op, const std::vector<GroupRole>& slots) {
  if (!op.comm_slot || slots[*op.comm_slot] == GroupRole::model) return false;
  const Signature& old = trace_.signature(op.signature);
  Signature grown = old;
  if (is_p2p(old.kind) && old.peer_slot) {
    grown.peer_slot = *old.peer_slot + peer_slots_;
  } else if (old.kind == OpKind::all_gather || old.kind == OpKind::reduce_scatter) {
    auto& part = old.kind == OpKind::all_gather ? grown.count_in : grown.count_out;
    auto& total = old.kind == OpKind::all_gather ? grown.count_out : grown.count_in;
    if (part && total && *part > 0) {
      const std::uint64_t members = *total / *part;
      part = (*part + factor_ - 1) / factor_;
      total = *part * members * factor_;
    }
    grown.shape_in.clear();
    grown.shape_out.clear();
    parts_shrink_ = true;
  } else if (!old.split_in.empty() || !old.split_out.empty()) {
    throw Error("an all_to_all with split lists in a data parallel group cannot be laid over more ranks");
  } else {
    return false;
  }
  const bool shifted = is_p2p(grown.kind);
  op.signature = trace_.intern(std::move(grown));
  return shifted;
}

// The program with what it does in data groups changed. It reads trace_.programs anew each row: interning is all that
// grows meanwhile.
ProgramId Replicator::grown(const RankRecord& record) {
  std::vector<GroupRole> slots;
  for (const CommId comm : record.comms) slots.push_back(role_[comm.value]);
  const auto [at, fresh] = programs_.try_emplace({record.program.value, slots});
  if (!fresh) return at->second;
  Program made;
  std::set<std::pair<std::uint32_t, std::uint16_t>> shifted;
  const std::size_t rows = trace_.program(record).size();
  made.reserve(rows);
  for (std::size_t row = 0; row < rows; ++row) {
    Op op = trace_.program(record).at(OpId(row));
    const auto peer = trace_.signature(op.signature).peer_slot;
    shrink(op, slots);
    if (grow(op, slots) && peer) shifted.emplace(*peer, *op.comm_slot);
    made.append(op);
  }
  made.loops = trace_.program(record).loops;
  trace_.programs.push_back(std::move(made));
  at->second = ProgramId(trace_.programs.size() - 1);
  shifted_.emplace(at->second, std::move(shifted));
  return at->second;
}

RankRecord Replicator::copy_of(const RankRecord& record, std::uint32_t j, ProgramId program) {
  RankRecord made = record;
  made.rank = RankId(std::int64_t{j} * recorded_ + record.rank->value);
  made.program = program;
  made.pid.reset();
  for (std::size_t slot = 0; slot < made.comms.size(); ++slot) {
    const bool data = role_[record.comms[slot].value] == GroupRole::data;
    const auto size = static_cast<std::uint32_t>(trace_.communicator(record.comms[slot]).members.size());
    made.comms[slot] = replica(record.comms[slot], j);
    if (data && made.comm_rank[slot] != RankRecord::kNoPosition) made.comm_rank[slot] += j * size;
  }
  // A peer in a data group is one of the same replica.
  made.peers.resize(2 * std::size_t{peer_slots_}, -1);
  for (const auto& [peer, slot] : shifted_.at(program)) {
    if (peer >= record.peers.size() || record.peers[peer] < 0) continue;
    const auto size = static_cast<std::int64_t>(trace_.communicator(record.comms[slot]).members.size());
    made.peers[peer + peer_slots_] = static_cast<std::int32_t>(j * size + record.peers[peer]);
  }
  return made;
}

Assumptions Replicator::told() const {
  Assumptions said;
  said.push_back(fmt::format("{} ranks are {} replicas of the {} in the trace: rank j x {} + r does what rank r does",
                             world_, factor_, recorded_, recorded_));
  std::vector<std::string> data, model;
  for (std::size_t c = 0; c < role_.size(); ++c) {
    const std::string name(trace_.text(trace_.communicators()[c].name));
    auto& list = role_[c] == GroupRole::data ? data : model;
    if (list.size() < 8 && std::find(list.begin(), list.end(), name) == list.end()) list.push_back(name);
  }
  if (!data.empty()) said.push_back(fmt::format("groups that grow with the replicas: {}", fmt::join(data, ", ")));
  if (!model.empty())
    said.push_back(fmt::format("groups that each replica has of its own: {}", fmt::join(model, ", ")));
  if (parts_shrink_) {
    said.emplace_back(
        "what a growing group gathers or scatters stays as large in all, so that each rank's part shrinks");
  }
  if (activations_shrink_) {
    said.push_back(
        fmt::format("what groups of one replica carry, and sends and receives, are activations: each is {} times "
                    "smaller, as each rank's part of the batch is",
                    factor_));
  }
  return said;
}

Assumptions Replicator::run() {
  check();
  if (factor_ == 1) return {};
  find_roles();
  const std::vector<RankRecord> records = std::exchange(trace_.ranks, {});
  trace_.ranks.reserve(world_);
  std::vector<ProgramId> programs;
  for (const RankRecord& record : records) programs.push_back(grown(record));
  for (std::uint32_t j = 0; j < factor_; ++j) {
    for (std::size_t i = 0; i < records.size(); ++i) trace_.ranks.push_back(copy_of(records[i], j, programs[i]));
  }
  trace_.world_size = world_;
  return told();
}

}  // namespace

Assumptions replicate(Trace& trace, std::uint32_t world_size, const RoleMap& roles, Batch batch) {
  return Replicator(trace, world_size, roles, batch).run();
}

}  // namespace ddx::sim
