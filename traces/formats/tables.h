#pragma once

#include "traces/formats/importer.h"

namespace ddx::formats {

Importer launch_file_importer();
Importer address_table_importer();
Importer env_table_importer();

}  // namespace ddx::formats
