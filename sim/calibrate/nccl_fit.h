// The constants of nccl_time.h from measured runs.
#pragma once

#include <string>
#include <vector>

#include "sim/calibrate/runs.h"
#include "sim/collectives/nccl_time.h"

namespace ddx::sim {

// One constant of NcclTimes: its name ("ring_fill.hopper"), what is known of it before any run is looked at, and how
// far that can be wrong (as a part of it). Where no run tells, it stays as it is known.
struct NcclConstant {
  std::string name;
  double known = 0;
  double doubt = 0;
};
const std::vector<NcclConstant>& nccl_constants();

// In the order of nccl_constants().
std::vector<double> constants_of(const NcclTimes& times);
NcclTimes times_of(const std::vector<double>& constants);

// A point to fit: what took how long.
struct MeasuredCall {
  NcclCall call;
  double micros = 0;
  double weight = 1;
};

// All points of a run with a time, fewer than 1 MiB and long sweeps weighing less. Throws Error (run, row) where one is
// more than 8 % faster than the links that the run states.
std::vector<MeasuredCall> calls_of(const CollectiveRun& run, const std::vector<std::optional<double>>& measured);

// Least squares on the logarithm of predicted over measured time, large errors counting less than their square, with
// what is known held by its doubt.
NcclTimes fit(const std::vector<MeasuredCall>& calls);

// nccl_times.cc with these constants.
std::string times_source(const NcclTimes& times);

}  // namespace ddx::sim
