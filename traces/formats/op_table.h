// Tables of operations: CSV with one row a call, as people write them down or export them.
#pragma once

#include "traces/formats/importer.h"

namespace ddx::formats {

// Columns, in any order and case: rank and op, and at least one of peer, count, tag, group (also: comm, pg), dtype,
// root, count_out, seq. Peers and roots are global ranks; no group is the group of all ranks of the table. The rows of
// a rank are its whole program, in the order of `seq` where its numbers are all different, else in that of the file.
Importer op_table_importer();

}  // namespace ddx::formats
