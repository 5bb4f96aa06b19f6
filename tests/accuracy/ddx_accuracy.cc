// ddx_accuracy               writes docs/accuracy.md
// ddx_accuracy --constants   fits the calibrating runs again and writes sim/collectives/nccl_times.cc
#include <exception>
#include <iostream>
#include <string_view>

#include "tests/accuracy/validation.h"

int main(int argc, char** argv) {
  try {
    const std::vector<ddx::sim::ValidationRun> runs = ddx::sim::validation_runs();
    if (argc < 2) {
      std::cout << ddx::sim::accuracy_page(runs);
      return 0;
    }
    if (argc > 2 || std::string_view(argv[1]) != "--constants") {
      std::cerr << "usage: ddx_accuracy [--constants]\n";
      return 2;
    }
    std::vector<const ddx::sim::ValidationRun*> calibrating;
    for (const ddx::sim::ValidationRun& run : runs) {
      if (run.calibrates) calibrating.push_back(&run);
    }
    std::cout << ddx::sim::times_source(ddx::sim::fit_runs(calibrating));
  } catch (const std::exception& error) {
    std::cerr << "ddx_accuracy: " << error.what() << '\n';
    return 1;
  }
}
