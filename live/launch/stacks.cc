#include "live/launch/stacks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "live/launch/proc_files.h"

namespace ddx::live {
namespace {

constexpr std::size_t kMostOutput = 8 << 20;
constexpr std::size_t kMostThreads = 4096;

void append_file(std::string& to, const std::string& name, const std::string& path) {
  std::string text = read_small_file(path);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (text.empty()) return;
  if (text.find('\n') != std::string::npos) text = "\n" + text;
  to += fmt::format("  {}: {}\n", name, text);
}

std::string kernel_view(pid_t pid) {
  std::string text;
  const std::string tasks = fmt::format("/proc/{}/task", pid);
  std::size_t count = 0;
  for (const pid_t thread : numbers_in(tasks)) {
    if (++count > kMostThreads) break;
    const std::string folder = fmt::format("{}/{}", tasks, thread);
    std::string name = read_small_file(folder + "/comm");
    while (!name.empty() && name.back() == '\n') name.pop_back();
    text += fmt::format("kernel: thread {} ({})\n", thread, name);
    const std::string status = read_small_file(folder + "/status");
    for (const char* field : {"State:", "SigBlk:", "SigPnd:", "voluntary_ctxt_switches:"}) {
      const std::size_t at = status.find(field);
      if (at == std::string::npos) continue;
      text += "  " + status.substr(at, status.find('\n', at) - at) + "\n";
    }
    append_file(text, "wchan", folder + "/wchan");
    append_file(text, "syscall", folder + "/syscall");
    append_file(text, "stack", folder + "/stack");
  }
  return text;
}

std::string read_until(int file, Nanos deadline) {
  std::string text;
  char buffer[16 << 10];
  while (text.size() < kMostOutput) {
    const Nanos left = deadline - monotonic();
    pollfd ready{file, POLLIN, 0};
    if (left <= 0 || ::poll(&ready, 1, static_cast<int>(left / kMillisecond) + 1) == 0) break;
    const ssize_t got = ::read(file, buffer, sizeof(buffer));
    if (got == 0 || (got < 0 && errno != EINTR)) break;
    if (got > 0) text.append(buffer, static_cast<std::size_t>(got));
  }
  return text;
}

// One byte into the FIFO that the hook reads (docs/torch-capture.md). False: there is no hook.
bool request(const std::string& folder, const std::string& host, pid_t pid) {
  const std::string path = fmt::format("{}/{}-{}.request", folder, host, pid);
  const int file = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return false;
  struct stat about {};
  const bool asked = ::fstat(file, &about) == 0 && S_ISFIFO(about.st_mode) && ::write(file, "?", 1) == 1;
  ::close(file);
  return asked;
}

// Files have their names once they are complete.
bool is_newer(const std::string& path, Nanos than) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) return false;
  return Nanos{about.st_mtim.tv_sec} * kSecond + about.st_mtim.tv_nsec >= than;
}

std::string name_of(const Subject& subject) {
  return subject.rank >= 0 ? fmt::format("rank_{}", subject.rank) : fmt::format("pid_{}", subject.pid);
}

}  // namespace

std::string output_of(const std::vector<std::string>& command, Nanos limit) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::setpgid(0, 0);
    const int nothing = ::open("/dev/null", O_RDONLY);
    ::dup2(nothing, 0);
    ::dup2(ends[1], 1);
    ::dup2(ends[1], 2);
    ::unsetenv("LD_PRELOAD");
    ::unsetenv("DDX_TRACE_DIR");
    ::execvp(words[0], words.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  std::string text;
  if (child > 0) {
    text = read_until(ends[0], monotonic() + limit);
    ::kill(-child, SIGKILL);
    ::kill(child, SIGKILL);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127 && text.empty()) text.clear();
  }
  ::close(ends[0]);
  return text;
}

std::size_t ask_for_dumps(const std::string& folder, const std::vector<Subject>& subjects, Nanos limit) {
  char host[256] = {};
  ::gethostname(host, sizeof(host) - 1);
  const Nanos slack = 20 * kMillisecond;  // file systems' clocks tick more coarsely
  const Nanos asked_at = realtime() - slack;
  std::vector<std::string> awaited;
  for (const Subject& subject : subjects) {
    if (!request(folder, host, subject.pid)) continue;
    awaited.push_back(folder + "/stacks/" + name_of(subject) + ".txt");
    awaited.push_back(folder + "/flight_recorder/" + name_of(subject));
  }
  const std::size_t asked = awaited.size();
  for (const Nanos deadline = monotonic() + limit; !awaited.empty() && monotonic() < deadline; ::usleep(20'000)) {
    std::erase_if(awaited, [asked_at](const std::string& path) { return is_newer(path, asked_at); });
  }
  return (asked - awaited.size()) / 2;
}

void keep_stacks(const std::string& folder, const std::vector<Subject>& subjects, Nanos limit) {
  ::mkdir((folder + "/stacks").c_str(), 0755);
  for (const Subject& subject : subjects) {
    const std::string path = fmt::format("{}/stacks/{}.native.txt", folder, name_of(subject));
    std::ofstream file(path, std::ios::app);
    file << fmt::format("== process {}: {}\n", subject.pid, subject.command);
    file << kernel_view(subject.pid) << std::flush;
    const std::string number = std::to_string(subject.pid);
    if (const std::string text = output_of({"py-spy", "dump", "--pid", number}, limit); !text.empty()) {
      file << "== py-spy dump\n" << text << std::flush;
    }
    if (const std::string text = output_of(
            {"gdb", "-p", number, "-batch", "-nx", "-ex", "set pagination off", "-ex", "thread apply all backtrace 64"},
            limit);
        !text.empty()) {
      file << "== gdb\n" << text << std::flush;
    }
  }
}

}  // namespace ddx::live
