// processes.json: every process of the job that was seen, and how it ended.
#pragma once

#include <string>

#include "live/launch/process_table.h"

namespace ddx::live {

// False where it could not be written.
bool write_process_report(const std::string& folder, const ProcessTable& table);

}  // namespace ddx::live
