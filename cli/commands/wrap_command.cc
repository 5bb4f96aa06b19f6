#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "cli/commands/common_options.h"
#include "cli/commands/number_options.h"
#include "cli/commands/output_file.h"
#include "cli/commands/registry.h"
#include "cli/commands/run_programs.h"
#include "cli/report/printable.h"
#include "live/launch/wrap.h"

namespace ddx::cli {
namespace {

constexpr const char* kWatching = "When the job stands still";
constexpr const char* kCapturing = "What is captured";
constexpr const char* kShowing = "What is shown";
constexpr const char* kNodes = "Several nodes";

struct Options {
  CommonOptions common;
  live::WrapOptions wrap;
  std::string on_hang = "report";
};

// "120", "120s", "2m", "500ms", "1h"; nothing else.
std::optional<Nanos> duration(const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value, std::chars_format::fixed);
  if (error != std::errc()) return std::nullopt;
  const std::string unit(at, end);
  const double nanos = unit == "ms"                   ? 1e6
                       : unit.empty() || unit == "s"  ? 1e9
                       : unit == "m" || unit == "min" ? 60e9
                       : unit == "h"                  ? 3600e9
                                                      : 0;
  if (nanos == 0 || value <= 0 || value * nanos > 1e9 * 86400 * 366) return std::nullopt;
  return static_cast<Nanos>(value * nanos);
}

void add_duration(CLI::App& app, const std::string& name, Nanos& into, const std::string& help) {
  app.add_option_function<std::string>(
         name,
         [&into, name](const std::string& text) {
           const auto value = duration(text);
           if (!value)
             throw CLI::ValidationError(fmt::format("{} '{}': expected a time such as 90s, 5m or 500ms", name, text));
           into = *value;
         },
         help)
      ->option_text("TIME")
      ->group(kWatching);
}

// As `ddx analyze FOLDER` has it; the whole of it in FOLDER/report.json.
live::Judgement judge_folder(const std::string& folder, const CommonOptions& common, const Console& console) {
  ReadOptions read;
  read.paths = {folder};
  CommonOptions quiet = common;
  quiet.quiet = true;
  Console nowhere{.out = console.out, .err = console.err};
  Evidence evidence = read_evidence(read, quiet, nowhere);
  ProgramRun run = run_programs(evidence);
  std::vector<Finding> findings = judge(evidence, run);
  const Report report = make_report("wrap", evidence, std::move(findings));
  RenderOptions render = render_options(common, console);
  render.quiet = false;
  render.color = console.err_is_terminal && common.output.empty() && !common.no_color && !console.no_color;
  write_file(folder + "/report.json", [&](std::ostream& file) { file << render_json(report, render); });
  live::Judgement judgement;
  judgement.is_error = fails(report, threshold(common));
  judgement.is_clean = report.verdict == Verdict::clean;
  judgement.is_silent = report.verdict == Verdict::clean || report.verdict == Verdict::inconclusive;
  for (const Finding& finding : report.findings) {
    judgement.gist += fmt::format("{} {} {}; ", finding.code, finding.ranks.label(), printable_line(finding.summary));
  }
  judgement.text = find_reporter(common.format)->render(report, render);
  if (!common.output.empty() && common.output != "-") {
    const std::string text = std::exchange(judgement.text, {});
    write_file(common.output, [&text](std::ostream& file) { file << text; });
  }
  return judgement;
}

void check_nodes(const live::WrapOptions& wrap) {
  if (wrap.nodes > 1 && wrap.folder.empty()) throw UsageError("--nodes takes --out: a folder that all nodes see");
  if (wrap.node_rank >= wrap.nodes) {
    throw UsageError(
        fmt::format("--node-rank {} is none of --nodes {}: they count from 0", wrap.node_rank, wrap.nodes));
  }
}

Exit wrap(Options& options, Console& console) {
  live::WrapOptions& wrap = options.wrap;
  check_nodes(wrap);
  wrap.quiet = options.common.quiet;
  wrap.on_hang = options.on_hang == "kill" ? live::OnHang::kill : live::OnHang::report;
  wrap.status_line = console.out_is_terminal;
  wrap.width = console.width;
  wrap.analyze = [&](const std::string& folder) { return judge_folder(folder, options.common, console); };
  console.out.flush();
  console.err.flush();
  return static_cast<Exit>(live::wrap(wrap));
}

void add_options(CLI::App& app, Options& options) {
  live::WrapOptions& wrap = options.wrap;
  app.add_option("COMMAND", wrap.command, "The job's command, as it is started without ddx, behind --")
      ->required()
      ->option_text("...");
  app.add_option("--out", wrap.folder, "The folder to keep everything in, made or empty (ddx-wrap-DATE-TIME-PID)")
      ->option_text("DIR");
  add_duration(app, "--hang-after", wrap.hang_after,
               "Look into the job once a call that ranks have entered has not moved for so long (120s)");
  app.add_option("--on-hang", options.on_hang, "Then: report (tell, and leave the job alone) or kill (end it as well)")
      ->check(CLI::IsMember(std::vector<std::string>{"report", "kill"}))
      ->option_text("WHAT")
      ->group(kWatching);
  add_duration(app, "--grace", wrap.grace, "End the job once ranks have waited so long for one that died (30s)");
  add_count(
      app, "--only-rank", {0, 1U << 30},
      [&wrap](std::uint64_t rank) { wrap.only_rank = static_cast<std::int32_t>(rank); },
      "Show the output of this rank alone; all ranks' is kept")
      ->group(kShowing);
  add_count(
      app, "--nodes", {1, 1U << 20}, [&wrap](std::uint64_t nodes) { wrap.nodes = static_cast<std::uint32_t>(nodes); },
      "Of so many nodes, each with a wrap of its own over one DIR (1)")
      ->group(kNodes);
  add_count(
      app, "--node-rank", {0, 1U << 20},
      [&wrap](std::uint64_t node) { wrap.node_rank = static_cast<std::uint32_t>(node); },
      "This is node K, from 0, and keeps all in DIR/node_K; node 0 analyzes what all have kept")
      ->group(kNodes);
  app.add_flag_callback(
         "--no-torch", [&wrap] { wrap.capture.torch = false; }, "Leave PyTorch alone")
      ->group(kCapturing);
  app.add_flag_callback(
         "--no-nccl", [&wrap] { wrap.capture.nccl = false; }, "Leave NCCL alone")
      ->group(kCapturing);
  app.add_flag("--dlopen-hooks", wrap.capture.dlopen_hooks, "See programs that load NCCL themselves, by dlopen")
      ->group(kCapturing);
}

Action prepare(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.positionals_at_end();
  add_options(app, *options);
  CommonHelp help;
  help.output = "Write the report to this file instead of standard error";
  help.fail_on =
      "Where the job itself ends with 0, exit with 1 on findings of this severity or above: error (the "
      "default), warning, info, never";
  help.quiet = "Show nothing of the job's output; it is kept";
  help.verbose = "Every finding in full, every piece of evidence";
  add_common_options(app, options->common, reporter_names(), help);
  app.footer(
      "Exit status: that of the job (128 + N where signal N ended it); 1 where the job ended with 0 and there is a "
      "finding\n"
      "at or above --fail-on, or where wrap ended the job; 2 wrong usage; 126, 127 where COMMAND cannot be run.");
  return [options](Console& console) { return wrap(*options, console); };
}

}  // namespace

Command wrap_command() {
  return {"wrap", "Run a job as it is, capture what its ranks do, and explain its hang", prepare};
}

}  // namespace ddx::cli
