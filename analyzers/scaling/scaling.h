// Scaling: what a table of runs at several sizes says, and what it does not settle. Nothing is extrapolated over the
// border of a node without a row from beyond it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/finding.h"
#include "traces/model/scaling_table.h"

namespace ddx::analyzers {

// One size of the job; several rows of one size are one point, by their median.
struct ScalingPoint {
  std::uint64_t line = 0;  // of its first row
  std::size_t rows = 1;
  std::uint64_t gpus = 1;
  std::optional<std::uint64_t> nodes;
  // Of the whole job, a second: in the table's unit, or whole works, or steps times GPUs.
  double rate = 0;
  double spread = 0;      // of its rows: (most - least) / median
  double speedup = 1;     // against the smallest size
  double efficiency = 1;  // speedup over the ratio of sizes
  std::optional<double> work_seconds;
  std::optional<double> step_seconds;
  std::optional<double> gpu_hours;                          // of the work; or of a million units
  std::optional<double> link_bytes, gradient_bytes, steps;  // as given
};

// What a collective moves: its bus bandwidth (nccl-tests' factors: all_reduce 2(n-1)/n, all_gather, reduce_scatter and
// all_to_all (n-1)/n, else 1) against what a rank's link carries.
struct CollectivePoint {
  MeasuredCollective row;
  std::optional<double> bus_bytes;  // a second; absent: no time, or an operation of no known factor
};

struct ScalingAnswer {
  std::vector<ScalingPoint> points;  // by size, of the rows that can be
  std::vector<CollectivePoint> collectives;
  std::string unit;               // of rates: "samples"; empty: no rates to show
  std::string gpu_hours_of;       // "the work", "1 M samples"; empty: not known
  std::string size_word = "GPU";  // or "node"
  std::vector<Finding> findings;
  std::string undecided;  // why nothing is said of what was asked, as half a sentence; empty: something is
};

ScalingAnswer judge_scaling(const ScalingTable& table);

// Parts of it, each a judge of its own.
std::optional<Finding> find_impossible_rows(const ScalingTable& table);
std::vector<Finding> judge_collectives(const ScalingTable& table, std::vector<CollectivePoint>& points);

// "2,560", "1.45": three digits, or all of the whole part.
std::string figure(double value);

}  // namespace ddx::analyzers
