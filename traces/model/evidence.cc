#include "traces/model/evidence.h"

#include <utility>

namespace ddx {

const Input* Evidence::input(std::optional<InputId> id) const {
  return id && id->value < inputs.size() ? &inputs[id->value] : nullptr;
}

std::string Evidence::path(std::optional<InputId> id) const {
  const Input* known = input(id);
  return known ? known->path : "";
}

void Evidence::merge(Evidence&& other) {
  const auto shift = static_cast<std::uint32_t>(inputs.size());
  for (Input& input : other.inputs) inputs.push_back(std::move(input));
  for (LogEvent& event : other.events) {
    event.input = InputId(event.input.value + shift);
    events.push_back(std::move(event));
  }
  for (DependencyCycle& cycle : other.cycles) {
    cycle.input = InputId(cycle.input.value + shift);
    cycles.push_back(std::move(cycle));
  }
  for (GroupList& list : other.group_lists) {
    list.input = InputId(list.input.value + shift);
    group_lists.push_back(std::move(list));
  }
  trace.merge(std::move(other.trace), shift);
  diagnostics.merge(other.diagnostics);
}

}  // namespace ddx
