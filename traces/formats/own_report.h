// A report that ddx wrote: known, so that nobody wonders, and no evidence.
#pragma once

#include "traces/formats/importer.h"

namespace ddx::formats {

Importer own_report_importer();

}  // namespace ddx::formats
