#pragma once

#include "traces/formats/importer.h"

namespace ddx::formats {

Importer flight_recorder_pickle_importer();
Importer flight_recorder_json_importer();

}  // namespace ddx::formats
