// Why each call of a job does not go on, where the state of everything is known: programs that a replay brought to
// rest. There a call that is enqueued and not started stands behind others on its stream, and a host stands in one
// operation; dumps of a real job tell neither for certain.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analyzers/match/job_view.h"
#include "analyzers/match/orphans.h"
#include "analyzers/match/wait_graph.h"

namespace ddx::analyzers {

// Points at which something stands, and for which others each waits: for all of them. A collective is one point for all
// its members, so that the points are as many as calls in flight and hosts, and the edges as many as members.
struct Standstill {
  enum class Kind : std::uint8_t {
    call,    // that some members have started: waits for those that have not
    queued,  // a call that is enqueued on `rank`: waits for what holds its stream
    host     // of `rank`: waits for the call that it is in, or for those that it joins
  };
  struct Point {
    Kind kind = Kind::call;
    std::uint32_t rank = 0;               // index into JobView::ranks; of a call: of one that has started it
    std::uint32_t row = 0;                // of that rank's program; not of hosts
    std::uint32_t group = 0, member = 0;  // of calls, and of what is queued
  };
  std::vector<Point> points;
  std::vector<std::vector<std::uint32_t>> waits_for;  // by point
};

// nullopt: some record is a buffer, or of programs that did not run. What stands in one of `orphans` waits for nobody.
std::optional<Standstill> standstill_of(const JobView& job, const std::vector<Orphan>& orphans);

// What waits in a circle, as a graph of ranks that holds nothing else: all of it is one of its cycles().
struct HeldCircle {
  WaitGraph graph;
  std::vector<std::uint32_t> ranks;  // of it, ascending
};
std::vector<HeldCircle> held_circles(const JobView& job, const Standstill& standstill);

// Ranks something of which waits for something of `ranks`, however far; these left out.
RankSet held_up_by(const JobView& job, const Standstill& standstill, const RankSet& ranks);

}  // namespace ddx::analyzers
