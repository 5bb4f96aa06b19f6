// ProcessTable: every process below one, as long as they are seen: when they began, and what became of them.
//
// How a process ended is known of wrap's own children, and of those that were left to it (it is their subreaper). Of
// others, whose parents take their statuses, it is known where the kernel keeps it for who holds the process open
// (Linux 6.15 and newer), where it is looked at between its death and its parent's look, or where the process told it
// itself; else only that they ended.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"

namespace ddx::live {

struct ProcessRecord {
  pid_t pid = 0;
  pid_t parent = 0;
  std::uint64_t start_ticks = 0;
  std::int32_t rank = -1;
  bool is_helper = false;  // a process of the same rank began it
  std::string command;
  char state = '?';           // as in /proc/PID/stat
  Nanos started = 0;          // since 1970
  Nanos ended = 0;            // when it was seen to be gone; 0: not yet
  std::optional<int> status;  // as of wait(2)
  std::optional<int> told;    // what it said it passes to exit()
  bool by_wrap = false;       // wrap had it ended
  int handle = -1;            // pidfd
};

// "exited with status 3", "was killed by SIGKILL (9)", "ended; with what status is not known".
std::string how_it_ended(const ProcessRecord& record);
// "SIGKILL (9)".
std::string signal_text(int signal);

class ProcessTable {
 public:
  ProcessTable();
  ~ProcessTable();
  ProcessTable(const ProcessTable&) = delete;
  ProcessTable& operator=(const ProcessTable&) = delete;

  // A process of wrap's own: neither it nor what is below it is of the job.
  void ignore(pid_t pid) { ignored_.push_back(pid); }
  // Looks for newcomers below this process, and at the states of all.
  void scan();
  // One is known before scan() finds it, or is gone by now: what was known of it, and its pidfd (-1: none), which is
  // the table's from now on.
  void announce(ProcessRecord record, const std::vector<pid_t>& ancestors);
  void told_exit(pid_t pid, int status);
  // What waitid() gave.
  void reaped(pid_t pid, int status);

  // Readable once some process has ended; then collect().
  int descriptor() const { return events_; }
  void collect();

  const std::vector<ProcessRecord>& records() const { return records_; }
  // The latest of this number; null: none.
  const ProcessRecord* find(std::int64_t pid) const;
  // To all that live, so that they end; never to a process that merely has the number of one.
  void end_all(int signal);
  void wake_all() const;  // those that are stopped
  std::size_t alive() const;

 private:
  ProcessRecord* latest(pid_t pid);
  ProcessRecord* add(pid_t pid);
  ProcessRecord* insert(ProcessRecord record, const std::vector<pid_t>& ancestors);
  bool is_helper(std::int32_t rank, const std::vector<pid_t>& ancestors);
  void look(ProcessRecord& record);
  void end(ProcessRecord& record, std::optional<int> status);

  int events_ = -1;
  std::vector<pid_t> ignored_;
  std::vector<ProcessRecord> records_;
  std::map<pid_t, std::size_t> latest_;
};

// How many processes the kernel has killed for want of memory.
struct MemoryKills {
  std::uint64_t count = 0;
  bool of_group = false;  // of wrap's control group, and so of this job; else of the whole machine
};
// nullopt: nobody counts.
std::optional<MemoryKills> memory_kills();

}  // namespace ddx::live
