// The published runs with their times, and which of them calibrate.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/calibrate/nccl_fit.h"
#include "sim/calibrate/runs.h"

namespace ddx::sim {

struct ValidationRun {
  CollectiveRun run;
  std::vector<std::optional<double>> measured;  // us; nullopt: not stated, or excluded
  std::string kind;                             // GPU, network and collective
  bool calibrates = false;
};

// Of tests/data/validation, those that have a size, a time and known hardware. Of each kind the first, third, ... run
// in the order of ids calibrates, so that each kind has one that does.
std::vector<ValidationRun> validation_runs();

// A point: one row of one run.
struct Point {
  const ValidationRun* run = nullptr;
  NcclCall call;
  double micros = 0;
};
std::vector<Point> points_of(const std::vector<const ValidationRun*>& runs);

NcclTimes fit_runs(const std::vector<const ValidationRun*>& runs);

// docs/accuracy.md.
std::string accuracy_page(const std::vector<ValidationRun>& runs);

// Mean absolute error in per cent of the held-out runs with these constants, from `least` bytes to below `end`.
double held_out_error(const std::vector<ValidationRun>& runs, std::uint64_t least, std::uint64_t end);

}  // namespace ddx::sim
