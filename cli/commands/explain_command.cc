#include <fmt/format.h>

#include <memory>

#include "cli/closest.h"
#include "cli/commands/common_options.h"
#include "cli/commands/registry.h"
#include "cli/explain_pages.h"
#include "cli/report/explain_report.h"
#include "cli/report/printable.h"

namespace ddx::cli {
namespace {

struct Options {
  CommonOptions common;
  std::string code;
};

std::string no_such_code(const std::string& code) {
  std::vector<std::string> codes;
  for (const ExplainSection& section : explain_sections()) {
    for (const ExplainPage& page : section.pages) codes.emplace_back(page.code);
  }
  std::string text = fmt::format("there is no finding '{}'", printable_line(code));
  const std::vector<std::string> near = closest(code, codes);
  if (near.empty()) return text + "; 'ddx explain' lists them all";
  return text + fmt::format("; did you mean: {}", fmt::join(near, ", "));
}

// "MISMATCH_SIZE" means "mismatch-size".
std::string normal(std::string code) {
  for (char& c : code) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '_') c = '-';
  }
  return code;
}

Exit explain(const Options& options, Console& console) {
  const RenderOptions render = render_options(options.common, console);
  const bool json = options.common.format == "json";
  if (options.code.empty()) {
    write_output(json ? explain_list_json() : explain_list_text(render), options.common, console);
    return Exit::fine;
  }
  const ExplainPage* page = find_page(normal(options.code));
  if (page == nullptr) throw UsageError(no_such_code(options.code));
  write_output(json ? explain_page_json(*page) : explain_page_text(*page, render), options.common, console);
  return Exit::fine;
}

Action prepare(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("CODE", options->code, "A finding's code, as reports show it; none: list all");
  CommonHelp help;
  help.quiet = "What it means and no more; of the list, the codes alone";
  add_common_options(app, options->common, {"text", "json"}, help);
  return [options](Console& console) { return explain(*options, console); };
}

}  // namespace

Command explain_command() { return {"explain", "Say what a finding means and what to do about it", prepare}; }

}  // namespace ddx::cli
