#include "analyzers/launch/comm_table.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "analyzers/log_view.h"

namespace ddx::analyzers {
namespace {

using MemberKey = std::tuple<std::int64_t, std::string, std::int64_t>;

std::int64_t common_size(const std::vector<CommMember>& members) {
  std::map<std::int64_t, std::size_t> votes;
  for (const CommMember& member : members) ++votes[member.nranks];
  const auto best =
      std::max_element(votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return best == votes.end() ? 0 : best->first;
}

// A communicator spans the job when none is larger, none of its size is made of other processes, its members' own ranks
// do not contradict, and it is no smaller than the world that is stated.
void find_spanning(const Evidence& evidence, std::vector<CommInfo>& comms) {
  std::int64_t largest = 0;
  for (const CommInfo& comm : comms) largest = std::max(largest, comm.nranks);
  if (const auto world = stated_world_size(evidence)) largest = std::max(largest, std::int64_t{*world});
  const std::set<std::pair<std::string, std::int64_t>>* first = nullptr;
  std::vector<std::set<std::pair<std::string, std::int64_t>>> processes(comms.size());
  bool apart = false;
  for (std::size_t i = 0; i < comms.size(); ++i) {
    if (comms[i].nranks != largest) continue;
    for (const CommMember& member : comms[i].members) processes[i].insert(member.process());
    if (first == nullptr) first = &processes[i];
    const bool shares = std::any_of(processes[i].begin(), processes[i].end(),
                                    [first](const auto& process) { return first->count(process) > 0; });
    apart = apart || !shares;
  }
  for (CommInfo& comm : comms) {
    comm.positions_are_ranks = !apart && comm.nranks == largest && !comm.child &&
                               std::all_of(comm.members.begin(), comm.members.end(), [](const CommMember& member) {
                                 return !member.rank || member.rank->value == member.position;
                               });
  }
}

}  // namespace

RankSet CommInfo::positions() const {
  std::vector<RankId> all;
  for (const CommMember& member : members) all.emplace_back(member.position);
  return RankSet(std::move(all));
}

std::vector<CommInfo> comm_table(const Evidence& evidence) {
  std::map<std::string, std::map<MemberKey, CommMember>> found;
  std::map<std::string, const CommInit*> any;
  for (const auto& [event, fact] : seen<CommInit>(evidence)) {
    if (fact->comm_id.empty()) continue;
    any.emplace(fact->comm_id, fact);
    CommMember& member = found[fact->comm_id][{fact->rank, event->host, event->pid.value_or(0)}];
    if (member.event == nullptr) member.event = event;
    member.position = fact->rank;
    member.nranks = fact->nranks;
    member.host = event->host;
    member.pid = event->pid.value_or(0);
    if (event->rank) member.rank = event->rank;
    if (fact->cuda_device) member.cuda_device = fact->cuda_device;
    if (!fact->bus_id.empty()) member.bus_id = fact->bus_id;
    (fact->complete ? member.completed : member.started) = true;
  }
  std::vector<CommInfo> comms;
  for (auto& [id, members] : found) {
    CommInfo comm;
    comm.id = id;
    comm.function = any[id]->function;
    comm.child = !any[id]->parent.empty();
    for (auto& [key, member] : members) comm.members.push_back(std::move(member));
    comm.nranks = common_size(comm.members);
    comms.push_back(std::move(comm));
  }
  find_spanning(evidence, comms);
  return comms;
}

}  // namespace ddx::analyzers
