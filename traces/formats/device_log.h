// What the driver says of a GPU in the kernel's log: "NVRM: Xid (PCI:0000:9d:00): 79, pid=4711, name=python, GPU has
// fallen off the bus."
#pragma once

#include "traces/formats/log_events.h"

namespace ddx::formats {

// True where the line was such a one.
bool read_device_line(const LogLine& line, LogEventWriter& events);

}  // namespace ddx::formats
