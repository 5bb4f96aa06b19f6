// The program as a user calls it, in this process.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "cli/app.h"

namespace ddx::cli {

struct Answer {
  int status = 0;
  std::string out;
  std::string err;
};

inline Answer ddx(const std::vector<std::string>& arguments) {
  std::ostringstream out, err;
  Console console{.out = out, .err = err};
  const Exit status = run(arguments, console);
  return {static_cast<int>(status), out.str(), err.str()};
}

}  // namespace ddx::cli
