#include "cli/commands/registry.h"

namespace ddx::cli {

const std::vector<Command>& commands() {
  static const std::vector<Command> kCommands{
      analyze_command(),
  };
  return kCommands;
}

}  // namespace ddx::cli
