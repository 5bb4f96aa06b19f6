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

// Output that was broken into lines and indented, to look for sentences in it.
inline std::string on_one_line(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c != '\n' && !(c == ' ' && out.ends_with(' '))) out += c;
    if (c == '\n' && !out.ends_with(' ')) out += ' ';
  }
  return out;
}

}  // namespace ddx::cli
