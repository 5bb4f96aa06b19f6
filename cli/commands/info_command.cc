#include <memory>

#include "cli/commands/common_options.h"
#include "cli/commands/registry.h"
#include "cli/report/inventory.h"

namespace ddx::cli {
namespace {

struct Options {
  CommonOptions common;
  ReadOptions read;
};

Exit info(const Options& options, Console& console) {
  const Inventory inventory = take_inventory(read_evidence(options.read, options.common, console));
  const RenderOptions render = render_options(options.common, console);
  write_output(options.common.format == "json"
                   ? render_info_json(inventory)
                   : render_info_text(inventory, render.width, render.color, render.quiet, render.verbose),
               options.common, console);
  return inventory.records > 0 || !inventory.events.empty() ? Exit::fine : Exit::insufficient;
}

Action prepare(CLI::App& app) {
  auto options = std::make_shared<Options>();
  add_read_options(app, options->read, options->common);
  CommonHelp help;
  help.quiet = "Files and ranks only";
  help.verbose = "Every file, every group, every list in full";
  add_common_options(app, options->common, {"text", "json"}, help);
  return [options](Console& console) { return info(*options, console); };
}

}  // namespace

Command info_command() { return {"info", "Say what is in evidence: ranks, groups, operations, holes", prepare}; }

}  // namespace ddx::cli
