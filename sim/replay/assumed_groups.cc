#include "sim/replay/assumed_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/ids.h"
#include "base/rank_set.h"

namespace ddx::sim {
namespace {

constexpr std::size_t kMostGroups = 4;  // told by name

bool has_collectives(const Trace& trace, const RankRecord& record) {
  const Program& program = trace.program(record);
  for (std::size_t row = 0; row < program.size(); ++row) {
    if (is_collective(trace.signature(program.signature(row)).kind)) return true;
  }
  return false;
}

// Every member's position in it is its rank.
bool is_world(const Communicator& communicator, std::size_t ranks) {
  return communicator.assumed && communicator.members.size() == ranks;
}

}  // namespace

std::string unproven_groups(const Trace& trace) {
  std::map<CommId, std::vector<RankId>> users;
  for (const RankRecord& record : trace.ranks) {
    for (const CommId comm : record.comms) {
      if (trace.communicator(comm).assumed && record.rank) users[comm].push_back(*record.rank);
    }
  }
  std::string subgroups;
  std::size_t count = 0;
  for (const auto& [comm, ranks] : users) {
    if (is_world(trace.communicator(comm), trace.ranks.size())) continue;
    if (++count > kMostGroups) continue;
    subgroups += fmt::format("{}{} (used by {})", subgroups.empty() ? "" : ", ",
                             trace.text(trace.communicator(comm).name), RankSet(ranks).label(8));
  }
  if (count > 0) {
    return fmt::format(
        "no file lists the members of group{} {}{}: whether others should make these calls as well is not known",
        count == 1 ? "" : "s", subgroups, count > kMostGroups ? ", ..." : "");
  }
  if (users.empty()) return {};
  const std::size_t ranks = trace.ranks.size();
  if (ranks == 1 && has_collectives(trace, trace.ranks.front())) {
    return fmt::format(
        "the only file is that of rank {}, and nothing says who else makes its calls: give the files of all ranks, or "
        "say --world-size 1",
        trace.ranks.front().rank->value);
  }
  if (ranks > 1 && ranks % 2 == 1) {
    return fmt::format(
        "there are files for ranks 0-{} only, an odd number, and nothing says how many ranks there are: is there no "
        "file for rank {}? If that is all, say --world-size {}",
        ranks - 1, ranks, ranks);
  }
  return {};
}

Assumptions assumed_groups(const Trace& trace) {
  const std::size_t ranks = trace.ranks.size();
  const bool any = std::any_of(trace.communicators().begin(), trace.communicators().end(),
                               [&](const Communicator& c) { return is_world(c, ranks); });
  if (!any) return {};
  return {fmt::format("the job has {} rank{}, those with a file: nothing in the files says how many there are", ranks,
                      ranks == 1 ? "" : "s")};
}

void state_world(Trace& trace) {
  for (std::size_t i = 0; i < trace.communicators().size(); ++i) {
    const Communicator& communicator = trace.communicators()[i];
    if (is_world(communicator, trace.ranks.size())) trace.list_members(CommId(i), communicator.members, false);
  }
}

}  // namespace ddx::sim
