#include "traces/formats/record_builder.h"

#include <algorithm>
#include <map>
#include <utility>

#include "traces/formats/ops_text.h"

namespace ddx::formats {
namespace {

constexpr std::size_t kMostSlots = 0xfffe;

bool is_unlisted_world(const Trace& trace, const Communicator& communicator) {
  return communicator.members.empty() && trace.text(communicator.name) == kUnlistedWorld;
}

bool is_known_program(const RankRecord& record) {
  return record.whole_program && !record.snapshot && record.rank && record.rank->value >= 0 &&
         record.rank->value < static_cast<std::int32_t>(kMaxOpsWorld);
}

struct UnlistedGroup {
  CommId comm;
  std::vector<RankId> ranks;
};

std::vector<UnlistedGroup> unlisted_groups(const Trace& trace) {
  std::map<CommId, std::vector<RankId>> users;
  std::uint32_t world = trace.world_size.value_or(0);
  for (const RankRecord& record : trace.ranks) {
    if (!is_known_program(record)) continue;
    world = std::max(world, static_cast<std::uint32_t>(record.rank->value) + 1);
    for (const CommId comm : record.comms) {
      if (trace.communicator(comm).members.empty()) users[comm].push_back(*record.rank);
    }
  }
  std::vector<UnlistedGroup> groups;
  for (auto& [comm, ranks] : users) {
    if (is_unlisted_world(trace, trace.communicator(comm))) {
      ranks.clear();
      for (std::uint32_t rank = 0; rank < std::min(world, kMaxOpsWorld); ++rank) ranks.emplace_back(std::int64_t{rank});
    }
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    groups.push_back({comm, std::move(ranks)});
  }
  return groups;
}

}  // namespace

std::optional<std::uint16_t> RecordBuilder::comm_slot(CommId comm) {
  if (const auto at = slots_.find(comm.value); at != slots_.end()) return at->second;
  if (comms_.size() >= kMostSlots) return std::nullopt;
  const auto slot = static_cast<std::uint16_t>(comms_.size());
  slots_.emplace(comm.value, slot);
  comms_.push_back(comm);
  return slot;
}

std::int32_t RecordBuilder::position_of(CommId comm, std::int64_t rank) {
  const std::size_t size = trace_.communicator(comm).members.size();
  if (size == 0) return RankId(rank).value;
  const auto found = positions_.find(comm, rank);
  if (found) return static_cast<std::int32_t>(*found);
  // Below all that stand for a rank of the job that is no member.
  if (rank < 0) return RankId(std::max<std::int64_t>(rank, INT32_MIN) - static_cast<std::int64_t>(size)).value;
  return position_outside(rank, size);
}

std::uint32_t RecordBuilder::peer_slot(std::uint16_t slot, std::int64_t rank) {
  const std::int32_t position = position_of(comms_[slot], rank);
  const std::uint64_t key = std::uint64_t{slot} << 32 | static_cast<std::uint32_t>(position);
  const auto [at, fresh] = peer_slots_.try_emplace(key, static_cast<std::uint32_t>(peers_.size()));
  if (fresh) peers_.push_back(position);
  return at->second;
}

OpId RecordBuilder::append(Signature signature, Op op, std::optional<std::uint32_t> peer) {
  signature.peer_slot = peer;
  op.signature = trace_.intern(std::move(signature));
  return program_.append(op);
}

RankRecord& RecordBuilder::finish(std::optional<RankId> rank) {
  RankRecord& record = trace_.ranks.emplace_back();
  record.rank = rank;
  record.program = ProgramId(trace_.programs.size());
  trace_.programs.push_back(std::move(program_));
  record.comms = comms_;
  record.progress.resize(comms_.size());
  record.peers = peers_;
  record.input = InputId(0);
  for (const CommId comm : comms_) {
    std::optional<std::uint32_t> position;
    if (rank && rank->value >= 0) {
      position = positions_.find(comm, rank->value);
      if (is_unlisted_world(trace_, trace_.communicator(comm))) position = static_cast<std::uint32_t>(rank->value);
    }
    record.comm_rank.push_back(position.value_or(RankRecord::kNoPosition));
  }
  return record;
}

CommId intern_world(Trace& trace, std::string_view name, std::uint32_t world) {
  Communicator communicator;
  communicator.name = trace.strings.intern(name);
  communicator.members.reserve(world);
  for (std::uint32_t rank = 0; rank < world; ++rank) communicator.members.emplace_back(std::int64_t{rank});
  return trace.intern(std::move(communicator));
}

void list_unlisted_groups(Trace& trace) {
  std::vector<bool> listed(trace.communicators().size(), false);
  for (UnlistedGroup& group : unlisted_groups(trace)) {
    listed[group.comm.value] = true;
    trace.list_members(group.comm, std::move(group.ranks));
  }
  MemberPositions positions(trace);
  for (RankRecord& record : trace.ranks) {
    for (std::size_t slot = 0; slot < record.comms.size() && record.rank; ++slot) {
      const CommId comm = record.comms[slot];
      if (!listed[comm.value]) continue;
      record.comm_rank[slot] = positions.find(comm, record.rank->value).value_or(RankRecord::kNoPosition);
    }
  }
}

}  // namespace ddx::formats
