// Reference replay: runs the programs of all ranks to rest. A rank is a sequential program; a collective meets the same
// sequence number on every member; a send meets the receive of the same number between the same two ranks. There are no
// wildcards, so the result does not depend on the order in which ranks are visited. With a cost model it also says when
// everything starts and ends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/rank_set.h"
#include "sim/replay/timing.h"
#include "traces/model/trace.h"

namespace ddx::sim {

struct ReplayOptions {
  // Every collective and send/recv returns at once and runs in order on its stream: the one it names, else one for each
  // communicator. The host waits only at wait, host_sync and its end, and for room. Also for single records that say
  // so.
  bool stream_ordered = false;
  // In the stream model: a host waits before it is so many operations ahead of the oldest that is not complete.
  std::uint32_t max_ahead = 1024;
  // Operations that all came to one match and disagree never complete; false: they complete, and are told of.
  bool mismatch_blocks = true;
  // Sends of at most so many bytes (as far as known) complete when they start, receive or not.
  std::optional<std::uint64_t> eager_up_to;
  // Variants of what the trace says of itself:
  bool rendezvous = false;  // sends wait for their receives, but for eager ones, also where they would end locally
  // No streams: every call returns when it is complete, async or not, but for sends that end locally.
  bool blocking = false;
  bool strict_groups = false;  // what is posted together starts together, once every partner can start as well
  // Of all classes of ranks (folding.h), loops run out; more is refused. Each takes 25 bytes with times, 1 without.
  std::uint64_t max_ops = 50'000'000;
  bool fold = true;  // ranks that must behave alike are run once; false: every rank is run
  Timing timing;
  // Of the snapshot: at most about so many operations of all ranks together (ReplayResult::window); 0: no snapshot.
  std::uint64_t snapshot_ops = UINT64_MAX;
  std::uint64_t visit_seed = 0;  // 0: ranks in order; else in an order drawn from this (the result is the same)
  // A job in mid-run: hosts and streams take turns of one step each, in the order of the visits (so that here
  // visit_seed decides), and after so many turns all is left as it is. Absent: to rest.
  std::optional<std::uint64_t> stop_after;
};

// Where the time of a rank goes, from the start of the run to the end of all ranks. Of what goes on at one time the
// first in this order counts. analyzers/breakdown has the definitions (docs/stragglers.md), and says the same of the
// trace that a replay predicts.
struct TimeShares {
  Picos compute = 0;
  Picos communication = 0;  // in a call, and not computing: exposed
  Picos bubble = 0;         // in a send or receive whose partner is not there; of ranks with any, also at their end
  Picos idle = 0;           // in nothing
  Picos unattributed = 0;   // in a delay of a rank of which no computation is known
  Picos waiting = 0;        // of `communication`: in a collective for which somebody is not there
  Picos overlapped = 0;     // of `compute`: in a call as well, and no send or receive whose partner is not there
  Picos total() const { return compute + communication + bubble + idle + unattributed; }
  bool operator==(const TimeShares&) const = default;
};

// Calls that met and disagree.
struct ReplayMismatch {
  struct Variant {
    SignatureId signature;             // of one of them
    std::optional<std::int32_t> root;  // position in the communicator
    RankSet ranks;
  };
  CommId comm;
  std::uint32_t seq = 0;
  bool p2p = false;
  std::vector<Variant> variants;  // by first rank
};

// In the strict model of groups: a rank whose sends and receives have met their partners or not, and all of which wait.
struct HeldGroup {
  RankId rank;
  RankId awaited;  // the first cause: a partner that has not come, or whose own group is held
  CommId comm;     // of one of its calls
};

struct ReplayResult {
  // completes: every rank ran to its end or to a stop; deadlock: some wait for ever; mismatch: calls met that disagree
  // (whatever else happened); stopped: by stop_after, some could have gone on; refused: the trace cannot be replayed,
  // `reason` says why, and there is no snapshot.
  enum class Outcome { completes, deadlock, mismatch, stopped, refused };
  Outcome outcome = Outcome::completes;
  // Every rank's ops with loops run out, sequence numbers, and the state in which each came to rest. Ranks that came
  // the same way share a program.
  Trace snapshot;
  // Where the snapshot does not hold all calls: of each communicator and each pair of ranks it has those that are at
  // most so far before and behind the first that is not complete everywhere, the same on all members
  // (CommProgress::in_program says how many there are). What came before has met and agreed, so that the rest is told
  // as the whole would be. Of the host's own operations it has those in which a host waits.
  std::optional<std::uint64_t> window;
  std::uint32_t classes = 0;       // ranks that were run for all (folding.h)
  std::uint64_t rank_ops = 0;      // operations that all ranks ran, folded ones counted for each rank; saturates
  std::vector<Picos> rank_end;     // by record, with a cost model: when its last operation that completed ended
  std::vector<TimeShares> shares;  // by record, with a cost model, of what completes
  RankSet unfinished;              // ranks that wait; those that stopped are none of them
  RankSet running;                 // of these, where stop_after ended the replay: whose host or stream could go on
  std::vector<ReplayMismatch> mismatches;  // by communicator and sequence number
  std::vector<HeldGroup> held;             // by rank; only with strict_groups
  std::string reason;                      // one line for people
};

std::string_view name_of(ReplayResult::Outcome outcome);

ReplayResult replay(const Trace& trace, const ReplayOptions& options = {});

}  // namespace ddx::sim
