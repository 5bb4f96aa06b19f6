#include "cli/commands/collective_choices.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_set>
#include <utility>

namespace ddx::cli {
namespace {

using Key = std::tuple<OpKind, std::uint32_t, std::string_view, std::string_view>;

class Choices {
 public:
  Choices(const Trace& trace, const sim::CostModel& costs) : trace_(trace), costs_(costs) {}

  void add(CommId comm, SignatureId id) {
    const Communicator& communicator = trace_.communicator(comm);
    const auto ranks = static_cast<std::uint32_t>(communicator.members.size());
    if (ranks < 2 || !seen_.insert(std::uint64_t{comm.value} << 32 | id.value).second) return;
    const auto work = sim::work_of(trace_.signature(id), ranks);
    const auto cost = work ? costs_.collective(communicator, *work) : std::nullopt;
    if (!cost || cost->price.algorithm.empty()) return;
    const Key key{trace_.signature(id).kind, ranks, cost->price.algorithm, cost->price.protocol};
    const auto [at, fresh] = sizes_.try_emplace(key, work->bytes, work->bytes);
    at->second.first = std::min(at->second.first, work->bytes);
    at->second.second = std::max(at->second.second, work->bytes);
  }

  std::vector<Simulation::Choice> take() const {
    std::vector<Simulation::Choice> all;
    for (const auto& [key, bytes] : sizes_) {
      const auto& [kind, ranks, algorithm, protocol] = key;
      all.push_back({std::string(name_of(kind)), ranks, bytes.first, bytes.second, std::string(algorithm),
                     std::string(protocol)});
    }
    return all;
  }

 private:
  const Trace& trace_;
  const sim::CostModel& costs_;
  std::unordered_set<std::uint64_t> seen_;
  std::map<Key, std::pair<std::uint64_t, std::uint64_t>> sizes_;  // fewest and most bytes
};

}  // namespace

std::vector<Simulation::Choice> collective_choices(const Trace& trace, const sim::CostModel& costs) {
  if (costs.by_steps()) return {};
  std::map<ProgramId, UnlikeCalls> calls;
  Choices choices(trace, costs);
  for (const RankRecord& record : trace.ranks) {
    const auto [at, fresh] = calls.try_emplace(record.program);
    if (fresh) at->second = trace.program(record).unlike_calls();
    for (const auto& [slot, id] : at->second) {
      if (slot >= record.comms.size() || !is_collective(trace.signature(id).kind)) continue;
      const CommId comm = record.comms[slot];
      const auto& members = trace.communicator(comm).members;
      // One member speaks for all.
      if (!members.empty() && members.front() == record.rank) choices.add(comm, id);
    }
  }
  return choices.take();
}

}  // namespace ddx::cli
