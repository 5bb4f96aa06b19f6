// Wait-for graph of a snapshot: which rank waits in which operation for whom. Collectives are AND-nodes between ranks,
// so that 2,000 ranks waiting for 2,000 others cost 4,000 edges, not 4 million.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analyzers/match/call_place.h"
#include "analyzers/match/job_view.h"
#include "analyzers/match/orphans.h"

namespace ddx::analyzers {

// One operation that some ranks are in and that cannot go on.
struct Instance {
  std::uint32_t group = 0;
  bool p2p = false;
  std::uint32_t seq = 0;               // collectives
  std::vector<std::uint32_t> waiters;  // ranks (indices into WaitGraph::ranks) inside it
  std::vector<std::uint32_t> missing;  // ranks that it waits for, ascending
  std::vector<std::uint32_t> unseen;   // members without any evidence: not known to be missing
  // The call that shows the wait of waiters[0]: member of the group and row of its program.
  std::uint32_t member = 0;
  std::uint32_t row = 0;
  bool gave_up = false;   // a waiter's call has ended although a member never made it: it failed or timed out
  bool diverged = false;  // its members' calls do not agree: it waits for nobody, it is broken
  std::optional<bool> partner_sends;  // p2p: the missing call would be a send (true) or a receive
  bool partner_over = false;          // p2p: a receive whose send is over: what it waits for was sent
  bool partner_queued = false;        // p2p: the missing call is enqueued, behind others that do not end
};

// Of a circle: a rank, and the instance that it waits in.
struct CycleStep {
  std::uint32_t rank;
  std::uint32_t instance;
};

struct WaitGraph {
  std::vector<RankId> ranks;  // ascending
  std::vector<Instance> instances;
  std::vector<std::vector<std::uint32_t>> waits_in;    // by rank: instances that it is inside of
  std::vector<std::vector<std::uint32_t>> awaited_in;  // by rank: instances that wait for it, or may (`unseen`)
  // By rank: of `waits_in` those after which it went on to issue other calls (an isend, an async collective). Whether
  // its host waits for them is not known. Empty: none.
  std::vector<std::vector<std::uint32_t>> passed;
  // By instance: what keeps those that it waits for, each rank with an instance that it waits in. Empty: any of those.
  std::vector<std::vector<CycleStep>> held_in;

  std::uint32_t index_of(RankId rank) const;
};

// Enters it into waits_in and awaited_in too.
void add_instance(WaitGraph& graph, Instance instance);

// Edges that hold in any model: a member has not enqueued the call, or has posted no partner for a send or receive.
// `diverged`: where the members' calls do not agree. What stands in one of `orphans` waits for nobody.
WaitGraph missing_call_graph(const JobView& job, const std::vector<CallPlace>& diverged,
                             const std::vector<Orphan>& orphans);

// The graph without the waits that ranks went on from: what is left holds them for certain.
WaitGraph without_passed(const WaitGraph& graph);

// Edges of the model in which a rank's device runs what it enqueued in order of issue, one thing at a time over all
// communicators: used when everything was enqueued by everybody and still does not end.
WaitGraph issue_order_graph(const JobView& job);

// Sets of ranks that wait for each other in a circle (strongly connected; one rank that waits for itself is one too),
// each ascending.
std::vector<std::vector<std::uint32_t>> cycles(const WaitGraph& graph);

// Of one such set the ranks that every circle in it goes through: without such a rank nobody in it would wait.
std::vector<std::uint32_t> on_every_cycle(const WaitGraph& graph, const std::vector<std::uint32_t>& set);

// A shortest circle through `start` inside the set: instances in order; instance i is waited in by the rank that
// instance i-1 waits for.
std::vector<CycleStep> shortest_cycle(const WaitGraph& graph, const std::vector<std::uint32_t>& set,
                                      std::uint32_t start);

// Ranks from which one of `targets` can be reached (targets themselves left out).
std::vector<std::uint32_t> who_waits_on(const WaitGraph& graph, const std::vector<std::uint32_t>& targets);

}  // namespace ddx::analyzers
