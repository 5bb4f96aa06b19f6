#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "cli/app.h"

namespace {

std::size_t width_of_terminal() {
  struct winsize size = {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 100;
  return std::clamp<std::size_t>(size.ws_col, 40, 160);
}

}  // namespace

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  const char* no_color = std::getenv("NO_COLOR");
  ddx::cli::Console console{.out = std::cout,
                            .err = std::cerr,
                            .out_is_terminal = ::isatty(STDOUT_FILENO) == 1,
                            .err_is_terminal = ::isatty(STDERR_FILENO) == 1,
                            .no_color = no_color != nullptr && *no_color != '\0'};
  if (console.out_is_terminal) console.width = width_of_terminal();
  return static_cast<int>(ddx::cli::run({argv + 1, argv + argc}, console));
}
