// The operations of a record, each with a stream and a time. Internal to recorded_programs.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "traces/model/trace.h"

namespace ddx::sim {

// An operation of a record that its program will hold.
struct RecordedOp {
  Op op;
  std::uint32_t stream = 0;                // for what goes to streams
  std::optional<std::uint32_t> waits_for;  // of a wait: index of what it waits for
  std::optional<std::uint32_t> group;      // posted together with its neighbours of the same number
  Nanos start = 0, end = 0;                // as recorded, or filled in
  std::uint32_t handle = 0;                // as an asynchronous operation of the program, once it was issued
};

// Streams that the record does not name: of computations, and of calls by their communicator's slot.
constexpr std::uint32_t kStreamOfHost = 1U << 30;
constexpr std::uint32_t kStreamOfComms = kStreamOfHost + 1;

// Done by the host itself: waits, stops, markers.
bool is_of_host(OpKind kind);
bool has_times(const Op& op);

// Streams and times of all. An operation without times begins where the one before it on its stream ends, or when it
// was issued, and takes as long as the next one like it (same signature), but never into the next one of its stream.
void place(const Trace& trace, std::vector<RecordedOp>& ops);

}  // namespace ddx::sim
