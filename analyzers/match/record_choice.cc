#include "analyzers/match/record_choice.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string_view>

namespace ddx::analyzers {
namespace {

// The number of the last folder "attempt_N" of a path, as torchrun makes them.
std::optional<std::uint32_t> attempt_of_path(std::string_view path) {
  constexpr std::string_view kFolder = "/attempt_";
  const std::size_t at = path.rfind(kFolder);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = path.substr(at + kFolder.size());
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  const bool whole = end != rest.data() + rest.size() && *end == '/';
  return error == std::errc() && whole ? std::optional(number) : std::nullopt;
}

std::vector<bool> of_earlier_attempts(const Evidence& evidence) {
  const auto& records = evidence.trace.ranks;
  std::vector<std::optional<std::uint32_t>> attempts(records.size());
  std::uint32_t last = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (!records[i].snapshot) continue;
    attempts[i] = attempt_of(evidence, records[i]);
    last = std::max(last, attempts[i].value_or(0));
  }
  std::vector<bool> outdated(records.size(), false);
  for (std::size_t i = 0; i < records.size(); ++i) outdated[i] = attempts[i] && *attempts[i] < last;
  return outdated;
}

// Backends of the dumps, if some rank has current dumps of more than one.
std::set<std::string> backends_apart(const Evidence& evidence, const std::vector<bool>& outdated) {
  std::map<RankId, std::string> first;
  std::set<std::string> all;
  bool apart = false;
  for (std::size_t i = 0; i < evidence.trace.ranks.size(); ++i) {
    const RankRecord& record = evidence.trace.ranks[i];
    if (!record.rank || outdated[i] || record.backend.empty() || kind_of(record) != RecordKind::dumps) continue;
    all.insert(record.backend);
    const auto [at, fresh] = first.try_emplace(*record.rank, record.backend);
    apart = apart || (!fresh && at->second != record.backend);
  }
  return apart ? all : std::set<std::string>();
}

}  // namespace

std::optional<std::uint32_t> attempt_of(const Evidence& evidence, const RankRecord& record) {
  if (record.attempt) return record.attempt;
  return attempt_of_path(evidence.path(record.input));
}

RecordKind kind_of(const RankRecord& record) {
  return record.snapshot || record.whole_program ? RecordKind::dumps : RecordKind::logs;
}

std::vector<RecordChoice> record_choices(const Evidence& evidence) {
  bool any[2] = {false, false};
  for (const RankRecord& record : evidence.trace.ranks) any[static_cast<int>(kind_of(record))] = true;
  std::vector<RecordChoice> choices;
  if (any[static_cast<int>(RecordKind::dumps)]) {
    std::vector<bool> outdated = of_earlier_attempts(evidence);
    const std::set<std::string> backends = backends_apart(evidence, outdated);
    for (const std::string& backend : backends) choices.push_back({RecordKind::dumps, backend, outdated});
    if (backends.empty()) choices.push_back({RecordKind::dumps, std::nullopt, std::move(outdated)});
  }
  if (any[static_cast<int>(RecordKind::logs)]) choices.push_back({RecordKind::logs, std::nullopt, {}});
  return choices;
}

}  // namespace ddx::analyzers
