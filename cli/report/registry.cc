#include "cli/report/reporter.h"

namespace ddx::cli {

const std::vector<Reporter>& reporters() {
  static const std::vector<Reporter> kReporters{
      {"text", render_text},   {"json", render_json},     {"sarif", render_sarif},
      {"junit", render_junit}, {"github", render_github},
  };
  return kReporters;
}

std::vector<std::string> reporter_names() {
  std::vector<std::string> names;
  for (const Reporter& reporter : reporters()) names.emplace_back(reporter.name);
  return names;
}

const Reporter* find_reporter(std::string_view name) {
  for (const Reporter& reporter : reporters()) {
    if (reporter.name == name) return &reporter;
  }
  return nullptr;
}

}  // namespace ddx::cli
