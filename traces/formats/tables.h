// Tables and launch files that lie beside the evidence: who is where, and how the job is launched.
#pragma once

#include "traces/formats/importer.h"

namespace ddx::formats {

// Scripts, job descriptions and host files: named, and not judged.
Importer launch_file_importer();
// CSV with columns rank, host, ip in any order: RankAddress events.
Importer address_table_importer();
// CSV whose columns are environment variables, one row a process, and KEY=VALUE files: not judged; rows with
// RANK and host or ip also become RankAddress events.
Importer env_table_importer();

}  // namespace ddx::formats
