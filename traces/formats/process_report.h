// processes.json of `ddx wrap`: how the processes of a job ended.
#pragma once

#include "traces/formats/importer.h"

namespace ddx::formats {

// ProcessEnd events of ranks' own processes, not of their helpers.
Importer process_report_importer();

}  // namespace ddx::formats
