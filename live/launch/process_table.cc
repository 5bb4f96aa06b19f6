#include "live/launch/process_table.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "live/launch/proc_files.h"

namespace ddx::live {
namespace {

constexpr std::size_t kMostRecords = 1 << 17;

// Of linux/pidfd.h, which is older here than kernels are: struct pidfd_info in its first size.
struct PidfdInfo {
  std::uint64_t mask;
  std::uint64_t cgroup;
  std::uint32_t ids[11];
  std::int32_t exit_code;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr std::uint64_t kInfoExit = 1 << 3;

int open_process(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0U)); }

bool send_signal(int handle, int signal) { return ::syscall(SYS_pidfd_send_signal, handle, signal, nullptr, 0U) == 0; }

std::optional<int> kept_status(int handle) {
  PidfdInfo info{};
  info.mask = kInfoExit;
  if (::ioctl(handle, _IOWR(0xFF, 11, PidfdInfo), &info) != 0 || (info.mask & kInfoExit) == 0) return std::nullopt;
  return info.exit_code;
}

std::optional<std::uint64_t> counter_in(const std::string& path, const std::string& name) {
  const std::string text = read_small_file(path);
  std::size_t at = text.rfind("\n" + name + " ");
  if (at != std::string::npos) {
    ++at;
  } else if (text.starts_with(name + " ")) {
    at = 0;
  } else {
    return std::nullopt;
  }
  return std::strtoull(text.c_str() + at + name.size(), nullptr, 10);
}

}  // namespace

std::string signal_text(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{} ({})", name, signal);
}

std::string how_it_ended(const ProcessRecord& record) {
  if (record.ended == 0) return "is running";
  if (record.status && WIFSIGNALED(*record.status)) return "was killed by " + signal_text(WTERMSIG(*record.status));
  if (record.status) return fmt::format("exited with status {}", WEXITSTATUS(*record.status));
  if (record.told) return fmt::format("exited with status {}", *record.told & 0xff);
  return "ended; with what status is not known";
}

ProcessTable::ProcessTable() : events_(::epoll_create1(EPOLL_CLOEXEC)) {}

ProcessTable::~ProcessTable() {
  for (const ProcessRecord& record : records_) {
    if (record.handle >= 0) ::close(record.handle);
  }
  if (events_ >= 0) ::close(events_);
}

ProcessRecord* ProcessTable::latest(pid_t pid) {
  const auto at = latest_.find(pid);
  return at == latest_.end() ? nullptr : &records_[at->second];
}

const ProcessRecord* ProcessTable::find(std::int64_t pid) const {
  const auto at = latest_.find(static_cast<pid_t>(pid));
  return at == latest_.end() ? nullptr : &records_[at->second];
}

std::size_t ProcessTable::alive() const {
  return static_cast<std::size_t>(
      std::count_if(records_.begin(), records_.end(), [](const ProcessRecord& record) { return record.ended == 0; }));
}

void ProcessTable::end_all(int signal) {
  for (ProcessRecord& record : records_) {
    if (record.ended == 0 && record.handle >= 0 && send_signal(record.handle, signal)) record.by_wrap = true;
  }
}

void ProcessTable::wake_all() const {
  for (const ProcessRecord& record : records_) {
    if (record.ended == 0 && record.handle >= 0) send_signal(record.handle, SIGCONT);
  }
}

ProcessRecord* ProcessTable::add(pid_t pid) {
  const auto stat = read_stat(pid);
  if (!stat) return nullptr;
  if (ProcessRecord* known = latest(pid); known != nullptr && known->start_ticks == stat->start_ticks) return known;
  ProcessRecord record;
  record.pid = pid;
  record.parent = stat->parent;
  record.start_ticks = stat->start_ticks;
  record.state = stat->state;
  record.rank = rank_of(pid);
  record.command = command_of(pid);
  record.handle = open_process(pid);
  return insert(std::move(record), ancestors_of(pid));
}

// A shell of the rank's that forked and has gone since may stand between.
bool ProcessTable::is_helper(std::int32_t rank, const std::vector<pid_t>& ancestors) {
  return rank >= 0 && std::any_of(ancestors.begin(), ancestors.end(), [this, rank](pid_t pid) {
           const ProcessRecord* record = latest(pid);
           return record != nullptr && record->rank == rank;
         });
}

ProcessRecord* ProcessTable::insert(ProcessRecord record, const std::vector<pid_t>& ancestors) {
  if (records_.size() >= kMostRecords) {
    if (record.handle >= 0) ::close(record.handle);
    return nullptr;
  }
  if (ProcessRecord* earlier = latest(record.pid); earlier != nullptr && earlier->ended == 0)
    end(*earlier, std::nullopt);
  record.started = started_at(record.start_ticks);
  record.is_helper = is_helper(record.rank, ancestors);
  latest_[record.pid] = records_.size();
  records_.push_back(std::move(record));
  ProcessRecord& added = records_.back();
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  event.data.u64 = records_.size() - 1;
  if (added.handle >= 0) ::epoll_ctl(events_, EPOLL_CTL_ADD, added.handle, &event);
  return &added;
}

void ProcessTable::announce(ProcessRecord record, const std::vector<pid_t>& ancestors) {
  ProcessRecord* known = latest(record.pid);
  if (known == nullptr || known->start_ticks != record.start_ticks) {
    if (record.handle < 0) record.handle = open_process(record.pid);
    known = insert(std::move(record), ancestors);
    if (known != nullptr) look(*known);
    return;
  }
  known->rank = record.rank;
  known->is_helper = is_helper(record.rank, ancestors);
  if (!record.command.empty()) known->command = std::move(record.command);
  if (record.handle >= 0) ::close(record.handle);
}

void ProcessTable::told_exit(pid_t pid, int status) {
  if (ProcessRecord* record = latest(pid)) record->told = status;
}

void ProcessTable::reaped(pid_t pid, int status) {
  if (ProcessRecord* record = latest(pid)) end(*record, status);
}

void ProcessTable::end(ProcessRecord& record, std::optional<int> status) {
  if (record.ended == 0) record.ended = realtime();
  if (status) record.status = status;
  record.state = 'X';
  if (record.status && record.handle >= 0) {
    ::close(record.handle);  // with that it leaves the watched ones
    record.handle = -1;
  }
}

// What has become of it.
void ProcessTable::look(ProcessRecord& record) {
  if (record.status && record.ended != 0) return;
  if (record.handle >= 0) {
    if (const auto status = kept_status(record.handle)) return end(record, status);
  }
  const auto stat = read_stat(record.pid);
  if (!stat || stat->start_ticks != record.start_ticks) {
    if (record.ended == 0) end(record, std::nullopt);
  } else if (stat->state == 'Z' || stat->state == 'X') {
    // 0 is also what those see who may not see it.
    end(record, stat->exit_status != 0 ? std::optional<int>(stat->exit_status) : std::nullopt);
  } else {
    record.state = stat->state;
    record.parent = stat->parent;
  }
}

void ProcessTable::collect() {
  epoll_event events[64];
  const int count = ::epoll_wait(events_, events, 64, 0);
  for (int i = 0; i < count; ++i) {
    if (events[i].data.u64 < records_.size()) look(records_[events[i].data.u64]);
  }
}

void ProcessTable::scan() {
  std::map<pid_t, pid_t> parents;
  for (const pid_t pid : numbers_in("/proc")) {
    if (const auto stat = read_stat(pid); stat && stat->state != 'Z') parents[pid] = stat->parent;
  }
  const pid_t self = ::getpid();
  // Whether a process is below this one, each looked up once.
  std::map<pid_t, bool> below;
  below[self] = true;
  for (const pid_t pid : ignored_) below[pid] = false;
  for (const auto& [pid, parent] : parents) {
    std::vector<pid_t> way;
    pid_t at = pid;
    std::set<pid_t> seen;
    while (!below.contains(at) && parents.contains(at) && seen.insert(at).second) {
      way.push_back(at);
      at = parents[at];
    }
    const bool inside = below.contains(at) && below[at];
    for (const pid_t step : way) below[step] = inside;
    if (inside && pid != self) add(pid);
  }
  for (ProcessRecord& record : records_) {
    if (record.ended == 0 || (!record.status && record.handle >= 0)) look(record);
    if (record.ended != 0) continue;
    // exec() makes another program of it.
    if (record.rank < 0 && (record.rank = rank_of(record.pid)) >= 0) {
      record.is_helper = is_helper(record.rank, ancestors_of(record.pid));
    }
    if (std::string command = command_of(record.pid); !command.empty()) record.command = std::move(command);
  }
}

std::optional<MemoryKills> memory_kills() {
  const std::string groups = read_small_file("/proc/self/cgroup");
  for (std::size_t at = 0; at < groups.size();) {
    const std::size_t end = std::min(groups.find('\n', at), groups.size());
    const std::string line = groups.substr(at, end - at);
    at = end + 1;
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    for (const std::string& inside : {path, std::string()}) {  // in a container, its own group is the root
      if (controllers.empty()) {
        if (const auto n = counter_in("/sys/fs/cgroup" + inside + "/memory.events", "oom_kill"))
          return MemoryKills{*n, true};
      } else if (controllers == "memory") {
        if (const auto n = counter_in("/sys/fs/cgroup/memory" + inside + "/memory.oom_control", "oom_kill"))
          return MemoryKills{*n, true};
      }
    }
  }
  const auto all = counter_in("/proc/vmstat", "oom_kill");
  return all ? std::optional(MemoryKills{*all, false}) : std::nullopt;
}

}  // namespace ddx::live
