// A program that meets NCCL in one of the ways that programs do:
//   driver SCENARIO local|deepbind LIBRARY   a library that was linked with NCCL, loaded as Python loads extensions
//   driver SCENARIO dlopen NCCL              by path and by name, as ctypes does
//   driver SCENARIO two LIBRARY NCCL         the first of these, then the last, with another copy of NCCL
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/live/nccl/scenario.h"

namespace {

void* open_or_die(const char* path, int flags) {
  void* library = dlopen(path, flags);
  if (library == nullptr) {
    std::fprintf(stderr, "driver: %s\n", dlerror());
    std::exit(98);
  }
  return library;
}

int run_library(const char* scenario, const char* path, int flags) {
  void* library = open_or_die(path, RTLD_NOW | RTLD_LOCAL | flags);
  const auto function = reinterpret_cast<int (*)(const char*)>(dlsym(library, "run_linked"));
  return function(scenario);
}

int run_opened(const char* scenario, const char* path) {
  return ddx::nccl_test::run(ddx::nccl_test::look_up(open_or_die(path, RTLD_NOW | RTLD_LOCAL)), scenario);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 97;
  const std::string way = argv[2];
  if (way == "local") return run_library(argv[1], argv[3], 0);
  if (way == "deepbind") return run_library(argv[1], argv[3], RTLD_DEEPBIND);
  if (way == "dlopen") return run_opened(argv[1], argv[3]);
  if (way == "two" && argc > 4) {
    const std::string meet = std::getenv("MEET");
    const int first = run_library(argv[1], argv[3], 0);
    setenv("MEET", (meet + "/second").c_str(), 1);
    const int second = run_opened(argv[1], argv[4]);
    return first == second ? first : 96;
  }
  return 97;
}
