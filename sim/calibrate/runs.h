// CollectiveRun: a published run of a collective benchmark, as tests/data/validation/nccl_tests.json lists them.
//
// {"runs": [{"id", "source", "trust", "gpu", "gpus_per_node", "nodes", "nranks", "nic", "intra", "collective",
// "algo_forced", "dtype", "columns", "rows"}]}; a row is a list in the order of "columns", a number of bytes, or an
// object. What was measured (time_us, algbw_GBps, busbw_GBps) is read by read_measured() alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cluster/cluster.h"
#include "sim/collectives/nccl_choice.h"
#include "sim/collectives/work.h"

namespace ddx::sim {

struct CollectiveRun {
  std::string id;
  std::string source;  // "owner/repository:path@commit", or as the file has it
  std::string trust;   // "A" "B" "C"
  std::string gpu;     // as the file has it
  std::string nic;
  std::string collective;
  Work work;  // of each row, but for its bytes
  Placement placement;
  NcclForced forced;
  Cluster cluster;
  std::string unknown;                              // why nothing can be said of this run; empty: something can
  std::vector<std::optional<std::uint64_t>> bytes;  // one a row
};

// A run that cannot be read is `unknown`: file, key path, what was expected. Throws Error where there is no list of
// runs.
std::vector<CollectiveRun> read_runs(std::string_view json, const std::string& name);

// Microseconds, one list a run and one entry a row: from the bus bandwidth where the time is not stated. nullopt where
// neither is, and in rows of a run that its notes call unreliable.
std::vector<std::vector<std::optional<double>>> read_measured(std::string_view json, const std::string& name);

// Microseconds for each row of the run; nullopt where it cannot be known, or came out as less than the ports need.
std::vector<std::optional<double>> predict(const CollectiveRun& run);

}  // namespace ddx::sim
