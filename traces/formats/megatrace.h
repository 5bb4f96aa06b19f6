// Megatrace's call logs: one line for each call of NCCL's API, with the host's clock. Its lines:
//   [save_count 2] [1755590106.364857579] [Rank 0] Fun AllReduce Data 1 stream 0x55919d27b4b0 opCount 2
// The counter of saves tells which write of its ring the line is of. opCount counts the calls of one communicator, in
// decimal; sends and receives that are posted together share one.
#pragma once

#include "traces/formats/importer.h"

namespace ddx::formats {

// One record a rank: a row a call, with its time of issue. The lines name no communicator, so each stream of a rank
// becomes one of its own (synthesized, members unknown); which ranks share one is for an analyzer to find. Calls that
// the ring lost are unknown, and so is what came behind the last line. Sends and receives have no peer.
// Throws Error where a file has no such line at all.
Importer megatrace_importer();

}  // namespace ddx::formats
