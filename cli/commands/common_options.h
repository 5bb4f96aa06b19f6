// The options that every command takes, and the steps that commands share.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/finding.h"
#include "cli/app.h"
#include "cli/report/reporter.h"
#include "traces/model/evidence.h"

namespace ddx::cli {

// Mistakes of the command line that the option parser cannot see: status 2. Every other Error is of a file, or of
// evidence that does not suffice: status 3 (cli/app.cc).
using UsageError = RequestError;

// The options of a command that name files. One guard asks them all: no output may take the place of an input, or of
// another output.
struct FileOptions {
  std::vector<const CLI::Option*> inputs;
  std::vector<const CLI::Option*> outputs;
};

struct CommonOptions {
  FileOptions files;
  std::string format;
  std::string output;  // empty: standard output
  std::string fail_on = "error";
  bool no_color = false;
  bool quiet = false;
  bool verbose = false;
};

// What the common options do in one command. All are taken by every command, so that scripts may pass them to all; one
// that does nothing there has no text, and is not told in its help.
struct CommonHelp {
  std::string format;  // empty: that it is one of the formats
  std::string output = "Write the answer to this file instead of standard output";
  std::string fail_on;
  std::string quiet;
  std::string verbose;
  std::string no_color = "No colours, even on a terminal (NO_COLOR does the same)";
};

// `formats`: the first is the default. Has the command refuse what refuse_overwriting() does, once its line is read and
// before anything is done; its `files` must be complete by then.
void add_common_options(CLI::App& app, CommonOptions& options, const std::vector<std::string>& formats,
                        const CommonHelp& help);

// How evidence is to be read.
struct ReadOptions {
  std::vector<std::string> paths;
  std::string rank_from;
  unsigned threads = 0;
};
void add_read_options(CLI::App& app, ReadOptions& options, CommonOptions& common);

// Loads, with a line of progress on a terminal once it takes long. Throws UsageError on a bad --rank-from, and
// where an output is a file that was found in a folder and read as evidence; what ddx knows nothing of, such as an
// older report beside the evidence, may be replaced.
Evidence read_evidence(const ReadOptions& read, const CommonOptions& common, Console& console);

// nullopt: never.
std::optional<Severity> threshold(const CommonOptions& options);
RenderOptions render_options(const CommonOptions& options, const Console& console);

// Writes to --output or standard output. Throws UsageError where that fails.
void write_output(const std::string& text, const CommonOptions& options, Console& console);
// Writes the report as --format has it, and says with which status to end.
Exit finish(const Report& report, const CommonOptions& options, Console& console);

}  // namespace ddx::cli
