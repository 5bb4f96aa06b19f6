// Reporter: one way to print a Report. The list of all of them is registry.cc.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/report/report.h"

namespace ddx::cli {

struct RenderOptions {
  bool color = false;
  std::size_t width = 100;  // columns
  bool quiet = false;
  bool verbose = false;
  std::optional<Severity> fail_on = Severity::error;  // what counts as a failure where a format knows such a thing
};

struct Reporter {
  std::string_view name;  // as --format takes it
  std::string (*render)(const Report& report, const RenderOptions& options);
};

const std::vector<Reporter>& reporters();
std::vector<std::string> reporter_names();
// Null where there is none of this name.
const Reporter* find_reporter(std::string_view name);

std::string render_text(const Report& report, const RenderOptions& options);
std::string render_json(const Report& report, const RenderOptions& options);
std::string render_sarif(const Report& report, const RenderOptions& options);
std::string render_junit(const Report& report, const RenderOptions& options);
std::string render_github(const Report& report, const RenderOptions& options);

}  // namespace ddx::cli
