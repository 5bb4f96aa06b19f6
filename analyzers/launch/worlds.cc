// One job that became several: each copy is complete in itself, numbered from 0, and none knows of the others.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyzers/launch/comm_table.h"
#include "analyzers/launch/launch.h"
#include "analyzers/log_view.h"

namespace ddx::analyzers {
namespace {

struct World {
  const LogEvent* event = nullptr;
  std::int64_t size = 0;
  std::set<std::string> hosts;
  std::set<std::pair<std::string, std::int64_t>> processes;
  std::set<std::pair<std::string, std::string>> devices;  // (host, bus id or device number)
};

template <class Value>
bool overlap(const std::set<Value>& a, const std::set<Value>& b) {
  return std::any_of(a.begin(), a.end(), [&b](const Value& value) { return b.count(value) > 0; });
}

std::optional<World> world_of(const LogEvent& event, const TestsBanner& banner) {
  World world;
  world.event = &event;
  std::vector<RankId> ranks;
  for (const auto& row : banner.rows) {
    ranks.push_back(row.rank);
    world.hosts.insert(row.host);
    world.processes.insert({row.host, row.pid});
    world.devices.insert({row.host, row.bus_id.empty() ? std::to_string(row.device) : row.bus_id});
  }
  const RankSet set(std::move(ranks));
  const auto rows = static_cast<std::int64_t>(banner.rows.size());
  // Complete in itself: ranks 0..k-1, each once.
  if (rows == 0 || set.size() != banner.rows.size() || set.values().front().value != 0 ||
      set.values().back().value != rows - 1) {
    return std::nullopt;
  }
  world.size = rows;
  return world;
}

std::vector<World> banner_worlds(const Evidence& evidence) {
  std::vector<World> worlds;
  for (const auto& [event, fact] : seen<TestsBanner>(evidence)) {
    auto world = world_of(*event, *fact);
    if (!world) return {};
    worlds.push_back(std::move(*world));
  }
  return worlds;
}

// Communicators that share no process, all whole, all of one size, and nothing larger that joins them.
std::vector<World> comm_worlds(const Evidence& evidence) {
  std::vector<World> worlds;
  bool ranks_known = false;
  bool ranks_differ_from_positions = false;
  for (const CommInfo& comm : comm_table(evidence)) {
    if (comm.child) continue;
    World world;
    world.event = comm.members.front().event;
    world.size = comm.nranks;
    for (const CommMember& member : comm.members) {
      world.hosts.insert(member.host);
      world.processes.insert(member.process());
      world.devices.insert({member.host, member.bus_id});
      ranks_known = ranks_known || member.rank.has_value();
      ranks_differ_from_positions =
          ranks_differ_from_positions || (member.rank && member.rank->value != member.position);
    }
    const bool whole = static_cast<std::int64_t>(comm.positions().size()) == comm.nranks &&
                       world.processes.size() == comm.members.size();
    if (!whole) return {};
    worlds.push_back(std::move(world));
  }
  for (const World& world : worlds) {
    if (world.size != worlds.front().size) return {};
  }
  // Parts of a larger job (tensor-parallel groups, say) look the same, and the group of all may be made later or never.
  // Only ranks that begin anew in each tell them apart, or a world that is stated to be just as small. Alone in its
  // world no process of a larger job has nothing but itself.
  const bool alone = !worlds.empty() && worlds.front().size == 1;
  if (ranks_differ_from_positions && !alone) return {};
  const bool stated = !worlds.empty() && stated_world_size(evidence) == worlds.front().size;
  if (!ranks_known && !stated && !alone) return {};
  if (!ranks_known && alone && stated_world_size(evidence).value_or(1) == 1) {
    // Single-process runs side by side are only a split job where they use several hosts or devices of one run.
    std::set<std::string> hosts;
    for (const World& world : worlds) hosts.insert(world.hosts.begin(), world.hosts.end());
    if (hosts.size() < 2) return {};
  }
  return worlds;
}

Finding split(const Evidence& evidence, const std::vector<World>& worlds, Confidence confidence) {
  Finding finding;
  finding.code = "launch-split";
  finding.confidence = confidence;
  std::set<std::string> hosts;
  std::int64_t total = 0;
  std::size_t processes = 0;
  bool same_size = true;
  for (const World& world : worlds) {
    hosts.insert(world.hosts.begin(), world.hosts.end());
    total += world.size;
    processes += world.processes.size();
    same_size = same_size && world.size == worlds.front().size;
    cite(finding, evidence, *world.event);
  }
  for (const std::string& host : hosts) {
    if (!host.empty() && finding.subjects.size() < 16) finding.subjects.push_back("host " + host);
  }
  const std::int64_t each = worlds.front().size;
  finding.summary =
      same_size ? fmt::format(
                      "One job became {}: {} communicators of {} rank{}, each complete in itself, instead of one of {}",
                      worlds.size(), worlds.size(), each, each == 1 ? "" : "s", total)
                : fmt::format("One job became {}: separate communicators instead of one of {}", worlds.size(), total);
  finding.explanation = fmt::format(
      "{} processes with {} ranks in all were seen. The rank numbers 0-{} are used once in each of the {} copies ({}), "
      "and "
      "no copy knows of the others. No rank is at fault.\n",
      processes, total, each - 1, worlds.size(), join_words({hosts.begin(), hosts.end()}));
  finding.explanation += "Any bandwidth or time that this run prints is that of one copy, not of the cluster.\n";
  finding.advice =
      "The program and its launcher do not find each other: build it against the MPI that starts it (nccl-tests: "
      "MPI=1), or give all processes one MASTER_ADDR and WORLD_SIZE.";
  return finding;
}

// Runs one after another use the same devices again; copies of one job use others side by side, or bear different
// numbers of the launcher (mpirun's prefix).
bool all_apart(const std::vector<World>& worlds) {
  std::set<std::pair<std::string, std::int64_t>> processes;
  std::set<std::pair<std::string, std::string>> devices;
  std::set<RankId> launcher_ranks;
  bool by_launcher = true;
  for (const World& world : worlds) {
    if (overlap(world.processes, processes)) return false;
    by_launcher = by_launcher && world.event->rank && launcher_ranks.insert(*world.event->rank).second;
    if (!by_launcher && overlap(world.devices, devices)) return false;
    processes.insert(world.processes.begin(), world.processes.end());
    devices.insert(world.devices.begin(), world.devices.end());
  }
  return true;
}

}  // namespace

std::vector<Finding> judge_worlds(const Evidence& evidence) {
  std::vector<World> worlds = banner_worlds(evidence);
  if (worlds.size() > 1 && all_apart(worlds)) return {split(evidence, worlds, Confidence::high)};
  worlds = comm_worlds(evidence);
  if (worlds.size() > 1 && all_apart(worlds)) return {split(evidence, worlds, Confidence::medium)};
  return {};
}

}  // namespace ddx::analyzers
