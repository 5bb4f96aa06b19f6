#include "analyzers/deadlock/pattern_break.h"

#include <algorithm>
#include <span>
#include <vector>

#include "analyzers/match/alignment.h"

namespace ddx::analyzers {
namespace {

constexpr std::size_t kMostCalls = 8192;  // looked at, from the last one back
constexpr std::size_t kMostBehind = 64;   // calls behind a break: a step or two, then the rank is stuck

struct Calls {
  std::vector<std::uint64_t> keys;  // group and call
  std::vector<std::uint32_t> rows;
};

// Of all groups, in order of issue.
Calls calls_of(const JobView& job, const RankView& view) {
  const Program& program = job.trace->program(*view.record);
  Calls calls;
  for (std::size_t row = program.size() > kMostCalls ? program.size() - kMostCalls : 0; row < program.size(); ++row) {
    const auto slot = program.comm_slot(row);
    if (!slot || *slot >= view.by_slot.size() || program.state(row) == OpState::planned) continue;
    if (view.by_slot[*slot].group == RankView::kNoGroup) continue;
    calls.keys.push_back(std::uint64_t{*slot} << 32 | program.signature(row).value);
    calls.rows.push_back(static_cast<std::uint32_t>(row));
  }
  return calls;
}

// The longest stretch of whole steps that ends at the last call or a little before it: (its pattern, its end).
std::pair<Pattern, std::size_t> longest_pattern(std::span<const std::uint64_t> keys) {
  Pattern best;
  std::size_t end = keys.size();
  for (std::size_t behind = 0; behind <= kMostBehind && behind < keys.size(); ++behind) {
    const Pattern pattern = pattern_before(keys.first(keys.size() - behind));
    if (pattern.repeats * pattern.period <= best.repeats * best.period) continue;
    best = pattern;
    end = keys.size() - behind;
  }
  return {best, end};
}

}  // namespace

std::optional<PatternBreak> find_pattern_break(const JobView& job, const RankView& view) {
  if (!view.record) return std::nullopt;
  const Calls calls = calls_of(job, view);
  const auto [pattern, end] = longest_pattern(calls.keys);
  if (pattern.period == 0) return std::nullopt;
  PatternBreak found;
  found.period = pattern.period;
  found.repeats = pattern.repeats;
  if (end == calls.keys.size()) return found;
  const auto step = std::span(calls.keys).subspan(end - pattern.period, pattern.period);
  const auto behind = std::span(calls.keys).subspan(end);
  found.row = calls.rows[end];
  found.due = calls.rows[end - pattern.period];
  found.kind = PatternBreak::Kind::other;
  if (std::find(step.begin(), step.end(), behind.front()) == step.end()) found.kind = PatternBreak::Kind::foreign;
  // One call behind what was due may be the other half of a swap: the rank is stuck in it.
  const bool may_be_swapped = behind.size() < 2;
  if (found.kind == PatternBreak::Kind::foreign || may_be_swapped) return found;
  for (std::size_t length = 1; length < pattern.period && found.kind == PatternBreak::Kind::other; ++length) {
    bool goes_on = true;
    for (std::size_t i = 0; i < behind.size() && goes_on; ++i) {
      goes_on = behind[i] == step[(length + i) % pattern.period];
    }
    if (!goes_on) continue;
    found.kind = PatternBreak::Kind::skip;
    found.length = length;
  }
  return found;
}

}  // namespace ddx::analyzers
