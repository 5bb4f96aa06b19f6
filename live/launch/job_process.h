// The job: started in a process group of its own, that has the terminal where wrap had it.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace ddx::live {

struct JobProcess {
  pid_t pid = -1;
  int error = 0;  // an errno: the command could not be run, and there is no process
  bool has_terminal = false;
};

// `out`, `err`: descriptors for its standard output and error; -1: wrap's own.
JobProcess start_job(const std::vector<std::string>& command,
                     const std::vector<std::pair<std::string, std::string>>& environment, int out, int err);

// The job was stopped by its terminal: gives that back, stops this process too, and, once it is continued, the job.
void stop_with_job(const JobProcess& job);
// The terminal is wrap's again.
void take_terminal(const JobProcess& job);

// What a shell makes of a status of wait(2): 128 + n for signal n.
int exit_status(int wait_status);

}  // namespace ddx::live
