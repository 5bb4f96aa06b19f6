// Lines about connections and names: the store's sockets, gloo, the resolver.
#pragma once

#include "traces/formats/log_events.h"

namespace ddx::formats {

// True where the line was one of these.
bool read_network_line(const LogLine& line, LogEventWriter& events);

}  // namespace ddx::formats
