// Divergence: the first sequence number of a communicator at which its members did not make the same call, and the edit
// that explains it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyzers/match/alignment.h"
#include "analyzers/match/call_key.h"
#include "analyzers/match/job_view.h"

namespace ddx::analyzers {

// What the records say of the end of the calls that differ.
enum class CallsEnd {
  open,       // some of them are not over
  over,       // all are over, by a recorder that tells no success from a time-out (gloo)
  completed,  // all completed
};

struct Divergence {
  std::uint32_t group = 0;
  std::uint32_t seq = 0;
  // Members (indices into GroupView::members) that made one and the same call, the largest side first.
  std::vector<std::vector<std::uint32_t>> sides;
  bool has_majority = false;  // sides[0] holds more than half of the members on any side
  Field field = Field::none;  // what differs between the reference and the odd side
  Edit edit;
  std::string code;  // of findings.md
  RankSet culprits;  // the odd ranks; all where no side has a majority
  CallsEnd end = CallsEnd::open;
  // By the logs, where a recorder that tells no success from a time-out shows a call of these as over: such a call may
  // be over because it was given up.
  RankSet timed_out;
  Finding finding;
};

// One a communicator at the most, in order of the trace's communicators.
std::vector<Divergence> find_divergences(const JobView& job, const CallKeys& keys);

// Where all members agree with each other and the sizes are wrong all the same: all_gather whose output is not the sum
// of the inputs, reduce_scatter likewise.
std::vector<Finding> find_impossible_sizes(const JobView& job);

// all_to_all calls whose split lists do not fit each other: i sends j another count than j expects from i.
std::vector<Finding> find_split_mismatches(const JobView& job);

}  // namespace ddx::analyzers
