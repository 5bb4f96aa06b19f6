// Alignment: given what two ranks called from their first difference on, which single edit makes the rest agree.
#pragma once

#include <cstdint>
#include <span>

namespace ddx::analyzers {

struct Edit {
  enum class Kind {
    none,     // no single edit explains what follows
    skip,     // the odd side lacks `length` calls that the reference has here
    extra,    // the odd side has `length` calls more here
    swap,     // the odd side has two neighbouring calls in the other order
    replace,  // this one call differs, the rest agrees
    reorder,  // the odd side makes the same `length` calls in another order, here or again and again
  };
  Kind kind = Kind::none;
  std::size_t length = 0;
  std::size_t support = 0;  // calls behind the edit that agree: what the claim rests on; 0: nothing speaks against it
};

// Both lists begin at the first difference (odd[0] != reference[0]) and may end early (a rank that is stuck): only
// where both have a call can they disagree. Of the edits that nothing speaks against the one with most support wins,
// then the shorter one.
Edit explain_difference(std::span<const std::uint64_t> odd, std::span<const std::uint64_t> reference);

// Of two lists of one length that hold all calls to the end: the fewest calls at a time of which both make the same
// ones, so that nothing was left out or added. Kind none: there are none.
Edit explain_order(std::span<const std::uint64_t> odd, std::span<const std::uint64_t> reference);

// A repeating pattern in front of a place.
struct Pattern {
  std::size_t period = 0;   // 0: none
  std::size_t repeats = 0;  // whole periods right before the place
};
// Calls of which each equals the one a period before it: [begin, end), the first period included.
struct Stretch {
  std::size_t period = 0, begin = 0, end = 0;  // period 0: none
  std::size_t repeats() const { return period == 0 ? 0 : (end - begin) / period; }
  std::size_t covered() const { return repeats() * period; }
};
// The stretch of at least two whole periods that covers most and ends at the last call or at most `behind` calls before
// it; of equal ones that of the shortest period. What covers most is the pattern: in "abb abb" that is "abb", not the
// "b b" at its end.
Stretch longest_stretch(std::span<const std::uint64_t> calls, std::size_t longest_period, std::size_t behind);

// The pattern (period at most 64) of which at least two whole repeats end exactly at the end of `before` and that
// covers most of it.
Pattern pattern_before(std::span<const std::uint64_t> before);

}  // namespace ddx::analyzers
