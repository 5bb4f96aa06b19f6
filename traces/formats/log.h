#pragma once

#include "traces/formats/importer.h"

namespace ddx::formats {

Importer log_importer();

}  // namespace ddx::formats
