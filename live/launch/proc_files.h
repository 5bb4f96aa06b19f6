// What /proc tells of processes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"

namespace ddx::live {

struct ProcStat {
  char state = '?';
  pid_t parent = 0;
  std::uint64_t start_ticks = 0;
  int exit_status = 0;  // as of wait(2); of a zombie, where it may be read
};
std::optional<ProcStat> read_stat(pid_t pid);

// Empty where it cannot be read.
std::string read_small_file(const std::string& path, std::size_t most = 64 << 10);
// Numbers that are names in a folder, in order: processes of /proc, threads of /proc/PID/task.
std::vector<pid_t> numbers_in(const std::string& folder);

// Its parent, that one's parent, and so on, as far as they can be read.
std::vector<pid_t> ancestors_of(pid_t pid);
std::string command_of(pid_t pid);  // on one line
// What the launcher's variables in the process's environment say; -1.
std::int32_t rank_of(pid_t pid);
Nanos started_at(std::uint64_t start_ticks);  // since 1970
// As many open files as the system lets this process have: it may watch a thousand others.
void take_all_descriptors();
Nanos realtime();
Nanos monotonic();

}  // namespace ddx::live
