// Whether a job stands still: a pure function of what its processes are in and of what has become of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"

namespace ddx::live {

enum class Life {
  running,
  stopped,  // by a signal or a debugger: it makes no calls, and waits for nothing
  left,     // with status 0
  died,     // otherwise; also where it is not known how
};

// A call that a process has begun and that is not over.
struct Waiting {
  std::string what;                   // "all_reduce (group default_pg, seq 7)"
  std::vector<std::int32_t> members;  // global ranks; empty: not known
  bool async = false;
  Nanos since = 0;        // how long; on the clock of its host
  Nanos group_still = 0;  // since when nothing was issued, and nothing ended, in its group
};

struct ProcessView {
  std::int32_t rank = -1;
  std::int64_t pid = 0;
  std::string host;
  Life life = Life::running;
  std::string how;        // of one that died: "was killed by SIGKILL (9)"
  std::string exception;  // uncaught, as it told it; empty: none
  Nanos still = 0;        // since when it made no call and none of its calls ended
  Nanos dead_for = 0;
  std::vector<Waiting> open;  // oldest first
};

struct WaitingRank {
  std::int32_t rank = -1;
  std::int64_t pid = 0;
  Waiting call;
};

struct Standstill {
  std::vector<WaitingRank> waiting;  // by rank
  std::vector<std::string> others;   // what may be why, and of whom: one line each
};
// What has stood for `after`. nullopt: nothing.
std::optional<Standstill> standstill(const std::vector<ProcessView>& processes, Nanos after);

// A rank that died, or raised, and for which others wait.
struct Loss {
  std::int32_t rank = -1;
  std::int64_t pid = 0;
  std::string how;
  std::vector<WaitingRank> waiting;
};
// The one that was lost first, `grace` ago or longer, of those for which others have waited as long. nullopt: none.
std::optional<Loss> loss(const std::vector<ProcessView>& processes, Nanos grace);

// "rank 3 (pid 17)", "pid 17".
std::string who(std::int32_t rank, std::int64_t pid);

}  // namespace ddx::live
