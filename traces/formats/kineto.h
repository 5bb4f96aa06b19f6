// Profiles of PyTorch (torch.profiler, Kineto): Chrome trace events in JSON, one file a rank.
#pragma once

#include "traces/formats/importer.h"

namespace ddx::formats {

// The collectives of a window of steps, from their records on the host (record_param_comms) joined with the kernels by
// "External id"; and what else the GPU did, as `compute`: neighbouring kernels of one stream that are less than 10 us
// apart are one, of at most 1 ms unless a single one is longer. Times are absolute (baseTimeNanoseconds + ts). A
// profile has no beginning and no end of the job: both are taken as lost.
Importer kineto_importer();

// Host execution traces of PyTorch (ExecutionTraceObserver): the collectives of one rank in their order, without times.
Importer host_trace_importer();

}  // namespace ddx::formats
