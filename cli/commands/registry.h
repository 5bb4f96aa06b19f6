// Command: one of ddx's commands. The list of all of them is registry.cc; a new one costs its own file, a test, and one
// line there.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "cli/app.h"

namespace ddx::cli {

using Action = std::function<Exit(Console&)>;

struct Command {
  std::string name;
  std::string help;
  // Adds the command's options to `app` and gives what is to be done once they are parsed.
  Action (*prepare)(CLI::App& app);
};

const std::vector<Command>& commands();

Command analyze_command();
Command info_command();
Command explain_command();
Command convert_command();
Command sim_command();
Command predict_command();
Command wrap_command();

}  // namespace ddx::cli
