// The log importer: any text that a job, its launcher, its libraries or its kernel printed, all kinds of lines mixed.
#pragma once

#include "traces/formats/importer.h"

namespace ddx::formats {

Importer log_importer();

}  // namespace ddx::formats
