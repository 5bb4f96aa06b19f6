// processes.json: every process of the job that was seen, and how it ended.
#pragma once

#include <string>

#include "live/launch/process_table.h"

namespace ddx::live {

// `memory_kills`: of the job, by the kernel. Where they are no fewer than the processes that were killed and not by
// wrap, it was they. False where it could not be written.
bool write_process_report(const std::string& folder, const ProcessTable& table, std::uint64_t memory_kills);

}  // namespace ddx::live
