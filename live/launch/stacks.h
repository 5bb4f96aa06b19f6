// Where a process stands: what the kernel tells of its threads, and what debuggers do where they are installed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"

namespace ddx::live {

struct Subject {
  std::int32_t rank = -1;
  pid_t pid = 0;
  std::string command;
};

// Asks the torch hook of each for what only it can give (its flight recorder's dump, Python stacks), and waits for that
// at most so long. Returns how many answered.
std::size_t ask_for_dumps(const std::string& folder, const std::vector<Subject>& subjects, Nanos limit);

// Appends to FOLDER/stacks/rank_N.native.txt (pid_N.native.txt of one without a rank); rank_N.txt is the torch hook's.
// Debuggers are given up after `limit` each.
void keep_stacks(const std::string& folder, const std::vector<Subject>& subjects, Nanos limit);

// What a command writes on its standard output and error, up to a bound. Ended after `limit`. Empty where there is no
// such program.
std::string output_of(const std::vector<std::string>& command, Nanos limit);

}  // namespace ddx::live
