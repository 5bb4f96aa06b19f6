#include "cli/commands/registry.h"

namespace ddx::cli {

const std::vector<Command>& commands() {
  static const std::vector<Command> kCommands{
      analyze_command(), info_command(),    explain_command(), convert_command(),
      sim_command(),     predict_command(), wrap_command(),
  };
  return kCommands;
}

}  // namespace ddx::cli
