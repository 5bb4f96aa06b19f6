#include <memory>
#include <utility>

#include "cli/commands/common_options.h"
#include "cli/commands/registry.h"
#include "cli/commands/run_programs.h"

namespace ddx::cli {
namespace {

struct Options {
  CommonOptions common;
  ReadOptions read;
};

Exit analyze(const Options& options, Console& console) {
  Evidence evidence = read_evidence(options.read, options.common, console);
  ProgramRun run = run_programs(evidence);
  std::vector<Finding> findings = judge(evidence, run);
  return finish(make_report("analyze", evidence, std::move(findings)), options.common, console);
}

Action prepare(CLI::App& app) {
  auto options = std::make_shared<Options>();
  add_read_options(app, options->read, options->common);
  CommonHelp help;
  help.fail_on = "Exit with 1 on findings of this severity or above: error (the default), warning, info, never";
  help.quiet = "One line a finding";
  help.verbose = "Every finding in full, every piece of evidence";
  add_common_options(app, options->common, reporter_names(), help);
  return [options](Console& console) { return analyze(*options, console); };
}

}  // namespace

Command analyze_command() { return {"analyze", "Say what went wrong in a job, and which rank is at fault", prepare}; }

}  // namespace ddx::cli
