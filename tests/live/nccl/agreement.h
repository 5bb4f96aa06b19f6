// Holds what was captured against the double's ledger.
#pragma once

#include <string>
#include <vector>

#include "tests/live/nccl/job.h"

namespace ddx::nccl_test {

// What differs; empty where all is as it should be. `layer`: whose records are looked at.

// Calls one by one, in order, with every field; communicators of all ranks.
std::vector<std::string> interposer_differences(const JobResult& job);
// Each call that says that it can end has ended, and no member of a collective before the last one came; the others
// have no time at all.
std::vector<std::string> time_differences(const JobResult& job, bool with_times);
// What a plugin alone can see of static NCCL: collectives (of `version` 2.28 on in order), sends and receives, without
// those that NCCL keeps quiet about.
std::vector<std::string> profiler_differences(const JobResult& job, bool has_api_events);

}  // namespace ddx::nccl_test
