#pragma once

#include "traces/formats/importer.h"

namespace ddx::formats {

Importer ops_importer();

}  // namespace ddx::formats
