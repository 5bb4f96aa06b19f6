#include <fmt/format.h>

#include <fstream>
#include <memory>

#include "cli/commands/common_options.h"
#include "cli/commands/registry.h"
#include "cli/report/printable.h"
#include "traces/formats/ops.h"

namespace ddx::cli {
namespace {

struct Options {
  CommonOptions common;
  ReadOptions read;
};

void write_trace(const Trace& trace, const CommonOptions& options, Console& console) {
  if (options.output == "-") {
    formats::write_ops(trace, console.out);
    console.out << std::flush;
    if (!console.out) throw UsageError("the trace could not be written to standard output");
    return;
  }
  std::ofstream file(options.output, std::ios::binary | std::ios::trunc);
  formats::write_ops(trace, file);
  file << std::flush;
  if (!file) throw UsageError(fmt::format("the trace could not be written to '{}'", options.output));
}

// What was lost on the way in is missing in what comes out: say so where the result does not.
void tell_losses(const Evidence& evidence, Console& console) {
  for (const Diagnostic& diagnostic : evidence.diagnostics.entries()) {
    if (diagnostic.severity < DiagnosticSeverity::data_loss) continue;
    console.err << fmt::format("ddx: {} x {}: {}\n", diagnostic.count, printable_line(diagnostic.name),
                               printable_line(diagnostic.detail));
  }
}

Exit convert(const Options& options, Console& console) {
  if (options.common.output.empty()) {
    throw UsageError("convert needs a place to write to: -o OUT.ops, or -o - for standard output");
  }
  const Evidence evidence = read_evidence(options.read, options.common, console);
  if (!options.common.quiet) tell_losses(evidence, console);
  if (evidence.trace.ranks.empty()) {
    console.err << "ddx: nothing to convert: no operations in this evidence\n";
    return Exit::insufficient;
  }
  write_trace(evidence.trace, options.common, console);
  return Exit::fine;
}

Action prepare(CLI::App& app) {
  auto options = std::make_shared<Options>();
  add_read_options(app, options->read);
  add_common_options(app, options->common, {"ops"});
  return [options](Console& console) { return convert(*options, console); };
}

}  // namespace

Command convert_command() { return {"convert", "Write the operations of dumps as text (the ops notation)", prepare}; }

}  // namespace ddx::cli
