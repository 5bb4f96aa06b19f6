#include "live/launch/hang_watch.h"

#include <fmt/format.h>

#include <algorithm>

namespace ddx::live {
namespace {

// A call in which the host stands, or behind which the whole process does. One that merely was never seen to end, in a
// process that gets on, is neither; nor is one in whose group later calls come and go.
bool stands(const ProcessView& process, const Waiting& call, Nanos after) {
  if (call.since < after || call.group_still < after) return false;
  return !call.async || process.still >= after;
}

const Waiting* standing_call(const ProcessView& process, Nanos after) {
  if (process.life != Life::running) return nullptr;
  for (const Waiting& call : process.open) {
    if (stands(process, call, after)) return &call;
  }
  return nullptr;
}

// Of an elastic launcher's attempts, and of a rank's helpers, whichever lives speaks for the rank.
bool lives_elsewhere(const std::vector<ProcessView>& processes, std::int32_t rank) {
  return std::any_of(processes.begin(), processes.end(), [rank](const ProcessView& other) {
    return other.rank == rank && (other.life == Life::running || other.life == Life::stopped);
  });
}

bool waits_for(const Waiting& call, std::int32_t rank) {
  return call.members.empty() || std::find(call.members.begin(), call.members.end(), rank) != call.members.end();
}

std::vector<WaitingRank> waiting_ranks(const std::vector<ProcessView>& processes, Nanos after) {
  std::vector<WaitingRank> waiting;
  for (const ProcessView& process : processes) {
    const Waiting* call = standing_call(process, after);
    if (call != nullptr) waiting.push_back({process.rank, process.pid, *call});
  }
  std::sort(waiting.begin(), waiting.end(), [](const WaitingRank& a, const WaitingRank& b) {
    return std::pair(a.rank, a.pid) < std::pair(b.rank, b.pid);
  });
  return waiting;
}

}  // namespace

std::string who(std::int32_t rank, std::int64_t pid) {
  return rank < 0 ? fmt::format("pid {}", pid) : fmt::format("rank {} (pid {})", rank, pid);
}

std::optional<Standstill> standstill(const std::vector<ProcessView>& processes, Nanos after) {
  Standstill found;
  found.waiting = waiting_ranks(processes, after);
  if (found.waiting.empty()) return std::nullopt;
  for (const ProcessView& process : processes) {
    const std::string name = who(process.rank, process.pid);
    if (process.life == Life::stopped) {
      found.others.push_back(name + " is stopped by a signal: it runs on with kill -CONT " +
                             std::to_string(process.pid));
    } else if (process.life == Life::died && !lives_elsewhere(processes, process.rank)) {
      found.others.push_back(name + " " + process.how);
    } else if (process.life == Life::left && process.rank >= 0 && !lives_elsewhere(processes, process.rank)) {
      found.others.push_back(name + " has left with status 0");
    } else if (!process.exception.empty() && process.life == Life::running) {
      found.others.push_back(name + " raised " + process.exception);
    } else if (process.life == Life::running && process.open.empty()) {
      found.others.push_back(
          fmt::format("{} is in no call; its last one was {} ago", name, format_duration(process.still)));
    }
  }
  return found;
}

std::optional<Loss> loss(const std::vector<ProcessView>& processes, Nanos grace) {
  std::optional<Loss> first;
  Nanos longest = 0;
  const std::vector<WaitingRank> standing = waiting_ranks(processes, grace);
  for (const ProcessView& process : processes) {
    const bool raised = process.life == Life::running && !process.exception.empty() && process.still >= grace;
    const bool died =
        process.life == Life::died && process.dead_for >= grace && !lives_elsewhere(processes, process.rank);
    if (!raised && !died) continue;
    Loss lost{process.rank, process.pid, died ? process.how : "raised " + process.exception, {}};
    for (const WaitingRank& other : standing) {
      if (other.pid != process.pid && waits_for(other.call, process.rank)) lost.waiting.push_back(other);
    }
    const Nanos ago = died ? process.dead_for : process.still;
    if (lost.waiting.empty() || (first && ago <= longest)) continue;
    longest = ago;
    first = std::move(lost);
  }
  return first;
}

}  // namespace ddx::live
