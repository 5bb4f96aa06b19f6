#include "traces/formats/record_builder.h"

#include <algorithm>
#include <utility>

#include "traces/formats/ops_text.h"

namespace ddx::formats {
namespace {

constexpr std::size_t kMostSlots = 0xfffe;

bool is_unlisted_world(const Trace& trace, const Communicator& communicator) {
  return communicator.members.empty() && trace.text(communicator.name) == kUnlistedWorld;
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

void list_unlisted_worlds(Trace& trace) {
  std::vector<bool> unlisted(trace.communicators().size(), false);
  bool any = false;
  for (std::size_t i = 0; i < unlisted.size(); ++i) {
    unlisted[i] = is_unlisted_world(trace, trace.communicators()[i]);
    any = any || unlisted[i];
  }
  if (!any) return;
  std::uint32_t world = trace.world_size.value_or(0);
  for (const RankRecord& record : trace.ranks) {
    const std::int64_t rank = record.rank.value_or(RankId(std::int64_t{-1})).value;
    if (rank >= 0 && rank < std::int64_t{kMaxOpsWorld}) world = std::max(world, static_cast<std::uint32_t>(rank) + 1);
  }
  if (world == 0) return;
  const CommId listed = intern_world(trace, kUnlistedWorld, std::min(world, kMaxOpsWorld));
  for (RankRecord& record : trace.ranks) {
    const bool has_it = std::find(record.comms.begin(), record.comms.end(), listed) != record.comms.end();
    for (CommId& comm : record.comms) {
      if (comm.value < unlisted.size() && unlisted[comm.value] && !has_it) comm = listed;
    }
  }
}

}  // namespace ddx::formats
