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
  double share = 0;  // of its span, or of the longest one
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

Nanos computing(const RankTime& time) { return time.parts.compute + time.parts.overlapped; }

// Whether all tell their computations: then these are what is their own, also where a call runs beside them. Else it is
// all that lies outside of calls.
bool tell_work(const JobView& job, const std::vector<RankTime>& times) {
  return std::all_of(times.begin(), times.end(), [&job](const RankTime& time) {
    return !time.rank || job.view_of(*time.rank) == nullptr || computing(time) > 0;
  });
}

std::vector<Own> own_times(const JobView& job, const std::vector<RankTime>& times, bool by_work) {
  std::vector<Own> all;
  Nanos longest = 0;
  for (const RankTime& time : times) longest = std::max(longest, time.end - time.begin);
  for (const RankTime& time : times) {
    if (!time.rank || time.end == time.begin || job.view_of(*time.rank) == nullptr) continue;
    if (job.view_of(*time.rank)->record != &job.trace->ranks[time.record]) continue;
    if (timed_calls(job, *time.rank) < kFewestCalls) continue;
    const Nanos span = time.end - time.begin;
    const Nanos own = by_work ? computing(time) : span - time.parts.exposed - time.parts.overlapped;
    // Stages are done at unlike times, and have computed as much: shares of one time compare.
    const Nanos of = by_work ? longest : span;
    all.push_back({static_cast<double>(own) / static_cast<double>(of), own, *time.rank});
  }
  std::sort(all.begin(), all.end(),
            [](const Own& a, const Own& b) { return a.share != b.share ? a.share > b.share : a.rank < b.rank; });
  return all;
}

// Of the others: their median, and whether the first stands apart from them.
std::optional<Own> middle_if_apart(const std::vector<Own>& all) {
  const Own& first = all.front();
  const Own middle = all[1 + (all.size() - 1) / 2];
  std::vector<double> deviations;
  for (std::size_t i = 1; i < all.size(); ++i) deviations.push_back(std::abs(all[i].share - middle.share));
  std::nth_element(deviations.begin(), deviations.begin() + static_cast<std::ptrdiff_t>(deviations.size() / 2),
                   deviations.end());
  const double apart = first.share - middle.share;
  const double noise = kLeastSigmas * kSigmaOfMad * deviations[deviations.size() / 2];
  const bool far = first.share - all[1].share >= apart / 2;
  if (middle.share <= 0 || apart < kLeastLonger * middle.share || apart < noise || !far) return std::nullopt;
  return middle;
}

}  // namespace

std::optional<Finding> judge_lone_ranks(const JobView& job, const std::vector<RankTime>& times, const RankSet& lone) {
  const bool by_work = tell_work(job, times);
  const std::vector<Own> all = own_times(job, times, by_work);
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
      fmt::format(by_work ? fmt::runtime("Rank {} has most to compute, and the others wait for it: it computes for "
                                         "{:.0f} % of the time, they for {:.0f} %")
                          : fmt::runtime("Rank {} waits least, and the others for it: {:.0f} % of its time is its "
                                         "own, of theirs {:.0f} %"),
                  first.rank.value, first.share * 100, middle->share * 100);
  f.explanation = fmt::format(
      "{} {} in all, the others {} (median). Whoever has most to do between calls sets the pace, and the others are "
      "late after it because they waited.\n"
      "No other rank does the same work, as the stages of a pipeline do not: it may be slow, or its part of the model "
      "larger.\n",
      by_work ? "It computes for" : "Outside of calls it spends", format_duration(first.time),
      format_duration(middle->time));
  f.evidence.push_back({job.evidence->path(job.view_of(first.rank)->record->input), std::nullopt, f.summary});
  f.advice =
      "Compare what the ranks hold (layers, embeddings, the head). If that is even, compare the GPU's clocks, "
      "temperature "
      "and ECC counters with a neighbour's.";
  return f;
}

}  // namespace ddx::analyzers
