// torchelastic: its table of failures, the line it prints of the first one, and restarts.
#pragma once

#include "traces/formats/log_events.h"
#include "traces/formats/process_log.h"

namespace ddx::formats {

bool read_elastic_line(const LogLine& line, ProcessSource& source, LogEventWriter& events);
void continue_elastic_table(const LogLine& line, ProcessSource& source, LogEventWriter& events);
void finish_elastic_table(ProcessSource& source, LogEventWriter& events);

}  // namespace ddx::formats
