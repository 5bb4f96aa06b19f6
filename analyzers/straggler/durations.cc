#include "analyzers/straggler/durations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <vector>

#include "analyzers/straggler/call_groups.h"

namespace ddx::analyzers {
namespace {

constexpr double kSigmaOfMad = 1.4826;
constexpr double kLeastSigmas = 6;
constexpr double kLeastShorter = 0.3;  // of the others' median
constexpr double kLeastLonger = 0.2;
constexpr double kLeastLoss = 0.1;  // of the time that the records span
constexpr std::size_t kFewestRanks = 6;

Nanos median(std::vector<Nanos> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// What has one name for all ranks.
using What = std::tuple<OpKind, std::string_view, std::uint64_t>;
using Lengths = std::map<What, std::map<RankId, std::vector<Nanos>>>;

Lengths lengths_of(const JobView& job) {
  Lengths lengths;
  for (const RankView& view : job.ranks) {
    const Program& program = job.trace->program(*view.record);
    for (std::size_t row = 0; row < program.size(); ++row) {
      const Signature& signature = job.trace->signature(program.signature(row));
      const auto start = plausible(program.start(row)), end = plausible(program.end(row));
      if (!start || !end || *end < *start) continue;
      if (!synchronizes(signature.kind) && signature.kind != OpKind::compute) continue;
      const What what{signature.kind, job.trace->text(signature.name), signature.count_in.value_or(0)};
      lengths[what][view.rank].push_back(*end - *start);
    }
  }
  return lengths;
}

struct Odd {
  RankId rank;
  Nanos own = 0, others = 0;  // medians
  std::size_t calls = 0;      // of it
  RankSet compared;
};

// The rank that stands apart at the end where the slow one would: the shortest call, the longest work.
std::optional<Odd> odd_one(const std::map<RankId, std::vector<Nanos>>& by_rank, bool shortest) {
  if (by_rank.size() < kFewestRanks) return std::nullopt;
  std::vector<std::pair<Nanos, RankId>> sorted;
  for (const auto& [rank, lengths] : by_rank) sorted.emplace_back(median(lengths), rank);
  std::sort(sorted.begin(), sorted.end());
  if (!shortest) std::reverse(sorted.begin(), sorted.end());
  std::vector<Nanos> others, deviations;
  for (std::size_t i = 1; i < sorted.size(); ++i) others.push_back(sorted[i].first);
  const Nanos middle = median(others);
  for (const Nanos length : others) deviations.push_back(std::abs(length - middle));
  const auto [own, rank] = sorted.front();
  const auto apart = static_cast<double>(std::abs(own - middle));
  const double least = (shortest ? kLeastShorter : kLeastLonger) * static_cast<double>(middle);
  const bool gap = static_cast<double>(std::abs(own - sorted[1].first)) >= apart / 2;
  const double noise = kLeastSigmas * kSigmaOfMad * static_cast<double>(median(std::move(deviations)));
  if (apart < least || apart < noise || !gap || middle <= 0) return std::nullopt;
  Odd odd{rank, own, middle, by_rank.at(rank).size(), {}};
  for (const auto& [other, lengths] : by_rank) odd.compared.insert(other);
  return odd;
}

// What the odd one's calls cost, against all the time that its record spans.
bool matters(const JobView& job, const Odd& odd) {
  const Program& program = job.trace->program(*job.view_of(odd.rank)->record);
  Nanos first = INT64_MAX, last = INT64_MIN;
  for (std::size_t row = 0; row < program.size(); ++row) {
    const auto start = plausible(program.start(row)), end = plausible(program.end(row));
    if (!start || !end) continue;
    first = std::min(first, *start);
    last = std::max(last, *end);
  }
  const double lost = static_cast<double>(std::abs(odd.others - odd.own)) * static_cast<double>(odd.calls);
  return lost >= kLeastLoss * (static_cast<double>(last) - static_cast<double>(first));
}

std::string text_of(const What& what) {
  const auto& [kind, name, count] = what;
  std::string text(kind == OpKind::compute && !name.empty() ? name : name_of(kind));
  if (count > 0) text += fmt::format(" x {}", format_count(count));
  return text;
}

std::string sentence_of(const What& what, const Odd& odd) {
  const bool shortest = std::get<OpKind>(what) != OpKind::compute;
  return fmt::format(
      "{}: {} on rank {}, {} on the others (medians){}.\n", text_of(what), format_duration(odd.own), odd.rank.value,
      format_duration(odd.others),
      shortest ? fmt::format(": it came last, and they waited about {} for it", format_duration(odd.others - odd.own))
               : "");
}

}  // namespace

std::optional<Finding> judge_durations(const JobView& job) {
  Finding f;
  for (const auto& [what, by_rank] : lengths_of(job)) {
    const bool shortest = std::get<OpKind>(what) != OpKind::compute;
    const auto odd = odd_one(by_rank, shortest);
    if (!odd || !matters(job, *odd)) continue;
    if (!f.ranks.empty() && !f.ranks.contains(odd->rank)) return std::nullopt;  // two stories: neither
    f.ranks.insert(odd->rank);
    f.victims.insert(odd->compared.without(f.ranks));
    if (f.summary.empty()) {
      f.summary = shortest ? fmt::format("Rank {} is slow: it waits least in {}, {} where the others are in it for {}",
                                         odd->rank.value, text_of(what), format_duration(odd->own),
                                         format_duration(odd->others))
                           : fmt::format("Rank {} is slow: {} takes it {} where the others need {}", odd->rank.value,
                                         text_of(what), format_duration(odd->own), format_duration(odd->others));
    }
    f.explanation += sentence_of(what, *odd);
  }
  if (f.ranks.empty()) return std::nullopt;
  f.code = "slow-rank";
  f.severity = Severity::warning;
  f.confidence = Confidence::low;
  f.explanation +=
      "A collective ends on all ranks together: who is in it for the shortest time came last, and the longest times "
      "are "
      "of those who wait.\n";
  f.explanation += "No calls compare one by one here, so it may be chance.\n";
  const RankView* view = job.view_of(*f.ranks.begin());
  f.evidence.push_back({job.evidence->path(view->record->input), std::nullopt, f.summary});
  f.advice =
      "Take a trace of some more steps. If it stays the same rank, compare its GPU's clocks, temperature and ECC "
      "counters with a neighbour's, then its data loading.";
  return f;
}

}  // namespace ddx::analyzers
