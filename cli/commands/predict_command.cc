#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

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

// What goes with --scale alone would be left out in silence beside the others.
void refuse_paths(const Options& options, std::string_view option) {
  if (options.read.paths.empty()) return;
  throw UsageError(fmt::format("{} takes one file, and '{}' is another: a PATH goes with --scale", option,
                               options.read.paths.front()));
}

Exit predict(const Options& options, Console& console) {
  if (options.common.format == "svg" && options.scale.scale.empty()) {
    throw UsageError("--format svg draws what --scale predicts, nothing else");
  }
  if (!options.collectives.empty()) {
    refuse_paths(options, "--collectives");
    return predict_collectives(options, console);
  }
  if (!options.measured.empty()) {
    refuse_paths(options, "--measured");
    return judge_measured_table(options.measured, options.common, console);
  }
  if (options.scale.scale.empty()) {
    throw UsageError(
        "predict needs one of these: --scale RANKS,... with a trace, --measured TABLE.csv, --collectives RUNS.json");
  }
  if (options.read.paths.empty()) throw UsageError("--scale needs a trace: PATH is missing");
  return predict_scale(options.scale, options.read, options.common, console);
}

CLI::Option* add_kinds(CLI::App& app, Options& options) {
  CLI::Option* scale =
      app.add_option("--scale", options.scale.scale, "The step of the trace at PATH on so many ranks: 8,16,64")
          ->option_text("RANKS,...");
  CLI::Option* measured =
      app.add_option("--measured", options.measured, "How a table of your own runs scales, and what it does not settle")
          ->option_text("TABLE.csv");
  CLI::Option* collectives =
      app.add_option("--collectives", options.collectives, "What each size of each collective benchmark takes")
          ->option_text("RUNS.json");
  scale->excludes(measured)->excludes(collectives);
  measured->excludes(collectives);
  for (CLI::Option* option : {scale, measured, collectives}) option->group("What to predict, one of these");
  options.common.files.inputs.insert(options.common.files.inputs.end(), {measured, collectives});
  return scale;
}

Action prepare(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::Option* scale = add_kinds(app, *options);
  add_scale_options(app, options->scale, options->common.files, scale);
  add_read_options(app, options->read, options->common);
  app.get_option("PATH")->required(false)->description("With --scale: files or folders of evidence, as of ddx sim");
  CommonHelp help;
  help.format = "How to answer: text, json; with --scale also svg, with --measured sarif, junit, github";
  help.output = "Write the answer to this file; with --scale, FILE.svg is a drawing";
  help.fail_on =
      "With --measured: exit with 1 on findings of this severity or above: error (the default), warning, info, never";
  help.quiet = "One line a run, or a finding";
  help.verbose = "Why NCCL chose as it did, for the largest size of each run; every finding in full";
  std::vector<std::string> forms = reporter_names();
  forms.emplace_back("svg");
  add_common_options(app, options->common, forms, help);
  app.footer(
      "Examples:\n"
      "  ddx predict job.ops --scale 8,64,512 --cluster dgx-h100 --plot scaling.svg\n"
      "  ddx predict --measured runs.csv");
  return [options](Console& console) { return predict(*options, console); };
}

}  // namespace

Command predict_command() {
  return {"predict", "Say how long a job takes on other numbers of ranks, and how measured runs scale", prepare};
}

}  // namespace ddx::cli
