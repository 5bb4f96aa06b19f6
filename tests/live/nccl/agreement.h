// Holds what was captured against the double's ledger.
#pragma once

#include <string>
#include <vector>

#include "tests/live/nccl/job.h"

namespace ddx::nccl_test {

// What differs; empty where all is as it should be. `layer`: whose records are looked at.

// Calls one by one, in order, with every field; communicators of all ranks.
std::vector<std::string> interposer_differences(const JobResult& job);
// Each call that says that it can end has ended, not before its last kernel, and no member of a collective before the
// last one came; the others have no time at all.
std::vector<std::string> time_differences(const JobResult& job, bool with_times);
// What a plugin alone can see of static NCCL 2.`minor`: collectives (from 2.28 on in order), sends and receives,
// without those that NCCL keeps quiet about.
std::vector<std::string> profiler_differences(const JobResult& job, int minor);
// Of calls by several threads: per communicator nothing is lost or counted twice, and no batch goes across threads.
std::vector<std::string> thread_differences(const JobResult& job);

}  // namespace ddx::nccl_test
