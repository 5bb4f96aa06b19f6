// Tables and launch files that lie beside the evidence: who is where, and what `ddx check` looks at.
#pragma once

#include "traces/formats/importer.h"

namespace ddx::formats {

// Scripts, job descriptions and host files: named, and left for `ddx check`.
Importer launch_file_importer();
// CSV with columns rank, host, ip in any order: RankAddress events.
Importer address_table_importer();
// CSV whose columns are environment variables, one row a process, and KEY=VALUE files: left for `ddx check`; rows with
// RANK and host or ip also become RankAddress events.
Importer env_table_importer();

}  // namespace ddx::formats
