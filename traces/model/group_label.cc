#include "traces/model/group_label.h"

#include <fmt/format.h>

namespace ddx {

std::string group_label(const Trace& trace, const Communicator& communicator) {
  const std::string name(trace.text(communicator.name));
  std::string description(trace.text(communicator.description));
  if (description.empty() || description == "undefined" || description == name) return name.empty() ? "?" : name;
  if (description == "default_pg") return description;
  return name.empty() ? description : fmt::format("{} ({})", description, name);
}

}  // namespace ddx
