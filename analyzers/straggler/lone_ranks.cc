#include "analyzers/straggler/lone_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ddx::analyzers {
namespace {

constexpr std::size_t kFewestRanks = 3;
constexpr std::size_t kFewestCalls = 32;
constexpr double kLeastLonger = 0.15;
constexpr double kLeastSigmas = 5;
constexpr double kSigmaOfMad = 1.4826;

struct Own {
  double outside = 0;  // share of its span outside of calls
  Nanos time = 0;
  RankId rank;
};

std::size_t timed_calls(const JobView& job, RankId rank) {
  const RankView* view = job.view_of(rank);
  if (view == nullptr) return 0;
  const Program& program = job.trace->program(*view->record);
  std::size_t calls = 0;
  for (std::size_t row = 0; row < program.size(); ++row) {
    const OpKind kind = job.trace->signature(program.signature(row)).kind;
    if ((is_collective(kind) || is_p2p(kind)) && program.start(row) && program.end(row)) ++calls;
  }
  return calls;
}

std::vector<Own> own_times(const JobView& job, const std::vector<RankTime>& times) {
  std::vector<Own> all;
  for (const RankTime& time : times) {
    if (!time.rank || time.end == time.begin || job.view_of(*time.rank) == nullptr) continue;
    if (job.view_of(*time.rank)->record != &job.trace->ranks[time.record]) continue;
    if (timed_calls(job, *time.rank) < kFewestCalls) continue;
    const Nanos span = time.end - time.begin;
    const Nanos outside = span - time.parts.exposed - time.parts.overlapped;
    all.push_back({static_cast<double>(outside) / static_cast<double>(span), outside, *time.rank});
  }
  std::sort(all.begin(), all.end(), [](const Own& a, const Own& b) {
    return a.outside != b.outside ? a.outside > b.outside : a.rank < b.rank;
  });
  return all;
}

// Of the others: their median, and whether the first stands apart from them.
std::optional<Own> middle_if_apart(const std::vector<Own>& all) {
  const Own& first = all.front();
  const Own middle = all[1 + (all.size() - 1) / 2];
  std::vector<double> deviations;
  for (std::size_t i = 1; i < all.size(); ++i) deviations.push_back(std::abs(all[i].outside - middle.outside));
  std::nth_element(deviations.begin(), deviations.begin() + static_cast<std::ptrdiff_t>(deviations.size() / 2),
                   deviations.end());
  const double apart = first.outside - middle.outside;
  const double noise = kLeastSigmas * kSigmaOfMad * deviations[deviations.size() / 2];
  const bool far = first.outside - all[1].outside >= apart / 2;
  if (middle.outside <= 0 || apart < kLeastLonger * middle.outside || apart < noise || !far) return std::nullopt;
  return middle;
}

}  // namespace

std::optional<Finding> judge_lone_ranks(const JobView& job, const std::vector<RankTime>& times, const RankSet& lone) {
  const std::vector<Own> all = own_times(job, times);
  if (all.size() < kFewestRanks || !lone.contains(all.front().rank)) return std::nullopt;
  const auto middle = middle_if_apart(all);
  if (!middle) return std::nullopt;
  const Own& first = all.front();
  Finding f;
  f.code = "slow-rank";
  f.severity = Severity::warning;
  f.confidence = Confidence::low;
  f.ranks.insert(first.rank);
  for (std::size_t i = 1; i < all.size(); ++i) f.victims.insert(all[i].rank);
  f.summary =
      fmt::format("Rank {} waits least, and the others for it: {:.0f} % of its time is its own, of theirs {:.0f} %",
                  first.rank.value, first.outside * 100, middle->outside * 100);
  f.explanation = fmt::format(
      "Outside of calls it spends {} in all, the others {} (median). Whoever has most to do between calls sets the "
      "pace, "
      "and the others are late after it because they waited.\n"
      "No other rank does the same work, as the stages of a pipeline do not: it may be slow, or its part of the model "
      "larger.\n",
      format_duration(first.time), format_duration(middle->time));
  f.evidence.push_back({job.evidence->path(job.view_of(first.rank)->record->input), std::nullopt, f.summary});
  f.advice =
      "Compare what the ranks hold (layers, embeddings, the head). If that is even, compare the GPU's clocks, "
      "temperature "
      "and ECC counters with a neighbour's.";
  return f;
}

}  // namespace ddx::analyzers
