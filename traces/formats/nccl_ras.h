// NCCL's RAS report as JSON (`ncclras -f json`); a file may hold several, one poll behind the other.
#pragma once

#include "traces/formats/importer.h"

namespace ddx::formats {

Importer nccl_ras_json_importer();

}  // namespace ddx::formats
