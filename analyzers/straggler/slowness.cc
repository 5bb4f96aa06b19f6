#include "analyzers/straggler/slowness.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

namespace ddx::analyzers {
namespace {

constexpr double kSigmaOfMad = 1.4826;
constexpr double kErrorOfMedian = 1.2533;  // of the median of normal values, in sigmas over sqrt(n)

// One member in one stretch.
struct Sample {
  std::size_t stretch = 0;
  double own = 0;
  double others = 0;  // median
};

// The nearest that fits.
Nanos to_nanos(double time) { return static_cast<Nanos>(std::clamp(time, -9e18, 9e18)); }

struct Weighted {
  double value, weight;
};
double weighted_median(std::vector<Weighted> values) {
  std::sort(values.begin(), values.end(), [](const Weighted& a, const Weighted& b) { return a.value < b.value; });
  double half = 0, sum = 0;
  for (const Weighted& v : values) half += v.weight / 2;
  for (const Weighted& v : values) {
    sum += v.weight;
    if (sum >= half) return v.value;
  }
  return 0;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The median of `sorted` without its element at `index`; of two middle ones their mean.
double median_without(const std::vector<Nanos>& sorted, std::size_t index) {
  const auto at = [&](std::size_t i) { return static_cast<double>(sorted[i < index ? i : i + 1]); };
  const std::size_t count = sorted.size() - 1;
  return count % 2 == 1 ? at(count / 2) : (at(count / 2 - 1) + at(count / 2)) / 2;
}

using Samples = std::map<const MemberView*, std::vector<Sample>>;

Samples samples_of(const Comparison& comparison) {
  Samples samples;
  for (std::size_t i = 0; i < comparison.stretches.size(); ++i) {
    std::vector<OwnTime> times = comparison.stretches[i].times;
    std::sort(times.begin(), times.end(), [](const OwnTime& a, const OwnTime& b) { return a.own < b.own; });
    std::vector<Nanos> sorted;
    for (const OwnTime& time : times) sorted.push_back(time.own);
    for (std::size_t k = 0; k < times.size(); ++k) {
      samples[times[k].member].push_back({i, static_cast<double>(sorted[k]), median_without(sorted, k)});
    }
  }
  return samples;
}

// Slower throughout: the median of own over others', each stretch weighted by how long it is.
void judge_always(const std::vector<Sample>& samples, SlowMember& member) {
  std::vector<Weighted> ratios;
  std::vector<double> own, others, excess;
  double weights = 0, squares = 0, above = 0, lost = 0;
  for (const Sample& s : samples) {
    lost += s.own - s.others;
    if (s.others <= 0) continue;
    own.push_back(s.own);
    others.push_back(s.others);
    excess.push_back(s.own - s.others);
    ratios.push_back({s.own / s.others - 1, s.others});
    weights += s.others;
    squares += s.others * s.others;
    above += s.own > s.others ? s.others : 0;
  }
  if (ratios.size() < kFewestStretches) return;
  member.slowdown = weighted_median(ratios);
  for (Weighted& ratio : ratios) ratio.value = std::abs(ratio.value - member.slowdown);
  const double sigma = kSigmaOfMad * weighted_median(std::move(ratios));
  const double error = kErrorOfMedian * sigma * std::sqrt(squares) / weights;
  member.sigmas = std::min(member.slowdown / std::max(error, 1e-9), 1e6);
  member.above = above / weights;
  // The spread of few values is itself uncertain.
  const double least_sigmas = kLeastSigmas * (1 + 8 / static_cast<double>(samples.size()));
  member.always =
      member.slowdown >= kLeastSlowdown && member.sigmas >= least_sigmas && member.above >= kLeastShareSlower;
  if (!member.always) return;
  member.lost = to_nanos(lost);
  member.worked = own.size();
  member.own = static_cast<Nanos>(median(std::move(own)));
  member.others = static_cast<Nanos>(median(std::move(others)));
  member.typical_loss = static_cast<Nanos>(median(std::move(excess)));
}

// What a stretch is lengthened by beyond chance.
double noise_of(const Samples& samples) {
  std::vector<double> deviations;
  for (const auto& [member, own] : samples) {
    for (const Sample& s : own) deviations.push_back(std::abs(s.own - s.others));
  }
  return 4 * kSigmaOfMad * median(std::move(deviations));
}

struct Last {
  std::size_t stretch = 0;
  Nanos margin = 0;  // to the second
};
struct Lasts {
  std::map<const MemberView*, std::vector<Last>> by_member;  // clearly last
  std::map<const MemberView*, double> lost;                  // of all margins
  std::map<const MemberView*, std::size_t> decided;          // of its stretches
  std::map<const MemberView*, double> chance, variance;      // of being last in so many by luck
};

Lasts lasts_of(const Comparison& comparison, double noise) {
  Lasts lasts;
  for (std::size_t i = 0; i < comparison.stretches.size(); ++i) {
    const std::vector<OwnTime>& times = comparison.stretches[i].times;
    const OwnTime *last = &times[0], *second = nullptr;
    for (std::size_t k = 1; k < times.size(); ++k) {
      if (times[k].own > last->own) {
        second = std::exchange(last, &times[k]);
      } else if (second == nullptr || times[k].own > second->own) {
        second = &times[k];
      }
    }
    const Nanos margin = last->own - second->own;
    lasts.lost[last->member] += static_cast<double>(margin);
    if (margin <= 0 || static_cast<double>(margin) < std::max(noise, 0.1 * static_cast<double>(second->own))) continue;
    lasts.by_member[last->member].push_back({i, margin});
    const double luck = 1.0 / static_cast<double>(times.size());
    for (const OwnTime& time : times) {
      ++lasts.decided[time.member];
      lasts.chance[time.member] += luck;
      lasts.variance[time.member] += luck * (1 - luck);
    }
  }
  return lasts;
}

void add_lasts(Lasts& lasts, SlowMember& member) {
  std::vector<Last>& own = lasts.by_member[member.member];
  member.decided = lasts.decided[member.member];
  member.last = own.size();
  std::sort(own.begin(), own.end(), [](const Last& a, const Last& b) { return a.margin > b.margin; });
  for (std::size_t i = 0; i < std::min<std::size_t>(3, own.size()); ++i) member.worst.push_back(own[i].stretch);
}

// Last in some stretches only, and then nearly always it.
bool last_too_often(Lasts& lasts, SlowMember& member) {
  if (member.last < kFewestStretches) return false;
  const auto last = static_cast<double>(member.last);
  const double sigmas = (last - lasts.chance[member.member]) / std::sqrt(lasts.variance[member.member]);
  if (sigmas < kLeastSigmas + 1 || last < kLeastShareLast * static_cast<double>(member.decided)) return false;
  member.sigmas = sigmas;
  member.lost = to_nanos(lasts.lost[member.member]);
  const std::vector<Last>& own = lasts.by_member[member.member];
  member.typical_loss = own[own.size() / 2].margin;
  return true;
}

// From the first to the last time that a record holds.
Nanos span_of(const MemberView& member) {
  std::optional<Nanos> first, last;
  const Program& program = *member.program;
  for (std::size_t row = 0; row < program.size(); ++row) {
    for (const auto read : {program.issue(row), program.start(row), program.end(row)}) {
      const auto time = plausible(read);
      if (!time) continue;
      first = std::min(first.value_or(*time), *time);
      last = std::max(last.value_or(*time), *time);
    }
  }
  return first ? *last - *first : 0;
}

}  // namespace

Slowness judge_slowness(const Comparison& comparison) {
  Slowness slowness;
  const Samples samples = samples_of(comparison);
  slowness.compared = samples.size();
  if (samples.size() < 2) return slowness;
  Lasts lasts = lasts_of(comparison, noise_of(samples));
  for (const auto& [view, own] : samples) {
    SlowMember member;
    member.member = view;
    member.stretches = own.size();
    judge_always(own, member);
    add_lasts(lasts, member);
    if (!member.always && !last_too_often(lasts, member)) continue;
    member.span = span_of(*view);
    const bool matters = static_cast<double>(member.lost) >= kLeastLoss * static_cast<double>(member.span);
    if (member.lost > 0 && matters) slowness.slow.push_back(std::move(member));
  }
  std::sort(slowness.slow.begin(), slowness.slow.end(),
            [](const SlowMember& a, const SlowMember& b) { return a.member->rank < b.member->rank; });
  return slowness;
}

}  // namespace ddx::analyzers
