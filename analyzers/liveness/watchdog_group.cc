#include "analyzers/liveness/watchdog_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyzers/launch/comm_table.h"

namespace ddx::analyzers {
namespace {

constexpr std::int64_t kMostMembers = 1'000'000;

bool gathers(std::string_view op) { return contains_text(op, "allgather") || contains_text(op, "all_gather"); }
bool scatters(std::string_view op) { return contains_text(op, "reduce_scatter") || contains_text(op, "reducescatter"); }
bool coalesced(std::string_view op) { return contains_text(op, "coalesced"); }

using GroupKey = std::pair<std::uint32_t, std::string>;
using Voices = std::map<RankId, WatchdogVoice>;
struct Gathered {
  Voices voices;
  std::vector<const LogEvent*> nameless;
};

void add_event(const LogEvent& event, const std::optional<RankId>& rank, Gathered& group) {
  if (!rank) {
    if (std::holds_alternative<WatchdogTimeout>(event.fact)) group.nameless.push_back(&event);
    return;
  }
  WatchdogVoice& voice = group.voices[*rank];
  voice.rank = *rank;
  if (const auto* timeout = std::get_if<WatchdogTimeout>(&event.fact)) {
    if (voice.timeout_at(timeout->seq) == nullptr) voice.timeouts.push_back({&event, timeout});
  } else if (const auto* status = std::get_if<WatchdogStatus>(&event.fact)) {
    voice.status = Seen<WatchdogStatus>{&event, status};
  }
}

std::map<GroupKey, Gathered> gather(const Evidence& evidence) {
  const std::vector<std::uint32_t> attempts = attempts_of(evidence);
  const ProcessTable processes(evidence);
  std::map<std::uint32_t, std::set<std::string>> names;
  const auto speaks = [](const LogEvent& event) {
    return std::holds_alternative<WatchdogTimeout>(event.fact) || std::holds_alternative<WatchdogStatus>(event.fact);
  };
  for (std::size_t i = 0; i < evidence.events.size(); ++i) {
    const LogEvent& event = evidence.events[i];
    if (speaks(event) && !event.group.empty()) names[attempts[i]].insert(event.group);
  }
  std::map<GroupKey, Gathered> groups;
  for (std::size_t i = 0; i < evidence.events.size(); ++i) {
    const LogEvent& event = evidence.events[i];
    if (!speaks(event)) continue;
    // A time-out line may lack the group that the status line beside it names.
    std::string name = event.group;
    const std::set<std::string>& known = names[attempts[i]];
    if (name.empty() && known.size() == 1) name = *known.begin();
    add_event(event, processes.rank_of(event), groups[{attempts[i], name}]);
  }
  return groups;
}

std::uint64_t common_seq(const std::vector<WatchdogVoice>& voices) {
  std::map<std::uint64_t, std::size_t> votes;
  for (const WatchdogVoice& voice : voices) {
    if (const auto seq = voice.failed_seq()) ++votes[*seq];
  }
  std::uint64_t best = 0;
  std::size_t most = 0;
  for (const auto& [seq, count] : votes) {
    if (count > most) {
      best = seq;
      most = count;
    }
  }
  return best;
}

// Members by name from the trace, else the stated world for the default group.
void find_members(const Evidence& evidence, WatchdogGroup& group) {
  group.members = group.speakers;
  if (!group.name.empty()) {
    for (const Communicator& comm : evidence.trace.communicators()) {
      const std::string_view name = evidence.trace.text(comm.name);
      if (comm.synthesized || comm.members.empty() || name.empty()) continue;
      const bool same =
          name == group.name || group.name == fmt::format("{}({})", name, evidence.trace.text(comm.description));
      if (!same || !group.speakers.without(RankSet(comm.members)).empty()) continue;
      group.members = RankSet(comm.members);
      group.size = comm.members.size();
      group.size_stated = true;
      return;
    }
  }
  const auto world = stated_world_size(evidence);
  if (is_default_group(group.name) && world && *world <= kMostMembers) {
    group.size = *world;
    group.size_stated = true;
  }
}

// The size that the all_gathers and reduce_scatters of a group fit; nullopt: none, or not the same.
std::optional<std::uint64_t> size_by_ratio(const WatchdogGroup& group) {
  std::optional<std::uint64_t> implied;
  for (const WatchdogVoice& voice : group.voices) {
    const Seen<WatchdogTimeout>* timeout = voice.timeout_at(group.seq);
    const auto size = timeout != nullptr ? implied_size(*timeout->fact) : std::nullopt;
    if (!size || *size < 2) continue;
    if (implied && *implied != *size) return std::nullopt;
    implied = size;
  }
  return implied;
}

void assume_members(WatchdogGroup& group, std::uint64_t size) {
  if (size == 0 || size > std::uint64_t(kMostMembers)) return;
  group.members.insert(RankSet::range(RankId(0), RankId(static_cast<std::int64_t>(size) - 1)));
  group.members_assumed = !group.size_stated;
}

// The sizes of an all_gather tell how many take part; numbers from 0 on, and who else is heard of, tell who.
void imply_members(const WatchdogSetting& setting, WatchdogGroup& group) {
  const auto implied = size_by_ratio(group);
  const auto known = std::max<std::uint64_t>(group.size.value_or(0), static_cast<std::uint64_t>(setting.size));
  const bool subgroup = group.name.empty() && implied && *implied < known;
  if (implied && (!group.size || subgroup)) {
    group.size = implied;
    group.size_stated = false;
  }
  if (!is_default_group(group.name) || subgroup || group.speakers.empty()) return;
  if (!group.size && setting.size > 0) group.size = static_cast<std::uint64_t>(setting.size);
  if (group.speakers.values().front().value < 0 || group.speakers.size() == group.size) return;
  const std::int64_t last = group.speakers.values().back().value;
  if (last >= kMostMembers) return;
  if (group.size) {
    if (std::uint64_t(last) < *group.size) assume_members(group, *group.size);
    return;
  }
  // Nothing says how many there are: at least all who are heard of.
  group.members.insert(setting.heard);
  const std::int64_t highest = group.members.values().back().value;
  if (highest < kMostMembers) assume_members(group, static_cast<std::uint64_t>(highest) + 1);
  group.members_assumed = true;
}

// The number of ranks that a communicator of the whole job or a RAS table speaks of; 0: none, or fewer than are heard.
std::int64_t told_size(const Evidence& evidence, const std::vector<CommInfo>& comms, const RankSet& heard) {
  std::int64_t size = 0;
  for (const CommInfo& comm : comms) size = std::max(size, comm.nranks);
  for (const auto& [event, fact] : seen<RasCommunicator>(evidence)) {
    if (fact->size <= std::uint64_t(kMostMembers)) size = std::max(size, static_cast<std::int64_t>(fact->size));
  }
  const bool contradicted = !heard.empty() && heard.values().back().value >= size;
  return size > kMostMembers || contradicted ? 0 : size;
}

std::map<std::uint32_t, WatchdogSetting> settings_of(const Evidence& evidence,
                                                     const std::vector<WatchdogGroup>& groups) {
  std::map<std::uint32_t, std::vector<RankId>> heard;
  std::map<std::uint32_t, std::vector<RankId>> lost;
  std::map<std::uint32_t, std::vector<RankId>> waiting;
  for (const WatchdogGroup& group : groups) {
    std::vector<RankId>& own = waiting[group.attempt];
    for (const WatchdogVoice& voice : group.voices) {
      if (!voice.timeouts.empty()) own.push_back(voice.rank);
    }
  }
  const std::vector<std::uint32_t> attempts = attempts_of(evidence);
  for (std::size_t i = 0; i < evidence.events.size(); ++i) {
    const LogEvent& event = evidence.events[i];
    if (!event.rank || !waiting.contains(attempts[i])) continue;
    heard[attempts[i]].push_back(*event.rank);
    const auto* end = std::get_if<ProcessEnd>(&event.fact);
    const bool fell = (end != nullptr && end->secondary) || std::holds_alternative<NetSocketError>(event.fact);
    if (fell) lost[attempts[i]].push_back(*event.rank);
  }
  const std::vector<CommInfo> comms = comm_table(evidence);
  std::map<std::uint32_t, WatchdogSetting> settings;
  for (auto& [attempt, ranks] : waiting) {
    WatchdogSetting& setting = settings[attempt];
    setting.waiting = RankSet(std::move(ranks));
    setting.heard = RankSet(std::move(heard[attempt]));
    setting.lost_a_peer = RankSet(std::move(lost[attempt]));
    for (const CommInfo& comm : comms) {
      if (comm.positions_are_ranks) setting.heard.insert(comm.positions());
    }
    // A file, or a prefix in it, speaks for all attempts: it tells nothing where there are several.
    for (const Input& input : evidence.inputs) {
      if (input.format == "log" && waiting.size() == 1) setting.heard.insert(input.ranks);
    }
    setting.size = told_size(evidence, comms, setting.heard);
  }
  return settings;
}

}  // namespace

std::optional<std::uint64_t> WatchdogVoice::failed_seq() const {
  if (!timeouts.empty()) return timeouts.front().fact->seq;
  return status ? status->fact->failed_seq : std::nullopt;
}

const Seen<WatchdogTimeout>* WatchdogVoice::timeout_at(std::uint64_t seq) const {
  for (const auto& timeout : timeouts) {
    if (timeout.fact->seq == seq) return &timeout;
  }
  return nullptr;
}

std::optional<std::uint64_t> WatchdogVoice::last_enqueued() const {
  return status ? status->fact->last_enqueued : std::nullopt;
}

WatchdogLog watchdog_log(const Evidence& evidence) {
  WatchdogLog log;
  std::vector<WatchdogGroup>& groups = log.groups;
  for (auto& [key, gathered] : gather(evidence)) {
    WatchdogGroup group;
    group.attempt = key.first;
    group.name = key.second;
    group.nameless = std::move(gathered.nameless);
    std::vector<RankId> ranks;
    for (auto& [rank, voice] : gathered.voices) {
      std::sort(voice.timeouts.begin(), voice.timeouts.end(),
                [](const auto& a, const auto& b) { return a.fact->seq < b.fact->seq; });
      ranks.push_back(rank);
      group.voices.push_back(std::move(voice));
    }
    group.speakers = RankSet(std::move(ranks));
    group.seq = common_seq(group.voices);
    find_members(evidence, group);
    groups.push_back(std::move(group));
  }
  log.attempts = settings_of(evidence, groups);
  for (WatchdogGroup& group : groups) {
    imply_members(log.attempts[group.attempt], group);
    // Dumps call the world's group so: one group has one name for who reads both.
    if (!group.name.empty() && is_default_group(group.name)) group.name = "default_pg";
  }
  return log;
}

std::optional<std::string> comparable_size(const WatchdogTimeout& timeout) {
  const std::string_view op = timeout.op_type;
  if (coalesced(op) || contains_text(op, "alltoall") || contains_text(op, "send") || contains_text(op, "recv")) {
    return std::nullopt;
  }
  const bool two_sided = gathers(op) || scatters(op);
  // The root's list makes one side of a gather or scatter differ by right.
  const bool out_only = !two_sided && contains_text(op, "scatter");
  if (!out_only && !timeout.numel_in) return std::nullopt;
  if ((two_sided || out_only) && !timeout.numel_out) return std::nullopt;
  if (out_only) return format_count(*timeout.numel_out) + " out";
  if (!two_sided) return format_count(*timeout.numel_in);
  return fmt::format("{} in, {} out", format_count(*timeout.numel_in), format_count(*timeout.numel_out));
}

std::optional<std::uint64_t> implied_size(const WatchdogTimeout& timeout) {
  if (coalesced(timeout.op_type) || !timeout.numel_in || !timeout.numel_out) return std::nullopt;
  const bool gather_op = gathers(timeout.op_type);
  if (!gather_op && !scatters(timeout.op_type)) return std::nullopt;
  const std::uint64_t part = gather_op ? *timeout.numel_in : *timeout.numel_out;
  const std::uint64_t whole = gather_op ? *timeout.numel_out : *timeout.numel_in;
  if (part == 0 || whole == 0) return std::nullopt;
  return whole % part == 0 ? whole / part : 0;
}

}  // namespace ddx::analyzers
