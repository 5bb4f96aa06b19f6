// Where a rank leaves the pattern of its own earlier steps. Two ranks that wait for each other look alike to everybody
// else; what each of them did before may tell which one did something new.
#pragma once

#include <cstdint>
#include <optional>

#include "analyzers/match/job_view.h"

namespace ddx::analyzers {

struct PatternBreak {
  enum class Kind {
    none,     // the pattern goes on to the last call
    skip,     // with the calls that were due put in, it goes on
    foreign,  // what came in their place was never made before
    other,
  };
  Kind kind = Kind::none;
  std::size_t period = 0;   // calls in one step, over all groups of the rank
  std::size_t repeats = 0;  // whole steps before the break
  std::uint32_t row = 0;    // the first call that does not fit
  std::uint32_t due = 0;    // a call of an earlier step, like the one that was due
  std::size_t length = 0;   // skip: how many calls were left out
};

// Nullopt: its calls repeat nothing, or what looks like a break may be none.
std::optional<PatternBreak> find_pattern_break(const JobView& job, const RankView& view);

}  // namespace ddx::analyzers
