// Whether a file is a log: by its name, and by the lines that it holds.
#pragma once

#include <string>
#include <string_view>

#include "traces/formats/importer.h"

namespace ddx::formats {

Sniff sniff_log(const std::string& path, std::string_view head);

// Whether a name is a log's by its ending, also where older logs are kept: "job.log", "job.log.1", "slurm-7.out.old".
bool has_log_extension(const std::string& path);

// Whether a text holds a line that the log importer reads; progress alone does not make a text a log.
bool holds_a_known_line(std::string_view text);

}  // namespace ddx::formats
