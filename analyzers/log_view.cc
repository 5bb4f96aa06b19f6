#include "analyzers/log_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace ddx::analyzers {
namespace {

constexpr std::size_t kMostCited = 12;
constexpr std::int64_t kMostRanks = 1'000'000;  // a stated world beyond this is not spelled out
constexpr Nanos kDay = 86'400 * kSecond;

void insert_world(std::vector<std::int64_t>& sizes, std::int64_t size) {
  if (size > 0 && size <= kMostRanks) sizes.push_back(size);
}

// Sizes of the default group in dumps, of store barriers, of nothing less certain: communicators may be parts.
std::vector<std::int64_t> stated_sizes(const Evidence& evidence) {
  std::vector<std::int64_t> sizes;
  for (const auto& [event, fact] : seen<StoreBarrier>(evidence)) insert_world(sizes, fact->world_size);
  for (const Communicator& comm : evidence.trace.communicators()) {
    const std::string_view name = evidence.trace.text(comm.name);
    if (comm.synthesized || name.empty() || !is_default_group(name)) continue;
    if (!comm.members.empty()) {
      insert_world(sizes, static_cast<std::int64_t>(comm.members.size()));
    } else if (comm.declared_size) {
      insert_world(sizes, *comm.declared_size);
    }
  }
  return sizes;
}

}  // namespace

ProcessTable::ProcessTable(const Evidence& evidence) {
  const auto add = [this](const std::string& host, std::optional<std::int64_t> pid, std::optional<RankId> rank) {
    if (pid && rank) processes_.push_back({{host, *pid}, *rank});
  };
  for (const RankRecord& record : evidence.trace.ranks) add(record.host, record.pid, record.rank);
  for (const LogEvent& event : evidence.events) {
    add(event.host, event.pid, event.rank);
    if (const auto* banner = std::get_if<TestsBanner>(&event.fact)) {
      // One process may drive several ranks here; then its pid says nothing.
      for (const auto& row : banner->rows) add(row.host, row.pid, row.rank);
    }
  }
  // A communicator's position is a rank of the job only where that communicator is the job's.
  if (const auto world = stated_world_size(evidence)) {
    for (const auto& [event, fact] : seen<CommInit>(evidence)) {
      if (fact->parent.empty() && fact->nranks == *world) add(event->host, event->pid, RankId(fact->rank));
    }
  }
  std::sort(processes_.begin(), processes_.end());
  processes_.erase(std::unique(processes_.begin(), processes_.end()), processes_.end());
}

std::optional<RankId> ProcessTable::rank_of(const std::string& host, std::int64_t pid) const {
  const std::pair<std::string, std::int64_t> key{host, pid};
  const auto at = std::lower_bound(processes_.begin(), processes_.end(), key,
                                   [](const auto& entry, const auto& wanted) { return entry.first < wanted; });
  if (at == processes_.end() || at->first != key) return std::nullopt;
  const auto next = at + 1;
  if (next != processes_.end() && next->first == key) return std::nullopt;  // several ranks: not decided by the pid
  return at->second;
}

std::optional<RankId> ProcessTable::rank_of(std::int64_t pid) const {
  std::optional<RankId> found;
  for (const auto& [process, rank] : processes_) {
    if (process.second != pid) continue;
    if (found && *found != rank) return std::nullopt;
    found = rank;
  }
  return found;
}

std::optional<RankId> ProcessTable::rank_of(const LogEvent& event) const {
  if (event.rank) return event.rank;
  if (!event.pid) return std::nullopt;
  return rank_of(event.host, *event.pid);
}

std::string file_name(const Evidence& evidence, const LogEvent& event) {
  const std::string path = evidence.path(event.input);
  return path.empty() ? "log" : path.substr(path.find_last_of('/') + 1);
}

EvidenceLine line_of(const Evidence& evidence, const LogEvent& event) {
  EvidenceLine line;
  line.path = evidence.path(event.input);
  if (event.line > 0) line.line = event.line;
  line.text = event.text;
  return line;
}

void cite(Finding& finding, const Evidence& evidence, const LogEvent& event) {
  if (finding.evidence.size() >= kMostCited) return;
  EvidenceLine line = line_of(evidence, event);
  for (const EvidenceLine& cited : finding.evidence) {
    if (cited.path == line.path && cited.line == line.line) return;
  }
  finding.evidence.push_back(std::move(line));
}

std::string speaker(const Evidence& evidence, const LogEvent& event) {
  if (event.rank) return fmt::format("rank {}", event.rank->value);
  if (!event.host.empty()) {
    return event.pid ? fmt::format("{} pid {}", event.host, *event.pid) : event.host;
  }
  return fmt::format("{} line {}", file_name(evidence, event), event.line);
}

std::string host_subject(const Evidence& evidence, const LogEvent& event) {
  if (!event.host.empty()) return "host " + event.host;
  return "log " + file_name(evidence, event);
}

std::optional<Nanos> elapsed(const LogEvent& from, const LogEvent& to) {
  if (!from.time || !to.time || from.time_of_day != to.time_of_day) return std::nullopt;
  // Hostile times may lie so far apart that the difference has no value.
  Nanos between = 0;
  if (__builtin_sub_overflow(*to.time, *from.time, &between)) return std::nullopt;
  if (!from.time_of_day) return between;
  if (between > kDay / 2) between -= kDay;
  if (between < -kDay / 2) between += kDay;
  return between;
}

std::optional<bool> before(const LogEvent& a, const LogEvent& b) {
  if (const auto between = elapsed(a, b); between && *between != 0) return *between > 0;
  if (a.input == b.input) return a.line < b.line;
  return std::nullopt;
}

std::vector<std::uint32_t> attempts_of(const Evidence& evidence) {
  std::vector<std::uint32_t> attempts;
  attempts.reserve(evidence.events.size());
  std::map<InputId, std::uint32_t> current;
  for (const LogEvent& event : evidence.events) {
    if (const auto* start = std::get_if<AttemptStart>(&event.fact)) current[event.input] = start->attempt;
    const auto at = current.find(event.input);
    attempts.push_back(event.attempt.value_or(at == current.end() ? 0 : at->second));
  }
  return attempts;
}

std::optional<std::uint32_t> stated_world_size(const Evidence& evidence) {
  if (evidence.trace.world_size) return evidence.trace.world_size;
  const std::vector<std::int64_t> sizes = stated_sizes(evidence);
  if (sizes.empty()) return std::nullopt;
  for (std::int64_t size : sizes) {
    if (size != sizes.front()) return std::nullopt;
  }
  return static_cast<std::uint32_t>(sizes.front());
}

RankSet spoken_ranks(const Evidence& evidence) {
  std::vector<RankId> ranks;
  const auto add = [&ranks](const std::optional<RankId>& rank) {
    if (rank) ranks.push_back(*rank);
  };
  for (const RankRecord& record : evidence.trace.ranks) add(record.rank);
  // Of a log also who wrote lines that say nothing of interest.
  for (const Input& input : evidence.inputs) {
    if (input.format == "log") ranks.insert(ranks.end(), input.ranks.begin(), input.ranks.end());
  }
  for (const LogEvent& event : evidence.events) {
    add(event.rank);
    if (const auto* barrier = std::get_if<StoreBarrier>(&event.fact)) add(barrier->rank);
    if (const auto* join = std::get_if<StoreJoin>(&event.fact)) add(join->rank);
    if (const auto* address = std::get_if<RankAddress>(&event.fact)) add(address->rank);
    if (const auto* failure = std::get_if<ElasticFailure>(&event.fact)) add(failure->rank);
  }
  return RankSet(std::move(ranks));
}

RankSet known_ranks(const Evidence& evidence) {
  RankSet ranks = spoken_ranks(evidence);
  const auto world = stated_world_size(evidence);
  if (world && *world > 0 && *world <= kMostRanks) {
    ranks.insert(RankSet::range(RankId(0), RankId(std::int64_t{*world} - 1)));
  }
  return ranks;
}

bool timed_out_waiting(const LogEvent& event) {
  if (const auto* error = std::get_if<NetSocketError>(&event.fact))
    return contains_text(error->error, "timed out waiting");
  const auto* end = std::get_if<ProcessEnd>(&event.fact);
  return end != nullptr && contains_text(end->what, "timed out waiting");
}

RankSet ranks_that_timed_out(const Evidence& evidence) {
  std::vector<RankId> ranks;
  for (const LogEvent& event : evidence.events) {
    if (event.rank && timed_out_waiting(event)) ranks.push_back(*event.rank);
  }
  return RankSet(std::move(ranks));
}

bool is_default_group(std::string_view name) {
  return name.empty() || name == "0" || name == "default_pg" || name == "0(default_pg)";
}

bool contains_text(std::string_view text, std::string_view lower_case_part) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  const auto at = std::search(text.begin(), text.end(), lower_case_part.begin(), lower_case_part.end(),
                              [&](char a, char b) { return lower(a) == b; });
  return at != text.end() || lower_case_part.empty();
}

bool speaks_of_nan(std::string_view text) {
  static constexpr std::string_view kParts[] = {"is nan",   "nan or inf", "inf or nan",    "nan detected", "nan values",
                                                "nan loss", "loss: nan",  "infinite loss", "nan in "};
  return std::any_of(std::begin(kParts), std::end(kParts),
                     [text](std::string_view part) { return contains_text(text, part); });
}

std::string join_words(const std::vector<std::string>& words, std::size_t most) {
  std::string text;
  const std::size_t shown = words.size() > most ? most : words.size();
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) text += i + 1 == words.size() ? " and " : ", ";
    text += words[i];
  }
  if (words.size() > shown) text += fmt::format(" and {} more", words.size() - shown);
  return text;
}

}  // namespace ddx::analyzers
