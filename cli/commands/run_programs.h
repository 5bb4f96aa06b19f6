// Programs of ranks, run to rest in memory, so that they can be judged like dumps of a job.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/finding.h"
#include "sim/replay/reference_replay.h"
#include "traces/model/evidence.h"

namespace ddx::cli {

struct ProgramRun {
  // Without its snapshot, which took the place of the programs in the evidence. Absent: nothing was run.
  std::optional<sim::ReplayResult> result;
  std::vector<Finding> gaps;     // for which nothing was run: ranks whose programs are needed, and were lost
  std::vector<Finding> hazards;  // of programs that complete: what they would come to under another model
};

// What makes every outcome of a run worthless: input that contradicts itself or is cut, ranks whose programs were lost.
// Empty: nothing.
std::string not_to_be_run(const Evidence& evidence);

// Where all records of the evidence are whole programs: runs them and puts what they come to in their place. What
// cannot be run, and programs beside records of a real run, are counted: "replay.refused", "replay.put_aside". What
// lacks ranks is told as `gaps`, and not counted.
ProgramRun run_programs(Evidence& evidence, sim::ReplayOptions options = {});

// The run's gaps, findings of the evidence as the run left it, the run's hazards. Those of the run are taken out of it.
std::vector<Finding> judge(const Evidence& evidence, ProgramRun& run);

}  // namespace ddx::cli
