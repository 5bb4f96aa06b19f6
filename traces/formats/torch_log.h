// PyTorch's own lines about collectives and about how ranks meet: watchdog, heartbeat, store barrier, wrapper, barrier.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "traces/formats/log_events.h"

namespace ddx::formats {

// What joins lines of one rank: the watchdog prints one timeout several times, and the group only in some of them.
struct TorchState {
  struct Last {
    std::optional<std::size_t> timeout;  // indices of events
    std::optional<std::size_t> status;
  };
  std::unordered_map<std::uint64_t, Last> by_writer;
  // Tables of DeepSpeed that were read, by hash: every node prints the same one.
  std::unordered_set<std::size_t> worlds;
};

// True where the line was one of these.
bool read_torch_line(const LogLine& line, TorchState& state, LogEventWriter& events);

// "Rank 3 is running collective: CollectiveFingerPrint(SequenceNumber=.., OpType=.., TensorShape=[..], ..)": exported
// for the tests of cut lines.
std::optional<WrapperMismatch> parse_wrapper_mismatch(std::string_view text);

}  // namespace ddx::formats
