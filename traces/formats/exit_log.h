// What shells, launchers, Slurm, Kubernetes and the kernel say of a process that ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "traces/formats/log_events.h"
#include "traces/formats/process_log.h"

namespace ddx::formats {

bool read_exit_line(const LogLine& line, ProcessSource& source, ProcessState& state, LogEventWriter& events);
// The exit code behind mpirun's "Process name".
void continue_mpi_exit(const LogLine& line, ProcessSource& source, LogEventWriter& events);

// The signal that a text names first: "Segmentation fault" -> 11.
std::optional<std::int64_t> signal_of(std::string_view text);

}  // namespace ddx::formats
