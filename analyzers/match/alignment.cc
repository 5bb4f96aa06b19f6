#include "analyzers/match/alignment.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace ddx::analyzers {
namespace {

constexpr std::size_t kWindow = 512;    // calls compared behind an edit
constexpr std::size_t kLongest = 4096;  // how many calls a rank may be off by
constexpr std::size_t kLongestPeriod = 64;

using Keys = std::span<const std::uint64_t>;

Keys behind(Keys keys, std::size_t n) { return n < keys.size() ? keys.subspan(n) : Keys(); }

// How many calls both have, if all of them agree.
std::optional<std::size_t> agreement(Keys a, Keys b) {
  const std::size_t both = std::min({a.size(), b.size(), kWindow});
  if (!std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(both), b.begin())) return std::nullopt;
  return both;
}

void consider(Edit& best, Edit::Kind kind, std::size_t length, std::optional<std::size_t> support) {
  if (!support) return;
  if (best.kind != Edit::Kind::none && best.support >= *support) return;
  best = {kind, length, *support};
}

// The shift by which `shifted` continues inside `whole`, tried from the shortest on.
void consider_shifts(Edit& best, Edit::Kind kind, Keys shifted, Keys whole) {
  const std::size_t longest = std::min(whole.size(), kLongest);
  for (std::size_t n = 1; n < longest; ++n) {
    if (whole[n] == shifted.front()) consider(best, kind, n, agreement(shifted, behind(whole, n)));
  }
}

// The longest stretch of that period which ends at most `behind` calls before the last one.
Stretch stretch_of(Keys calls, std::size_t period, std::size_t behind) {
  Stretch best;
  std::size_t end = calls.size();
  const std::size_t last_end = calls.size() > behind ? calls.size() - behind : 0;
  while (end > period && end >= last_end) {
    std::size_t at = end;
    while (at > period && calls[at - 1] == calls[at - 1 - period]) --at;
    const Stretch found{period, at - period, end};
    if (found.repeats() >= 2 && found.covered() > best.covered()) best = found;
    end = at - (at == end ? 1 : 0);
  }
  return best;
}

// Whether both make the same calls in each block of that many, whatever their order there; a last shorter one too.
bool same_in_blocks(Keys odd, Keys reference, std::size_t length) {
  std::vector<std::uint64_t> a, b;
  for (std::size_t at = 0; at < odd.size(); at += length) {
    const std::size_t size = std::min(length, odd.size() - at);
    const Keys one = odd.subspan(at, size), other = reference.subspan(at, size);
    if (std::equal(one.begin(), one.end(), other.begin())) continue;
    a.assign(one.begin(), one.end());
    b.assign(other.begin(), other.end());
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    if (a != b) return false;
  }
  return true;
}

}  // namespace

Edit explain_difference(Keys odd, Keys reference) {
  Edit best;
  if (odd.empty() || reference.empty()) return best;
  consider(best, Edit::Kind::replace, 1, agreement(behind(odd, 1), behind(reference, 1)));
  if (odd.size() > 1 && reference.size() > 1 && odd[0] == reference[1] && odd[1] == reference[0]) {
    const auto rest = agreement(behind(odd, 2), behind(reference, 2));
    consider(best, Edit::Kind::swap, 2, rest ? std::optional(*rest + 2) : std::nullopt);
  }
  consider_shifts(best, Edit::Kind::skip, odd, reference);
  consider_shifts(best, Edit::Kind::extra, reference, odd);
  return best;
}

Edit explain_order(Keys odd, Keys reference) {
  if (odd.size() != reference.size() || odd.size() < 2) return {};
  for (std::size_t length = 2; length <= std::min(odd.size(), kLongestPeriod); ++length) {
    if (same_in_blocks(odd, reference, length)) return {Edit::Kind::reorder, length, odd.size()};
  }
  return {};
}

Stretch longest_stretch(Keys calls, std::size_t longest_period, std::size_t behind) {
  Stretch best;
  for (std::size_t period = 1; period <= longest_period && 2 * period <= calls.size(); ++period) {
    const Stretch found = stretch_of(calls, period, behind);
    if (found.covered() > best.covered()) best = found;
  }
  return best;
}

Pattern pattern_before(Keys before) {
  const Stretch stretch = longest_stretch(before, kLongestPeriod, 0);
  return {stretch.period, stretch.repeats()};
}

}  // namespace ddx::analyzers
