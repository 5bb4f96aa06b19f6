#include <memory>

#include "cli/commands/common_options.h"
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
};

Exit predict_collectives(const Options& options, Console& console) {
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
  if (options.scale.scale.empty()) {
    throw UsageError("predict needs something to go by: PATH with --scale RANKS,..., or --collectives RUNS.json");
  }
  if (options.read.paths.empty()) throw UsageError("--scale needs a trace: PATH is missing");
  return predict_scale(options.scale, options.read, options.common, console);
}

Action prepare(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("--collectives", options->collectives,
                 "A JSON file of collective benchmarks: say what each size of each run takes")
      ->option_text("RUNS.json");
  add_read_options(app, options->read);
  app.get_option("PATH")->required(false);
  add_scale_options(app, options->scale);
  CommonHelp help;
  help.quiet = "One line a run";
  help.verbose = "Why NCCL chose as it did: every algorithm and protocol, for the largest size of each run";
  help.no_color = "";
  add_common_options(app, options->common, {"text", "json"}, help);
  return [options](Console& console) { return predict(*options, console); };
}

}  // namespace

Command predict_command() {
  return {"predict", "Say how long a job takes on other numbers of ranks, and collectives on a cluster", prepare};
}

}  // namespace ddx::cli
