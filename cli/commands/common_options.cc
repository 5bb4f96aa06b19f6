#include "cli/commands/common_options.h"

#include <fmt/format.h>

#include <chrono>
#include <regex>

#include "cli/commands/number_options.h"
#include "cli/commands/output_file.h"
#include "traces/formats/loader.h"

namespace ddx::cli {
namespace {

constexpr const char* kReading = "How PATH is read";
constexpr unsigned kMaxThreads = 64;

std::regex rank_pattern(const std::string& text) {
  try {
    std::regex pattern(text);
    if (pattern.mark_count() == 0) {
      throw UsageError(fmt::format("--rank-from '{}' has no group: put the rank's digits in (...)", text));
    }
    return pattern;
  } catch (const std::regex_error& error) {
    throw UsageError(fmt::format("--rank-from '{}' is no regular expression: {}", text, error.what()));
  }
}

// "reading 12 of 1,024 files", shown only where somebody looks and waits.
class Progress {
 public:
  Progress(Console& console, bool shown) : console_(console), shown_(shown && console.err_is_terminal) {}
  ~Progress() {
    if (written_) console_.err << "\r\x1b[K" << std::flush;
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step(std::size_t done, std::size_t all) {
    if (!shown_) return;
    const auto now = std::chrono::steady_clock::now();
    if (now - start_ < std::chrono::milliseconds(500) || now - last_ < std::chrono::milliseconds(100)) return;
    last_ = now;
    written_ = true;
    console_.err << fmt::format("\r\x1b[Kreading {} of {} files", format_count(done), format_count(all)) << std::flush;
  }

 private:
  Console& console_;
  bool shown_;
  bool written_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_{};
};

std::vector<NamedFile> named_files(const std::vector<const CLI::Option*>& options) {
  std::vector<NamedFile> files;
  for (const CLI::Option* option : options) {
    for (const std::string& path : option->results()) {
      if (!path.empty()) files.push_back({option->get_name(), path});
    }
  }
  return files;
}

}  // namespace

void add_common_options(CLI::App& app, CommonOptions& options, const std::vector<std::string>& formats,
                        const CommonHelp& help) {
  options.format = formats.front();
  app.add_option("--format", options.format,
                 help.format.empty() ? fmt::format("How to answer: {}", fmt::join(formats, ", ")) : help.format)
      ->check(CLI::IsMember(formats))
      ->option_text("FORMAT");
  const auto tell = [](CLI::Option* option, const std::string& text) {
    option->description(text);
    if (text.empty()) option->group("");  // hides it
  };
  CLI::Option* output = app.add_option("-o,--output", options.output)->option_text("FILE");
  tell(output, help.output);
  options.files.outputs.push_back(output);
  tell(app.add_option("--fail-on", options.fail_on)
           ->check(CLI::IsMember(std::vector<std::string>{"error", "warning", "info", "never"}))
           ->option_text("SEVERITY"),
       help.fail_on);
  tell(app.add_flag("--no-color", options.no_color), help.no_color);
  tell(app.add_flag("-q,--quiet", options.quiet), help.quiet);
  tell(app.add_flag("-v,--verbose", options.verbose), help.verbose);
  app.set_help_flag("-h,--help", "This help");  // once more, so that it comes last
  app.parse_complete_callback([&files = options.files] {
    try {
      refuse_overwriting(named_files(files.outputs), named_files(files.inputs));
    } catch (const UsageError& error) {
      throw CLI::ValidationError(error.what());
    }
  });
}

void add_read_options(CLI::App& app, ReadOptions& options, CommonOptions& common) {
  common.files.inputs.push_back(
      app.add_option("PATH", options.paths,
                     "Files or folders of evidence: dumps, logs, ops files; folders are searched")
          ->required()
          ->option_text("..."));
  app.add_option("--rank-from", options.rank_from,
                 "Regular expression on a file's path; its first group is the rank that the file belongs to")
      ->option_text("REGEX")
      ->group(kReading);
  add_count(
      app, "--threads", {0, kMaxThreads},
      [&options](std::uint64_t threads) { options.threads = static_cast<unsigned>(threads); },
      "Threads that read files (0: one a core)")
      ->group(kReading);
}

Evidence read_evidence(const ReadOptions& read, const CommonOptions& common, Console& console) {
  formats::LoadOptions options;
  options.threads = read.threads;
  if (!read.rank_from.empty()) options.import.rank_from = rank_pattern(read.rank_from);
  Progress progress(console, !common.quiet);
  options.progress = [&progress](std::size_t done, std::size_t all) { progress.step(done, all); };
  Evidence evidence = formats::load(read.paths, options);
  std::vector<NamedFile> found;
  for (const Input& input : evidence.inputs) {
    if (input.format != "unknown") found.push_back({input.format, input.path});
  }
  refuse_overwriting(named_files(common.files.outputs), found);
  return evidence;
}

std::optional<Severity> threshold(const CommonOptions& options) {
  if (options.fail_on == "error") return Severity::error;
  if (options.fail_on == "warning") return Severity::warning;
  if (options.fail_on == "info") return Severity::info;
  return std::nullopt;
}

RenderOptions render_options(const CommonOptions& options, const Console& console) {
  RenderOptions render;
  render.color = console.out_is_terminal && options.output.empty() && !options.no_color && !console.no_color;
  render.width = console.width;
  render.quiet = options.quiet;
  render.verbose = options.verbose;
  render.fail_on = threshold(options);
  return render;
}

void write_output(const std::string& text, const CommonOptions& options, Console& console) {
  if (options.output.empty() || options.output == "-") {
    console.out << text << std::flush;
    if (!console.out) throw UsageError("the answer could not be written to standard output");
    return;
  }
  if (options.output.ends_with(".svg") && options.format != "svg") {
    throw UsageError(fmt::format("'{}' would be no drawing: {} (predict --scale draws)", options.output,
                                 options.format == "text" ? "the answer is text" : "--format " + options.format));
  }
  write_file(options.output, [&text](std::ostream& file) { file << text; });
}

Exit finish(const Report& report, const CommonOptions& options, Console& console) {
  write_output(find_reporter(options.format)->render(report, render_options(options, console)), options, console);
  if (fails(report, threshold(options))) return Exit::findings;
  return report.verdict == Verdict::inconclusive ? Exit::insufficient : Exit::fine;
}

}  // namespace ddx::cli
