// ScalingTable: what a user measured, or a tool predicted, at several sizes of a job: one row a run, or one row a
// collective. Values as given; nothing is converted but units.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ddx {

// One run of a job.
struct ScalingRun {
  std::uint64_t line = 0;  // of the file, from 1
  std::uint64_t gpus = 1;  // or nodes, where the table counts nothing else
  std::optional<std::uint64_t> nodes;
  std::optional<double> rate;            // of the whole job, in ScalingTable::rate_unit a second
  std::optional<double> step_seconds;    // of one step
  std::optional<double> work_seconds;    // of the same work (a run, an epoch) in every row
  std::optional<double> link_bytes;      // a second: of one node's network
  std::optional<double> gradient_bytes;  // reduced in a step
  std::optional<double> steps;           // in `work_seconds`
};

// One collective of `ranks` members.
struct MeasuredCollective {
  std::uint64_t line = 0;
  std::string op;  // as written
  std::uint64_t ranks = 1;
  double bytes = 0;                  // all_gather: the gathered total; reduce_scatter, all_to_all: one rank's input
  double seconds = 0;                // may be negative or zero: for a judge to say
  std::optional<double> link_bytes;  // a second: what one rank can send
};

struct ScalingTable {
  std::string path;
  std::string rate_unit;      // "samples", "tokens"; "steps" where rows tell step times and no batch; empty: by work
  bool counts_nodes = false;  // the sizes are nodes
  bool per_step = false;      // rates are steps: what a step holds is not known
  // A step is the same work at every size (strong scaling), not the same for each GPU: for a judge to set, of
  // `per_step`.
  bool fixed_batch = false;
  std::vector<ScalingRun> runs;
  std::vector<MeasuredCollective> collectives;
};

}  // namespace ddx
