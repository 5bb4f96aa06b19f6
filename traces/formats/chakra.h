// Chakra execution traces (mlcommons/chakra, schema/protobuf/et_def.proto): one file a rank, a graph of what it does.
#pragma once

#include "traces/formats/importer.h"

namespace ddx::formats {

// The whole program of the rank that the file's name ends in (NAME.RANK.et). Everything is asynchronous: computations
// are `compute` on a stream for each thread of the CPU (tid) and each stream of the GPU (is_cpu_op is false or absent),
// one of each where nodes do not say which; sends and receives have a stream for each peer and direction, collectives
// their group's. A `wait` comes before the first that depends on what runs elsewhere (lane_order.h). Sends are never
// waited for, since they end locally in this format. Sizes are bytes: u8. A computation without a duration has none,
// unless others of its file have one and it has nothing to do (num_ops): then it is shorter than a microsecond.
Importer chakra_importer();

}  // namespace ddx::formats
