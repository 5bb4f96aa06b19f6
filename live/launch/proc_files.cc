#include "live/launch/proc_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <string_view>

#include "base/printable.h"

namespace ddx::live {
namespace {

Nanos clock_now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return Nanos{time.tv_sec} * kSecond + time.tv_nsec;
}

template <class Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string read_small_file(const std::string& path, std::size_t most) {
  std::string text;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return text;
  char buffer[4096];
  while (text.size() < most) {
    const ssize_t got = ::read(file, buffer, std::min(sizeof(buffer), most - text.size()));
    if (got <= 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
  }
  ::close(file);
  return text;
}

// The name stands in brackets and may hold blanks and brackets: the last one counts.
std::optional<ProcStat> read_stat(pid_t pid) {
  const std::string text = read_small_file("/proc/" + std::to_string(pid) + "/stat", 4096);
  const std::size_t close = text.rfind(')');
  if (close == std::string::npos) return std::nullopt;
  std::vector<std::string_view> fields;  // from the third, the state
  std::string_view rest = std::string_view(text).substr(close + 1);
  while (!rest.empty()) {
    const std::size_t begin = rest.find_first_not_of(" \n");
    if (begin == std::string_view::npos) break;
    const std::size_t end = std::min(rest.find_first_of(" \n", begin), rest.size());
    fields.push_back(rest.substr(begin, end - begin));
    rest.remove_prefix(end);
  }
  if (fields.size() < 20 || fields[0].empty()) return std::nullopt;
  ProcStat stat;
  stat.state = fields[0].front();
  stat.parent = number<pid_t>(fields[1]).value_or(0);
  stat.start_ticks = number<std::uint64_t>(fields[19]).value_or(0);
  if (fields.size() >= 50) stat.exit_status = number<int>(fields[49]).value_or(0);
  return stat;
}

std::vector<pid_t> numbers_in(const std::string& folder) {
  std::vector<pid_t> found;
  DIR* open = ::opendir(folder.c_str());
  if (open == nullptr) return found;
  while (const dirent* entry = ::readdir(open)) {
    if (const auto value = number<pid_t>(std::string_view(entry->d_name)); value && *value > 0) found.push_back(*value);
  }
  ::closedir(open);
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<pid_t> ancestors_of(pid_t pid) {
  constexpr std::size_t kDeepest = 64;
  std::vector<pid_t> found;
  for (auto stat = read_stat(pid); stat && stat->parent > 0 && found.size() < kDeepest;
       stat = read_stat(found.back())) {
    found.push_back(stat->parent);
  }
  return found;
}

std::string command_of(pid_t pid) {
  std::string text = read_small_file("/proc/" + std::to_string(pid) + "/cmdline", 4096);
  while (!text.empty() && text.back() == '\0') text.pop_back();
  std::replace(text.begin(), text.end(), '\0', ' ');
  return printable_text(text, 512);
}

std::int32_t rank_of(pid_t pid) {
  const std::string text = read_small_file("/proc/" + std::to_string(pid) + "/environ", 1 << 20);
  for (const std::string_view name : {"RANK=", "SLURM_PROCID=", "OMPI_COMM_WORLD_RANK=", "PMI_RANK=", "PMIX_RANK="}) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\0', at), text.size());
      const std::string_view line = std::string_view(text).substr(at, end - at);
      if (line.starts_with(name)) {
        if (const auto value = number<std::int32_t>(line.substr(name.size())); value && *value >= 0) return *value;
      }
      at = end + 1;
    }
  }
  return -1;
}

void take_all_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

Nanos realtime() { return clock_now(CLOCK_REALTIME); }
Nanos monotonic() { return clock_now(CLOCK_MONOTONIC); }

Nanos started_at(std::uint64_t start_ticks) {
  const auto per_second = static_cast<std::uint64_t>(std::max(1L, sysconf(_SC_CLK_TCK)));
  const Nanos since_boot =
      static_cast<Nanos>(start_ticks * static_cast<std::uint64_t>(kSecond / static_cast<Nanos>(per_second)));
  return realtime() - clock_now(CLOCK_BOOTTIME) + since_boot;
}

}  // namespace ddx::live
