#include "analyzers/deadlock/pattern_break.h"

#include <algorithm>
#include <span>
#include <vector>

#include "analyzers/match/alignment.h"

namespace ddx::analyzers {
namespace {

constexpr std::size_t kMostCalls = 2048;     // looked at, from the last one back
constexpr std::size_t kLongestPeriod = 256;  // calls of one step
constexpr std::size_t kMostBehind = 64;      // calls behind a break: a step or two, then the rank is stuck

using Keys = std::span<const std::uint64_t>;

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

// Whether the call at `at` came right behind the one before it earlier, too: then the pattern found is a part of a
// longer one, and nothing was broken.
bool usual_there(Keys keys, std::size_t at) {
  for (std::size_t i = 1; i < at; ++i) {
    if (keys[i - 1] == keys[at - 1] && keys[i] == keys[at]) return true;
  }
  return false;
}

// How many calls of a step were left out, where with them put in `behind` goes on with it; 0: it does not.
std::size_t skipped(Keys step, Keys behind) {
  for (std::size_t length = 1; length < step.size(); ++length) {
    bool goes_on = true;
    for (std::size_t i = 0; i < behind.size() && goes_on; ++i) goes_on = behind[i] == step[(length + i) % step.size()];
    if (goes_on) return length;
  }
  return 0;
}

}  // namespace

std::optional<PatternBreak> find_pattern_break(const JobView& job, const RankView& view) {
  if (!view.record) return std::nullopt;
  const Calls calls = calls_of(job, view);
  const Keys keys(calls.keys);
  const Stretch stretch = longest_stretch(keys, kLongestPeriod, kMostBehind);
  if (stretch.period == 0) return std::nullopt;
  PatternBreak found;
  found.period = stretch.period;
  found.repeats = stretch.repeats();
  if (stretch.end == keys.size()) return found;
  const Keys step = keys.subspan(stretch.end - stretch.period, stretch.period);
  const Keys behind = keys.subspan(stretch.end);
  // It was made after all, a little later: whatever came between is over.
  const bool made_later = std::find(behind.begin(), behind.end(), step.front()) != behind.end();
  if (usual_there(keys, stretch.end) || made_later) return std::nullopt;
  found.row = calls.rows[stretch.end];
  found.due = calls.rows[stretch.end - stretch.period];
  const Keys before = keys.first(stretch.end);
  if (std::find(before.begin(), before.end(), behind.front()) == before.end()) {
    found.kind = PatternBreak::Kind::foreign;
    return found;
  }
  found.kind = PatternBreak::Kind::other;
  // One call behind what was due may be the other half of a swap: the rank is stuck in it.
  const std::size_t length = behind.size() < 2 ? 0 : skipped(step, behind);
  if (length == 0) return found;
  found.kind = PatternBreak::Kind::skip;
  found.length = length;
  return found;
}

}  // namespace ddx::analyzers
