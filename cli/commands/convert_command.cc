#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/units.h"
#include "cli/commands/common_options.h"
#include "cli/commands/output_file.h"
#include "cli/commands/registry.h"
#include "cli/report/printable.h"
#include "traces/formats/ops.h"
#include "traces/formats/ops_text.h"
#include "traces/formats/perfetto_writer.h"

namespace ddx::cli {
namespace {

struct Options {
  CommonOptions common;
  ReadOptions read;
};

// "OUT.perfetto.json", or any other JSON: no other form of a trace is.
bool wants_timeline(const CommonOptions& options) {
  return options.format == "perfetto" || options.output.ends_with(".json") || options.output.ends_with(".perfetto");
}

void write_timeline(const Trace& trace, std::ostream& out, const CommonOptions& options, Console& console) {
  const formats::PerfettoCount count = formats::write_perfetto(trace, out);
  if (options.quiet) return;
  if (count.without_times > 0) {
    console.err << fmt::format("ddx: {} of {} operations have no recorded time: placed by order\n",
                               format_count(count.without_times), format_count(count.slices));
  }
  if (count.cut) {
    console.err << fmt::format("ddx: the timeline holds the first {} operations only\n", format_count(count.slices));
  }
}

void write_trace(const Trace& trace, const CommonOptions& options, Console& console) {
  const auto write = [&](std::ostream& out) {
    if (wants_timeline(options)) {
      write_timeline(trace, out, options, console);
    } else {
      formats::write_ops(trace, out);
    }
  };
  if (options.output == "-") {
    write(console.out);
    console.out << std::flush;
    if (!console.out) throw UsageError("the trace could not be written to standard output");
    return;
  }
  write_file(options.output, write);
  const std::size_t dot = options.output.rfind('.');
  const bool other = dot != std::string::npos && options.output.find('/', dot) == std::string::npos &&
                     !options.output.ends_with(".ops") && !options.output.ends_with(".txt") && !wants_timeline(options);
  if (other && !options.quiet) {
    console.err << fmt::format(
        "ddx: '{}' holds the ops notation, which is what is written unless a name ends in .json or "
        "--format perfetto is given\n",
        printable_line(options.output));
  }
}

// What was lost on the way in is missing in what comes out: say so where the result does not.
void tell_losses(const Evidence& evidence, Console& console) {
  for (const Diagnostic& diagnostic : evidence.diagnostics.entries()) {
    if (diagnostic.severity < DiagnosticSeverity::data_loss) continue;
    console.err << fmt::format("ddx: {} x {}: {}\n", diagnostic.count, printable_line(diagnostic.name),
                               printable_line(diagnostic.detail));
  }
}

// What the notation has no place for.
void tell_left_out(const Evidence& evidence, std::size_t unwritten, Console& console) {
  const std::size_t events = evidence.events.size();
  if (events > 0) {
    console.err << fmt::format("ddx: {} log event{} left out: {}\n", format_count(events), events == 1 ? "" : "s",
                               events == 1 ? "it is no operation" : "they are not operations");
  }
  if (unwritten > 0) {
    console.err << fmt::format("ddx: {} record{} left out: no rank is known (--rank-from REGEX says where it stands)\n",
                               format_count(unwritten), unwritten == 1 ? "" : "s");
  }
}

bool can_be_written(const RankRecord& record) {
  return record.rank && record.rank->value >= 0 && record.rank->value < static_cast<std::int64_t>(kMaxRanks);
}

Exit convert(const Options& options, Console& console) {
  if (options.common.output.empty()) {
    throw UsageError(
        "convert needs a place to write to: -o OUT.ops, -o OUT.perfetto.json, or -o - for standard output");
  }
  const Evidence evidence = read_evidence(options.read, options.common, console);
  if (!options.common.quiet) tell_losses(evidence, console);
  const std::vector<RankRecord>& ranks = evidence.trace.ranks;
  const auto written = static_cast<std::size_t>(std::count_if(ranks.begin(), ranks.end(), can_be_written));
  if (!options.common.quiet) tell_left_out(evidence, ranks.size() - written, console);
  if (written == 0) {
    console.err << "ddx: nothing to convert: no operations of a known rank in this evidence\n";
    return Exit::insufficient;
  }
  write_trace(evidence.trace, options.common, console);
  return Exit::fine;
}

Action prepare(CLI::App& app) {
  auto options = std::make_shared<Options>();
  add_read_options(app, options->read, options->common);
  CommonHelp help;
  help.output = "Where to write, which must be said: a file, or - for standard output";
  help.quiet = "Do not say what is left out";
  help.no_color.clear();
  add_common_options(app, options->common, {"ops", "perfetto"}, help);
  return [options](Console& console) { return convert(*options, console); };
}

}  // namespace

Command convert_command() {
  return {"convert", "Write the operations of dumps as text (the ops notation) or as a timeline (Perfetto)", prepare};
}

}  // namespace ddx::cli
