// The command line: arguments in, exit status out.
#pragma once

#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

namespace ddx::cli {

// Where ddx speaks, and what it may assume of the listener.
struct Console {
  std::ostream& out;
  std::ostream& err;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  std::size_t width = 100;  // columns
  bool no_color = false;    // the environment asks for none (NO_COLOR)
};

// The statuses that scripts rely on.
enum class Exit : int {
  fine = 0,          // nothing at or above --fail-on
  findings = 1,      // findings at or above it
  wrong_usage = 2,   // of the command line
  insufficient = 3,  // the evidence does not suffice to judge
};

// Runs `arguments` (without the program's name). Throws nothing.
Exit run(const std::vector<std::string>& arguments, Console& console);

}  // namespace ddx::cli
