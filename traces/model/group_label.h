// What a communicator is called when people read of it.
#pragma once

#include <string>

#include "traces/model/trace.h"

namespace ddx {

// "default_pg", "mesh_tp (7)": the description that PyTorch gave it, and the name where that is not all. "?": neither.
std::string group_label(const Trace& trace, const Communicator& communicator);

}  // namespace ddx
