#include "analyzers/match/alignment.h"

#include <algorithm>
#include <optional>

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

Pattern pattern_before(Keys before) {
  Pattern best;
  for (std::size_t period = 1; period <= kLongestPeriod && 2 * period <= before.size(); ++period) {
    std::size_t same = 0;
    while (same + period < before.size() &&
           before[before.size() - 1 - same] == before[before.size() - 1 - same - period]) {
      ++same;
    }
    const std::size_t repeats = same / period + 1;
    // What covers most is the pattern: in "abb abb" that is "abb", not the "b b" at its end.
    if (repeats >= 2 && repeats * period > best.repeats * best.period) best = {period, repeats};
  }
  return best;
}

}  // namespace ddx::analyzers
