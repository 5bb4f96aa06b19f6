// Slowness: which members of a comparison are slower than the others beyond chance. Robust throughout: medians, and
// spreads by the median absolute deviation (MAD), so that single outliers decide nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "analyzers/straggler/own_time.h"

namespace ddx::analyzers {

// Thresholds (docs/stragglers.md).
constexpr double kLeastSlowdown = 0.08;    // of its own time against the others' median
constexpr double kLeastLoss = 0.01;        // of the time that the records span
constexpr double kLeastSigmas = 5;         // how far from chance
constexpr double kLeastShareSlower = 0.7;  // of stretches in which it is above the others' median
constexpr double kLeastShareLast = 0.6;    // of stretches in which somebody is clearly last
constexpr std::size_t kFewestStretches = 8;

struct SlowMember {
  const MemberView* member = nullptr;
  bool always = false;             // slower throughout; else clearly last in some stretches, and nearly always it
  double slowdown = 0;             // own time over the others' median, less 1 (median over stretches)
  double sigmas = 0;               // how far from chance
  std::size_t stretches = 0;       // in which it was compared
  std::size_t decided = 0;         // of which somebody was clearly last
  std::size_t last = 0;            // of which it was
  std::size_t worked = 0;          // stretches in which the others have time of their own
  Nanos own = 0, others = 0;       // median over these: of its own time, of the others' median
  double above = 0;                // share of stretches in which it is above the others' median
  Nanos lost = 0;                  // in all: what it takes more than others (always), else by how much it came last
  Nanos typical_loss = 0;          // median of that over the stretches that show it
  Nanos span = 0;                  // of its record
  std::vector<std::size_t> worst;  // up to 3 indices of stretches, the worst first
};

struct Slowness {
  std::vector<SlowMember> slow;  // by rank
  std::size_t compared = 0;      // members
};

Slowness judge_slowness(const Comparison& comparison);

}  // namespace ddx::analyzers
