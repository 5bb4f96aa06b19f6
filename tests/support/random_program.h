// Random valid programs as lists of calls, one list a rank, easily edited by a fault. All calls are emitted in one
// global order, so that every program completes by construction, in the blocking and in the stream model.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "traces/model/trace.h"

namespace ddx::testing {

struct Call {
  OpKind kind = OpKind::barrier;
  std::string group;  // empty: none (compute, group_begin, ...)
  DataType type = DataType::f32;
  std::uint64_t count = 0;
  RedOp redop = RedOp::unknown;
  int peer = -1;     // global rank: root, or peer of send and recv
  int async_id = 0;  // of an asynchronous call, and of the wait for it; 0: it blocks
  StopReason stop = StopReason::crash;
  int step = -1;  // of the repeating pattern; -1: before or behind it

  bool operator==(const Call&) const = default;
  // Alike in all that the members of a match compare.
  bool same_call(const Call& other) const {
    return kind == other.kind && group == other.group && type == other.type && count == other.count &&
           redop == other.redop && (is_p2p(kind) || peer == other.peer);
  }
};

struct CallLists {
  int world = 0;
  std::map<std::string, std::vector<int>> groups;  // pg0 is not listed
  std::vector<std::vector<Call>> ranks;

  std::vector<int> members(const std::string& group) const;
};

// As ops text, and as a trace.
std::string ops_text_of(const CallLists& lists);
Trace trace_of(const CallLists& lists);

struct ProgramOptions {
  std::uint64_t seed = 1;
  int world = 0;         // 0: drawn from 2..32
  int steps = 0;         // 0: drawn from 2..8
  int calls_a_step = 0;  // global events of the repeating pattern; 0: drawn from 3..10
  bool point_to_point = true;
  bool overlapping_groups = true;  // groups beside the grid of tensor, data and pipeline parallel ones
  bool async = true;               // some collectives return at once and are waited for at the step's end
};

CallLists random_program(const ProgramOptions& options);

// Deterministic on every platform, unlike std::uniform_int_distribution. 0 <= result < bound.
inline std::uint64_t draw(std::mt19937_64& random, std::uint64_t bound) { return random() % bound; }

enum class FaultKind { skip, extra, swap, resize, retype, reroot, rekind, kill, stuck, swap_groups };
constexpr FaultKind kAllFaults[] = {FaultKind::skip,   FaultKind::extra,      FaultKind::swap,   FaultKind::resize,
                                    FaultKind::retype, FaultKind::reroot,     FaultKind::rekind, FaultKind::kill,
                                    FaultKind::stuck,  FaultKind::swap_groups};
std::string_view name_of(FaultKind kind);

struct Fault {
  FaultKind kind = FaultKind::skip;
  int rank = 0;
  std::size_t at = 0;  // index in the rank's list: of the call that was changed, or behind which one is missing
  Call call;           // as it was
};

// Applies one fault of `kind` to one collective of one rank; nullopt, and nothing changed, where the lists hold no
// place for it.
std::optional<Fault> inject(CallLists& lists, FaultKind kind, std::uint64_t seed);

}  // namespace ddx::testing
