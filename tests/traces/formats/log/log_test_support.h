// Reads a text as if it were a file, and picks out facts.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "traces/formats/log.h"

namespace ddx::formats {

inline Evidence read_as(const Importer& importer, const std::string& text, const std::string& path,
                        const ImportOptions& options = {}) {
  Evidence evidence;
  Input input;
  input.path = path;
  input.format = importer.name;
  evidence.inputs.push_back(input);
  importer.read({path, text}, options, evidence);
  return evidence;
}

inline Evidence read_log_text(const std::string& text, const std::string& path = "job.log",
                              const ImportOptions& options = {}) {
  return read_as(log_importer(), text, path, options);
}

// The events that hold a `Fact`, in order.
template <class Fact>
std::vector<LogEvent> events_of(const Evidence& evidence) {
  std::vector<LogEvent> found;
  for (const LogEvent& event : evidence.events) {
    if (std::holds_alternative<Fact>(event.fact)) found.push_back(event);
  }
  return found;
}

template <class Fact>
std::vector<Fact> facts_of(const Evidence& evidence) {
  std::vector<Fact> found;
  for (const LogEvent& event : events_of<Fact>(evidence)) found.push_back(std::get<Fact>(event.fact));
  return found;
}

// The one fact of its kind in one text; a default one (which the test's values differ from) where there is not just
// one.
template <class Fact>
Fact only(const std::string& text) {
  const auto found = facts_of<Fact>(read_log_text(text + "\n"));
  return found.size() == 1 ? found.front() : Fact{};
}

}  // namespace ddx::formats
