// Capture files (.ddx): what `ddx wrap` and `ddx live` record, one a process. traces/capture/record.h has the layout.
#pragma once

#include "traces/formats/importer.h"

namespace ddx::formats {

// One record of one rank. Calls of an outer layer (PyTorch) stay, with the times of those that they made below (NCCL);
// calls of a lower layer that nobody above made stand for themselves. Times are those of the wall clock. A process that
// left by its own exit, and of which nothing was lost, has a whole program; of any other it is a snapshot of where it
// stood. A process that made no call and has no rank (a launcher) is no rank.
Importer ddx_importer();

// What no single file can know: the members of an NCCL communicator, by its hash and the positions that its members
// say. Call it once all files are read.
void list_captured_members(Evidence& evidence);

// Dumps of PyTorch's recorder beside a capture of the same process say less of the same calls: their records are taken
// out, and counted as "ddx.dump_set_aside".
void set_dumps_aside(Evidence& evidence);

// Writes one record as a capture file, which must not exist, of that rank. Returns how many operations have no place in
// it: computations and waits, which a recorder does not see. Throws Error where the file cannot be made or filled.
std::size_t write_ddx(const Trace& trace, const RankRecord& record, const std::string& path);

}  // namespace ddx::formats
