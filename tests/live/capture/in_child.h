// A recorder is one a process: every test has a process of its own.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "traces/formats/loader.h"

namespace ddx::testing {

// Runs `body` in a forked process that leaves by its own exit, or by _exit without a word where `exits` is false.
// Returns its status as waitpid gives it.
template <class Body>
int in_child(const Body& body, bool exits = true) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    if (exits) std::exit(0);  // NOLINT(concurrency-mt-unsafe): libraries are torn down
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

inline std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

inline Evidence load_one(const std::string& path) { return formats::load({path}, {}); }

}  // namespace ddx::testing
