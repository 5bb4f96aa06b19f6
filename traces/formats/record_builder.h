// RecordBuilder: the record and the program of one rank, put together call by call. For formats that list the calls of
// a rank one after another and name ranks globally.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "traces/formats/member_positions.h"
#include "traces/model/evidence.h"

namespace ddx::formats {

// The group of all ranks, where a file does not say who they are: its positions are ranks, and
// list_unlisted_groups() lists it.
constexpr std::string_view kUnlistedWorld = "world";

class RecordBuilder {
 public:
  // `positions` is of this trace, and may serve the builders of many ranks.
  RecordBuilder(Trace& trace, MemberPositions& positions) : trace_(trace), positions_(positions) {}

  // nullopt: this rank has 65,534 communicators already.
  std::optional<std::uint16_t> comm_slot(CommId comm);
  // Index into RankRecord::peers of a global rank's position in the communicator of `slot`. A rank outside is kept as
  // a position that is none (position_outside), so that the fault can be found.
  std::uint32_t peer_slot(std::uint16_t slot, std::int64_t rank);

  // `signature` without the peer's slot, which is filled in where there is one.
  OpId append(Signature signature, Op op, std::optional<std::uint32_t> peer = std::nullopt);
  std::size_t size() const { return program_.size(); }

  // Adds program and record to the trace. `rank` says where it stands in its communicators.
  RankRecord& finish(std::optional<RankId> rank);

 private:
  std::int32_t position_of(CommId comm, std::int64_t rank);

  Trace& trace_;
  MemberPositions& positions_;
  Program program_;
  std::vector<CommId> comms_;
  std::vector<std::int32_t> peers_;
  std::unordered_map<std::uint32_t, std::uint16_t> slots_;  // by communicator
  std::unordered_map<std::uint64_t, std::uint32_t, KeyedHash> peer_slots_;
};

// A communicator of all ranks 0..world-1.
CommId intern_world(Trace& trace, std::string_view name, std::uint32_t world);

// After members of these communicators (by id) were filled in: says where each record stands in them, and turns the
// peers in them, which were kept as global ranks, into positions.
void place_in_groups(Trace& trace, const std::vector<bool>& listed);

// What no single file of whole programs can know: the members of groups without a list. The group of all ranks
// (kUnlistedWorld) has the ranks 0..n-1, where n is the stated size of the world, or else one more than the largest
// rank of a record, of a peer, or in the name of a file beside them that could not be read; any other has the ranks
// that use it. All of them but a world of stated size are marked Communicator::assumed. Call it once all files are
// read.
void list_unlisted_groups(Evidence& evidence);

}  // namespace ddx::formats
