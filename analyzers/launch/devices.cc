// Which GPU: two ranks on one, as NCCL says itself or as its INIT lines show; and the first barrier's guess.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyzers/launch/comm_table.h"
#include "analyzers/launch/launch.h"
#include "analyzers/log_view.h"

namespace ddx::analyzers {
namespace {

using Place = std::pair<std::string, std::string>;  // host, bus id

struct Sharing {
  std::map<Place, std::vector<RankId>> ranks;
  std::vector<const LogEvent*> events;
  std::set<std::int64_t> devices;  // CUDA device numbers seen
  bool devices_known = true;
};

void add_device(Sharing& sharing, const std::optional<std::int64_t>& device) {
  if (device) {
    sharing.devices.insert(*device);
  } else {
    sharing.devices_known = false;
  }
}

// What NCCL refuses: it compares hosts and bus ids itself.
Sharing told_by_nccl(const Evidence& evidence) {
  Sharing sharing;
  for (const auto& [event, fact] : seen<DeviceDuplicate>(evidence)) {
    auto& ranks = sharing.ranks[{event->host, fact->bus_id}];
    ranks.push_back(fact->rank);
    ranks.push_back(fact->other);
    sharing.events.push_back(event);
    add_device(sharing, fact->cuda_device ? fact->cuda_device : event->cuda_device);
  }
  return sharing;
}

Sharing shown_by_init(const Evidence& evidence) {
  Sharing sharing;
  for (const CommInfo& comm : comm_table(evidence)) {
    std::map<Place, std::vector<const CommMember*>> places;
    for (const CommMember& member : comm.members) {
      if (!member.bus_id.empty() && !member.host.empty()) places[{member.host, member.bus_id}].push_back(&member);
    }
    for (const auto& [place, members] : places) {
      std::set<std::int64_t> positions;
      for (const CommMember* member : members) positions.insert(member->position);
      if (positions.size() < 2) continue;
      for (const CommMember* member : members) {
        if (comm.positions_are_ranks) {
          sharing.ranks[place].emplace_back(member->position);
        } else if (member->rank) {
          sharing.ranks[place].push_back(*member->rank);
        } else {
          sharing.ranks[place];
        }
        sharing.events.push_back(member->event);
        add_device(sharing, member->cuda_device);
      }
    }
  }
  return sharing;
}

// "Multiple Ranks are using the same GPU/Partition", of which newer versions name none.
Sharing told_without_names(const Evidence& evidence) {
  Sharing sharing;
  for (const auto& [event, fact] : seen<NcclWarning>(evidence)) {
    if (!contains_text(fact->text, "are using the same gpu")) continue;
    sharing.ranks[{event->host, {}}];
    sharing.events.push_back(event);
    add_device(sharing, event->cuda_device);
  }
  return sharing;
}

std::optional<Finding> device_duplicate(const Evidence& evidence) {
  Sharing sharing = told_by_nccl(evidence);
  if (sharing.events.empty()) sharing = shown_by_init(evidence);
  if (sharing.events.empty()) sharing = told_without_names(evidence);
  if (sharing.events.empty()) return std::nullopt;
  Finding finding;
  finding.code = "device-duplicate";
  finding.confidence = Confidence::high;
  std::vector<std::string> parts;
  for (const auto& [place, ranks] : sharing.ranks) {
    const RankSet set(ranks);
    finding.ranks.insert(set);
    const std::string where = place.first.empty() ? "" : " of " + place.first;
    parts.push_back(fmt::format("{} on bus id {}{}", set.empty() ? std::string("several ranks") : set.label(6),
                                place.second.empty() ? "?" : place.second, where));
    if (finding.subjects.size() < 16) finding.subjects.push_back(fmt::format("device {}{}", place.second, where));
  }
  for (const LogEvent* event : sharing.events) cite(finding, evidence, *event);
  finding.summary = "Several ranks use one GPU: " + join_words(parts, 3);
  const bool one_device = sharing.devices_known && sharing.devices.size() == 1;
  finding.explanation =
      "NCCL needs a GPU for each rank. The line of one rank names another only as an example: all that share "
      "the device are meant.\n";
  if (one_device) {
    finding.explanation += fmt::format(
        "Every one of these processes chose CUDA device {}: nobody set the device of its own "
        "local rank. It is one cause.\n",
        *sharing.devices.begin());
  }
  finding.advice =
      "Call torch.cuda.set_device(LOCAL_RANK) before the process group is made, or give each task its own GPU in "
      "CUDA_VISIBLE_DEVICES; start no more ranks on a host than it has GPUs.";
  return finding;
}

// ---- the first barrier ----------------------------------------------------------------------------------------------

struct Guess {
  RankId rank;
  std::string host;
  std::int64_t device = 0;
  const LogEvent* event = nullptr;
};

std::vector<Guess> guesses_of(const Evidence& evidence) {
  const ProcessTable processes(evidence);
  std::map<RankId, std::string> host_of;
  for (const auto& [event, fact] : seen<RankAddress>(evidence)) host_of[fact->rank] = fact->host;
  std::map<RankId, Guess> guesses;
  for (const auto& [event, fact] : seen<BarrierDeviceGuess>(evidence)) {
    const auto rank = processes.rank_of(*event);
    if (!rank) continue;
    const auto known = host_of.find(*rank);
    const std::string host = !event->host.empty() || known == host_of.end() ? event->host : known->second;
    guesses.emplace(*rank, Guess{*rank, host, fact->device, event});
  }
  std::vector<Guess> all;
  for (auto& [rank, guess] : guesses) all.push_back(std::move(guess));
  return all;
}

// Time-outs in the first operations of a group: the barrier that guessed is among them.
const LogEvent* early_timeout(const Evidence& evidence) {
  for (const auto& [event, fact] : seen<WatchdogTimeout>(evidence)) {
    if (fact->seq <= 2) return event;
  }
  return nullptr;
}

std::optional<Finding> barrier_device(const Evidence& evidence) {
  const std::vector<Guess> guesses = guesses_of(evidence);
  std::map<std::pair<std::string, std::int64_t>, std::vector<const Guess*>> sharing;
  bool hosts_known = true;
  for (const Guess& guess : guesses) {
    sharing[{guess.host, guess.device}].push_back(&guess);
    hosts_known = hosts_known && !guess.host.empty();
  }
  const LogEvent* timeout = early_timeout(evidence);
  // Without hosts, ranks that announce one number may be on hosts of their own: only a hang at the barrier tells.
  if (!hosts_known && timeout == nullptr) return std::nullopt;
  Finding finding;
  std::vector<std::string> parts;
  std::vector<RankId> wrong;
  for (const auto& [place, sharers] : sharing) {
    if (sharers.size() < 2) continue;
    std::vector<RankId> ranks;
    for (const Guess* guess : sharers) {
      ranks.push_back(guess->rank);
      cite(finding, evidence, *guess->event);
      // By order, the first rank of a host owns its device 0, the next device 1: the lowest that shares is in place.
      if (guess != sharers.front()) wrong.push_back(guess->rank);
    }
    parts.push_back(fmt::format("{} announce GPU {}{}", RankSet(std::move(ranks)).label(6), place.second,
                                place.first.empty() ? "" : " of " + place.first));
    if (!place.first.empty()) finding.subjects.push_back("host " + place.first);
  }
  if (wrong.empty()) return std::nullopt;
  finding.code = "barrier-device";
  finding.ranks = RankSet(std::move(wrong));
  finding.severity = timeout != nullptr ? Severity::error : Severity::warning;
  finding.confidence = timeout != nullptr && hosts_known ? Confidence::high : Confidence::medium;
  if (timeout != nullptr) cite(finding, evidence, *timeout);
  std::vector<RankId> all;
  for (const Guess& guess : guesses) all.push_back(guess.rank);
  finding.victims = RankSet(std::move(all)).without(finding.ranks);
  finding.summary = fmt::format("The first barrier guessed its device: {}", join_words(parts, 3));
  finding.explanation =
      "No device was bound to these processes yet, so the barrier took one, and more than one rank took the same.\n";
  if (timeout != nullptr) {
    finding.explanation +=
        "It then timed out in the first operation, which these ranks have all entered: nobody is missing.\n";
  }
  if (!hosts_known) finding.explanation += "Their hosts are not named: this holds if they run on one host.\n";
  finding.advice =
      "Call torch.cuda.set_device(LOCAL_RANK), or pass device_id to init_process_group, before the first "
      "collective or barrier.";
  return finding;
}

// ---- a device that is not there
// --------------------------------------------------------------------------------------

std::optional<Finding> device_ordinal(const Evidence& evidence) {
  const ProcessTable processes(evidence);
  Finding finding;
  std::string what;
  for (const auto& [event, fact] : seen<ProcessEnd>(evidence)) {
    if (!contains_text(fact->what, "invalid device ordinal")) continue;
    cite(finding, evidence, *event);
    if (const auto rank = processes.rank_of(*event)) finding.ranks.insert(*rank);
    if (what.empty() && !fact->call_site.empty()) what = fmt::format(" ({})", fact->call_site);
  }
  if (finding.evidence.empty()) return std::nullopt;
  finding.code = "device-ordinal";
  finding.confidence = Confidence::high;
  if (!finding.ranks.empty()) finding.victims = known_ranks(evidence).without(finding.ranks);
  const std::string who = finding.ranks.empty() ? std::string("A process") : finding.ranks.label(4);
  finding.summary = fmt::format("{} asked for a GPU number that it cannot see{}", who, what);
  finding.summary.front() = finding.summary.front() == 'r' ? 'R' : finding.summary.front();
  finding.explanation =
      "The global rank taken for the local one does this from the second host on; so do more processes than GPUs, and "
      "CUDA_VISIBLE_DEVICES that leaves fewer.\n";
  finding.advice =
      "Use LOCAL_RANK for the device, and compare the processes on a host with the GPUs that each can see.";
  return finding;
}

}  // namespace

std::vector<Finding> judge_devices(const Evidence& evidence) {
  std::vector<Finding> findings;
  if (auto finding = device_duplicate(evidence)) findings.push_back(std::move(*finding));
  if (auto finding = device_ordinal(evidence)) findings.push_back(std::move(*finding));
  if (auto finding = barrier_device(evidence)) findings.push_back(std::move(*finding));
  return findings;
}

}  // namespace ddx::analyzers
