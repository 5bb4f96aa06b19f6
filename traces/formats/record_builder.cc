#include "traces/formats/record_builder.h"

#include <algorithm>
#include <map>
#include <set>
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
         record.rank->value < static_cast<std::int32_t>(kMaxRanks);
}

struct UnlistedGroup {
  CommId comm;
  std::vector<RankId> ranks;
};

// One more than the largest rank that `record` names as a peer in a group of all ranks.
std::int64_t beyond_peers(const Trace& trace, const RankRecord& record) {
  const auto names_world = [&](CommId comm) { return is_unlisted_world(trace, trace.communicator(comm)); };
  if (std::none_of(record.comms.begin(), record.comms.end(), names_world)) return 0;
  std::int64_t beyond = 0;
  const Program& program = trace.program(record);
  for (std::size_t row = 0; row < program.size(); ++row) {
    const auto slot = program.comm_slot(row);
    const auto peer = trace.peer(record, trace.signature(program.signature(row)));
    if (slot && peer && names_world(record.comms[*slot])) beyond = std::max(beyond, std::int64_t{*peer} + 1);
  }
  return beyond > kMaxRanks ? 0 : beyond;
}

std::string_view extension_of(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(dot);
}

// One more than the largest rank that a file without a record has in its name, of those that are named like a record's.
std::int64_t beyond_files(const Evidence& evidence) {
  std::set<std::string_view> extensions;
  for (const RankRecord& record : evidence.trace.ranks) {
    if (is_known_program(record) && record.input)
      extensions.insert(extension_of(evidence.inputs[record.input->value].path));
  }
  std::int64_t beyond = 0;
  for (const Input& input : evidence.inputs) {
    if (!input.file_rank || !input.ranks.empty() || input.file_rank->value >= static_cast<std::int32_t>(kMaxRanks))
      continue;
    if (extensions.contains(extension_of(input.path)))
      beyond = std::max(beyond, std::int64_t{input.file_rank->value} + 1);
  }
  return beyond;
}

std::int32_t position_in(MemberPositions& positions, CommId comm, std::size_t size, std::int64_t rank) {
  const auto found = positions.find(comm, rank);
  if (found) return static_cast<std::int32_t>(*found);
  // Below all that stand for a rank of the job that is no member.
  if (rank < 0) return RankId(std::max<std::int64_t>(rank, INT32_MIN) - static_cast<std::int64_t>(size)).value;
  return position_outside(rank, size);
}

// A peer's slot is that of one communicator.
void place_peers(const Trace& trace, MemberPositions& positions, const std::vector<bool>& listed, RankRecord& record) {
  std::vector<bool> placed(record.peers.size(), false);
  const Program& program = trace.program(record);
  for (std::size_t row = 0; row < program.size(); ++row) {
    const auto slot = program.comm_slot(row);
    const auto peer = trace.signature(program.signature(row)).peer_slot;
    if (!slot || !peer || placed[*peer] || !listed[record.comms[*slot].value]) continue;
    placed[*peer] = true;
    const CommId comm = record.comms[*slot];
    // In the group of all ranks a rank is its position.
    if (trace.text(trace.communicator(comm).name) == kUnlistedWorld) continue;
    const std::size_t size = trace.communicator(comm).members.size();
    record.peers[*peer] = position_in(positions, comm, size, record.peers[*peer]);
  }
}

std::vector<UnlistedGroup> unlisted_groups(const Evidence& evidence) {
  const Trace& trace = evidence.trace;
  std::map<CommId, std::vector<RankId>> users;
  std::int64_t world = std::max(std::int64_t{trace.world_size.value_or(0)}, beyond_files(evidence));
  for (const RankRecord& record : trace.ranks) {
    if (!is_known_program(record)) continue;
    world = std::max({world, std::int64_t{record.rank->value} + 1, beyond_peers(trace, record)});
    for (const CommId comm : record.comms) {
      if (trace.communicator(comm).members.empty()) users[comm].push_back(*record.rank);
    }
  }
  std::vector<UnlistedGroup> groups;
  for (auto& [comm, ranks] : users) {
    if (is_unlisted_world(trace, trace.communicator(comm))) {
      ranks.clear();
      for (std::int64_t rank = 0; rank < std::min<std::int64_t>(world, kMaxRanks); ++rank) ranks.emplace_back(rank);
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
  return size == 0 ? RankId(rank).value : position_in(positions_, comm, size, rank);
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

void place_in_groups(Trace& trace, const std::vector<bool>& listed) {
  MemberPositions positions(trace);
  for (RankRecord& record : trace.ranks) {
    if (std::none_of(record.comms.begin(), record.comms.end(), [&](CommId comm) { return listed[comm.value]; }))
      continue;
    for (std::size_t slot = 0; slot < record.comms.size() && record.rank; ++slot) {
      const CommId comm = record.comms[slot];
      if (!listed[comm.value]) continue;
      record.comm_rank[slot] = positions.find(comm, record.rank->value).value_or(RankRecord::kNoPosition);
    }
    place_peers(trace, positions, listed, record);
  }
}

void list_unlisted_groups(Evidence& evidence) {
  Trace& trace = evidence.trace;
  std::vector<bool> listed(trace.communicators().size(), false);
  for (UnlistedGroup& group : unlisted_groups(evidence)) {
    listed[group.comm.value] = true;
    const bool stated = trace.world_size && is_unlisted_world(trace, trace.communicator(group.comm));
    trace.list_members(group.comm, std::move(group.ranks), !stated);
  }
  place_in_groups(trace, listed);
}

}  // namespace ddx::formats
