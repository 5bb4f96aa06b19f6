// The vocabulary of one operation: kind, datatype, reduction, state, and the Signature that must agree between the
// ranks of a collective.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

namespace ddx {

enum class OpKind : std::uint8_t {
  unknown,  // named by its record (Signature::name), but no kind that ddx knows
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  reduce,
  gather,
  scatter,
  all_to_all,
  barrier,
  send,
  recv,
  new_group,    // a collective over the world that makes a communicator
  split_group,  // a collective of a communicator that makes children of it
  compute,      // Signature::compute_time holds its length
  delay,        // so does it here: nothing that is known to be work, such as a gap of a recording
  wait,         // for the asynchronous op with Signature::handle
  host_sync,    // the host waits for all that this rank enqueued
  group_begin,  // ops between begin and end are posted together
  group_end,
  coalesced,  // a batch as one: its end marker in a flight recorder (same sequence number as its parts), its kernel
  stop,       // the program ends here otherwise than by finishing: Signature::stop_reason
};

enum class DataType : std::uint8_t {
  unknown,
  i8,
  u8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64,
  f16,
  bf16,
  f32,
  f64,
  f8e4m3,
  f8e5m2,
  boolean,
  complex64,
  complex128
};

enum class RedOp : std::uint8_t { unknown, sum, prod, min, max, avg, premul_sum, band, bor, bxor, user };

// How far an op came. `planned`: in the program but never issued (behind the point where the rank stopped).
enum class OpState : std::uint8_t { unknown, planned, scheduled, started, completed };

// Issued, and not over.
constexpr bool in_flight(OpState state) { return state == OpState::scheduled || state == OpState::started; }

enum class StopReason : std::uint8_t { exit, crash, raise, stuck };

std::string_view name_of(OpKind kind);
std::string_view name_of(DataType type);
std::string_view name_of(RedOp redop);
std::string_view name_of(OpState state);
std::string_view name_of(StopReason reason);
// The names that name_of gives; nullopt for any other text.
std::optional<OpKind> op_kind_from(std::string_view name);
std::optional<DataType> data_type_from(std::string_view name);
std::optional<RedOp> redop_from(std::string_view name);

// Bytes of one element; nullopt: the type is not known.
std::optional<std::uint32_t> element_bytes(DataType type);

bool is_collective(OpKind kind);  // matched by sequence number over all members, new_group and split_group included
bool is_p2p(OpKind kind);         // send, recv
bool is_rooted(OpKind kind);      // broadcast, reduce, gather, scatter
bool takes_length(OpKind kind);   // compute, delay: for Signature::compute_time

// Everything of an op that is the same each time the same call is made. Interned: two ops with one SignatureId are
// alike up to communicator and peer, which a rank binds by slot.
struct Signature {
  OpKind kind = OpKind::unknown;
  DataType type_in = DataType::unknown;
  DataType type_out = DataType::unknown;
  RedOp redop = RedOp::unknown;
  StopReason stop_reason = StopReason::exit;
  bool async = false;                     // returns at once; a wait or host_sync joins it
  std::optional<std::uint64_t> count_in;  // elements, summed over the tensors of the call
  std::optional<std::uint64_t> count_out;
  std::optional<std::uint32_t> peer_slot;  // root of a rooted op, peer of send/recv: index into RankRecord::peers
  std::optional<std::int64_t> tag;
  std::optional<std::uint32_t> stream;  // number of the stream on its rank
  std::optional<Nanos> compute_time;    // of a computation or a delay
  std::optional<std::uint32_t> handle;  // what a wait waits for: the n-th async op of the program, from 0
  std::vector<std::uint64_t> split_in;  // all_to_all(v): elements for each member; empty: not recorded
  std::vector<std::uint64_t> split_out;
  std::vector<std::vector<std::int64_t>> shape_in;  // one list a tensor, as recorded; empty: not recorded
  std::vector<std::vector<std::int64_t>> shape_out;
  std::vector<std::int32_t> members;  // of the group that new_group makes (global ranks)
  std::optional<std::int64_t> color;  // split_group
  std::optional<std::int64_t> key;
  StringId name;  // as recorded ("nccl:_all_gather_base"), or the text behind a stop

  bool operator==(const Signature&) const = default;
};

}  // namespace ddx
