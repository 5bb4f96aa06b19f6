#include "cli/app.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <new>

#include "base/error.h"
#include "cli/closest.h"
#include "cli/commands/common_options.h"
#include "cli/commands/registry.h"
#include "cli/report/printable.h"

namespace ddx::cli {
namespace {

std::string footer() {
  return "Exit status: 0 nothing at or above --fail-on, 1 findings at or above it, 2 wrong usage,\n"
         "3 the evidence does not suffice to judge.\n"
         "'ddx COMMAND --help' says more; 'ddx explain' lists what ddx can find.";
}

bool is_command(const std::string& name) {
  return std::any_of(commands().begin(), commands().end(), [&name](const Command& c) { return c.name == name; });
}

// A mistyped command is by far the commonest mistake: name what may have been meant.
std::string mistake(const std::string& what, const std::vector<std::string>& arguments) {
  std::string text = "ddx: " + printable_line(what) + "\n";
  const bool known = !arguments.empty() && is_command(arguments.front());
  if (!known && !arguments.empty() && !arguments.front().starts_with('-')) {
    text = "ddx: there is no command '" + printable_line(arguments.front()) + "'\n";
    std::vector<std::string> names;
    for (const Command& command : commands()) names.push_back(command.name);
    const std::vector<std::string> near = closest(arguments.front(), names);
    if (!near.empty()) text += "Did you mean: ddx " + near.front() + "\n";
  }
  return text + "Try: ddx " + (known ? arguments.front() + " --help" : "--help") + "\n";
}

// "help" and "help analyze", as other programs have it.
std::vector<std::string> with_help_as_option(std::vector<std::string> arguments) {
  if (arguments.empty() || arguments.front() != "help") return arguments;
  arguments.erase(arguments.begin());
  // An option behind it, or a command of no such name, is told as it would be without "help".
  if (arguments.empty() || is_command(arguments.front())) arguments.emplace_back("--help");
  return arguments;
}

Exit run_action(const Action& action, Console& console) {
  try {
    return action(console);
  } catch (const RequestError& error) {
    console.err << "ddx: " << printable_line(error.what()) << '\n';
    return Exit::wrong_usage;
  } catch (const std::bad_alloc&) {
    console.err << "ddx: not enough memory for this evidence: give fewer files\n";
  } catch (const std::exception& error) {
    console.err << "ddx: " << printable_line(error.what()) << '\n';
  }
  return Exit::insufficient;
}

}  // namespace

Exit run(const std::vector<std::string>& given, Console& console) {
  const std::vector<std::string> arguments = with_help_as_option(given);
  CLI::App app("ddx finds out why a distributed training job hangs", "ddx");
  app.set_version_flag("--version", std::string("ddx ") + DDX_VERSION);
  app.require_subcommand(1);
  app.footer(footer());
  Action action;
  for (const Command& command : commands()) {
    CLI::App* sub = app.add_subcommand(command.name, command.help);
    Action prepared = command.prepare(*sub);
    sub->callback([&action, prepared] { action = prepared; });
  }
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // as CLI11 takes them
    app.parse(reversed);
  } catch (const CLI::Success& asked) {  // --help, --version
    app.exit(asked, console.out, console.err);
    return Exit::fine;
  } catch (const CLI::Error& error) {
    console.err << mistake(error.what(), arguments);
    return Exit::wrong_usage;
  }
  return run_action(action, console);
}

}  // namespace ddx::cli
