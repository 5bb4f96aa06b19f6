#pragma once

#include "traces/formats/importer.h"

namespace ddx::formats {

Importer nccl_ras_json_importer();

}  // namespace ddx::formats
