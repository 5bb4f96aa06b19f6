// A program with its loops run out, and with everything about its ops that is the same on all ranks that share it:
// sequence numbers, the stream each goes to, what a wait waits for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/model/trace.h"

namespace ddx::sim {

constexpr std::uint32_t kNoOp = 0xffffffff;

struct UnrolledOp {
  std::uint32_t row = 0;        // of the program
  std::uint32_t seq = 0;        // collectives and p2p count apart, each from 1 per communicator; 0: it has none
  std::uint32_t group = kNoOp;  // the n-th group of the program, for ops between its begin and end
  // wait: the op waited for, kNoOp if it was not issued before; group_begin: its group_end, kNoOp where there is none.
  std::uint32_t target = kNoOp;
  std::uint32_t next_batch = kNoOp;     // first op behind this one on its stream that is not in its batch
  std::uint32_t next_in_batch = kNoOp;  // parts of one group on one stream are one batch, started together
  // collectives: how many of this communicator must be complete before this one starts; p2p: its number among the ops
  // of its endpoint, from 0.
  std::uint32_t order = 0;
  std::uint32_t endpoint = kNoOp;  // p2p: into UnrolledProgram::endpoints
  std::uint16_t comm_slot = 0;
  std::uint16_t stream = 0;
  OpKind kind = OpKind::unknown;
  bool async = false;
  bool streamed = false;  // goes to a stream; otherwise the host does it
  bool leads_batch = false;
};

// One end of a channel that a program uses.
struct Endpoint {
  std::uint16_t comm_slot = 0;
  std::uint32_t peer_slot = 0;
  bool sends = false;
};

// A peer slot that names a root, and of which communicator.
struct Root {
  std::uint16_t comm_slot = 0;
  std::uint32_t peer_slot = 0;
  auto operator<=>(const Root&) const = default;
};

struct UnrolledProgram {
  std::vector<UnrolledOp> ops;
  std::vector<Endpoint> endpoints;
  std::vector<Root> roots;                       // of rooted calls, ascending
  std::vector<std::uint16_t> split_slots;        // communicators of all_to_alls with split lists, ascending
  std::uint32_t comm_slots = 0, peer_slots = 0;  // how many a record must bind
  std::uint16_t streams = 0;
  std::vector<std::uint32_t> first_batch;  // by stream
  bool crosses_streams = false;            // collectives of one communicator on several streams: `order` matters
};

// Ops that the program runs; saturates at 2^64-1.
std::uint64_t length_of(const Program& program);

// Call only where length_of(program) is bearable. Names in `refusal` what cannot be replayed, if anything.
UnrolledProgram unroll(const Trace& trace, const Program& program, std::string& refusal);

}  // namespace ddx::sim
