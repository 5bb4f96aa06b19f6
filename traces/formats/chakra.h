// Chakra execution traces (mlcommons/chakra, schema/protobuf/et_def.proto): one file a rank, a graph of what it does.
#pragma once

#include "traces/formats/importer.h"

namespace ddx::formats {

// The whole program of the rank that the file's name ends in (NAME.RANK.et). Computations become `compute` in the order
// of dependencies; receives and collectives are asynchronous, with a `wait` before the first that depends on them;
// sends are asynchronous and never waited for, since they end locally in this format. Sizes are bytes: u8.
Importer chakra_importer();

}  // namespace ddx::formats
