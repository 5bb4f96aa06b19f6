#include "analyzers/deadlock/wait_text.h"

#include <fmt/format.h>

namespace ddx::analyzers {

RankSet ranks_of(const WaitGraph& graph, const std::vector<std::uint32_t>& indices) {
  std::vector<RankId> ranks;
  ranks.reserve(indices.size());
  for (std::uint32_t index : indices) ranks.push_back(graph.ranks[index]);
  return RankSet(std::move(ranks));
}

RankSet victims_of(const WaitGraph& graph, const RankSet& culprits) {
  std::vector<std::uint32_t> targets;
  for (RankId rank : culprits) targets.push_back(graph.index_of(rank));
  return ranks_of(graph, who_waits_on(graph, targets)).without(culprits);
}

std::string waits(const std::string& label) { return label + (label.starts_with("ranks") ? " wait" : " waits"); }

std::string step_text(const JobView& job, const WaitGraph& graph, const Instance& instance, const RankSet& awaited) {
  const GroupView& group = job.groups[instance.group];
  const MemberView& member = group.members[instance.member];
  std::string place = "group " + group.label;
  if (!instance.p2p) place += fmt::format(", seq {}", instance.seq);
  return fmt::format("{} in {} ({}) for {}", waits(ranks_of(graph, instance.waiters).label(8)),
                     describe_call(job, member, instance.row), place, awaited.label(8));
}

}  // namespace ddx::analyzers
