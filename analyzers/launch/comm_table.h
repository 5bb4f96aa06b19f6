// CommTable: NCCL's INIT lines put together: which processes make which communicator, and how far they came.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/rank_set.h"
#include "traces/model/evidence.h"

namespace ddx::analyzers {

// One process's part in one communicator.
struct CommMember {
  std::int64_t position = 0;  // its rank in the communicator
  std::int64_t nranks = 0;
  std::string host;
  std::int64_t pid = 0;        // 0: not known
  std::optional<RankId> rank;  // of the job, where its lines say so
  std::optional<std::int64_t> cuda_device;
  std::string bus_id;
  bool started = false;
  bool completed = false;
  const LogEvent* event = nullptr;  // its first line

  std::pair<std::string, std::int64_t> process() const { return {host, pid}; }
};

struct CommInfo {
  std::string id;
  std::string function;
  bool child = false;                // made by a split
  std::vector<CommMember> members;   // by position, then process
  std::int64_t nranks = 0;           // as most members say
  bool positions_are_ranks = false;  // it spans the job, so positions are ranks of the job

  RankSet positions() const;
};

// Communicators with an id (NCCL 2.18 and later print one), in order of id.
std::vector<CommInfo> comm_table(const Evidence& evidence);

}  // namespace ddx::analyzers
