#include <memory>

#include "cli/commands/common_options.h"
#include "cli/commands/measured_table.h"
#include "cli/commands/predict_scale.h"
#include "cli/commands/registry.h"
#include "cli/report/predicted_runs.h"
#include "traces/formats/file_bytes.h"

namespace ddx::cli {
namespace {

struct Options {
  CommonOptions common;
  ReadOptions read;
  ScaleOptions scale;
  std::string collectives;
  std::string measured;
};

Exit predict_collectives(const Options& options, Console& console) {
  if (options.common.format != "text" && options.common.format != "json") {
    throw UsageError("--collectives gives figures and no findings: --format text or json");
  }
  const formats::FileBytes file(options.collectives);
  const std::vector<sim::CollectiveRun> runs = sim::read_runs(file.view(), options.collectives);
  const RenderOptions render = render_options(options.common, console);
  write_output(options.common.format == "json" ? predicted_runs_json(runs)
                                               : predicted_runs_text(runs, render.quiet, render.verbose),
               options.common, console);
  return Exit::fine;
}

Exit predict(const Options& options, Console& console) {
  if (!options.collectives.empty()) return predict_collectives(options, console);
  if (!options.measured.empty()) return judge_measured_table(options.measured, options.common, console);
  if (options.read.paths.empty()) throw UsageError("--scale needs a trace: PATH is missing");
  return predict_scale(options.scale, options.read, options.common, console);
}

Action prepare(CLI::App& app) {
  auto options = std::make_shared<Options>();
  FileOptions& files = options->common.files;
  CLI::Option_group* what = app.add_option_group("what", "One of these");
  files.inputs.push_back(
      what->add_option("--collectives", options->collectives,
                       "A JSON file of collective benchmarks: say what each size of each run takes"));
  files.inputs.push_back(what->add_option(
      "--measured", options->measured,
      "A table of your own runs at several sizes (CSV): say how they scale, and what they do not settle"));
  what->add_option("--scale", options->scale.scale, "Predict the step of the trace at PATH on so many ranks: 8,16,64")
      ->option_text("RANKS,...");
  what->require_option(1);
  add_read_options(app, options->read, options->common);
  app.get_option("PATH")->required(false);
  add_scale_options(app, options->scale, files);
  CommonHelp help;
  help.fail_on = "With --measured: exit with 1 on findings of this severity or above: error, warning, info, never";
  help.quiet = "One line a run, or a finding";
  help.verbose = "Why NCCL chose as it did, for the largest size of each run; every finding in full";
  add_common_options(app, options->common, reporter_names(), help);
  return [options](Console& console) { return predict(*options, console); };
}

}  // namespace

Command predict_command() {
  return {"predict", "Say how long a job takes on other numbers of ranks, and how measured runs scale", prepare};
}

}  // namespace ddx::cli
