// Judgement of a snapshot's waits: who is at the end of every waiting chain, which circles there are, and what it means
// when everybody arrived and it still does not end.
#pragma once

#include <vector>

#include "analyzers/match/call_key.h"
#include "analyzers/match/call_place.h"
#include "analyzers/match/job_view.h"
#include "analyzers/match/wait_graph.h"

namespace ddx::analyzers {

struct WaitJudgement {
  std::vector<Finding> findings;  // causes first
  RankSet waiting;                // every rank that is inside an operation that does not go on
};

// `broken`: where the calls of a group were found to disagree; waits in those places have their cause already, and
// `broken_by` are the ranks that the disagreement blames.
WaitJudgement judge_waits(const JobView& job, const CallKeys& keys, const std::vector<CallPlace>& broken,
                          const RankSet& broken_by);

}  // namespace ddx::analyzers
