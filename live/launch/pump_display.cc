#include "live/launch/pump_display.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <system_error>
#include <utility>

#include "live/launch/proc_files.h"

namespace ddx::live {
namespace {

constexpr std::size_t kEnough = 256 << 10;
constexpr std::string_view kClear = "\r\x1b[K";

// An error number, or 0.
int write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(file, bytes.data(), bytes.size());
    if (n >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN) {
      pollfd ready{file, POLLOUT, 0};
      ::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace

void Display::gather(bool is_error, std::string_view text) {
  if (is_error != gathered_error_) write_out();
  gathered_error_ = is_error;
  gathered_.append(text);
  if (gathered_.size() >= kEnough) write_out();
}

void Display::write_out() {
  if (gathered_.empty()) return;
  bool& closed = closed_[gathered_error_ ? 1 : 0];
  const int file = gathered_error_ ? STDERR_FILENO : STDOUT_FILENO;
  if (status_shown_) {
    write_all(STDOUT_FILENO, kClear);
    status_shown_ = false;
  }
  if (!closed && write_all(file, gathered_) != 0) closed = true;
  gathered_.clear();
}

void Display::begin(const Speaker& speaker, bool fresh) {
  if (open_ != 0 && open_ != speaker.id) gather(speaker.is_error, "\n");
  if ((fresh || open_ != speaker.id) && speaker.rank >= 0)
    gather(speaker.is_error, fmt::format("[rank {}] ", speaker.rank));
}

void Display::show(const Speaker& speaker, const Line& line, std::size_t skip) {
  begin(speaker, skip == 0);
  gather(speaker.is_error, line.text.substr(std::min(skip, line.text.size())));
  // A cut line of a rank's gets an end: whatever comes next is another's.
  const char end = line.end == '\0' && speaker.rank >= 0 ? '\n' : line.end;
  if (end != '\0') gather(speaker.is_error, {&end, 1});
  open_ = end == '\n' ? 0 : speaker.id;
}

void Display::show_rest(const Speaker& speaker, std::string_view text) {
  begin(speaker, open_ != speaker.id);
  gather(speaker.is_error, text);
  open_ = speaker.id;
}

void Display::tell(std::string_view text) {
  if (open_ != 0) gather(true, "\n");
  open_ = 0;
  gather(true, text);
  flush();
}

void Display::set_status(std::string text) {
  if (!has_status_ || text == status_) return;
  status_ = std::move(text);
  write_out();
  if (status_shown_) write_all(STDOUT_FILENO, kClear);
  status_shown_ = false;
  flush();
}

void Display::flush() {
  write_out();
  if (!has_status_ || status_shown_ || open_ != 0 || status_.empty() || closed_[0]) return;
  write_all(STDOUT_FILENO, status_);
  status_shown_ = true;
}

Logs::~Logs() {
  for (auto& [rank, log] : logs_) {
    if (log.file >= 0) ::close(log.file);
  }
}

std::string_view Logs::stamp() {
  const Nanos now = realtime();
  if (now / kMicrosecond != stamped_ / kMicrosecond) {
    stamped_ = now;
    const std::time_t seconds = now / kSecond;
    std::tm parts{};
    gmtime_r(&seconds, &parts);
    stamp_ = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                         parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, now % kSecond / kMicrosecond);
  }
  return stamp_;
}

Logs::Log& Logs::log_of(std::int32_t rank) {
  const auto [at, is_new] = logs_.try_emplace(rank);
  Log& log = at->second;
  if (is_new && !folder_.empty()) {
    const std::string path = folder_ + (rank < 0 ? std::string("/launcher.log") : fmt::format("/rank_{}.log", rank));
    log.file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (log.file < 0) trouble_ = fmt::format("{} cannot be written: {}", path, std::generic_category().message(errno));
  }
  return log;
}

void Logs::keep(const Speaker& speaker, const Line& line) {
  if (folder_.empty()) return;
  Log& log = log_of(speaker.rank);
  if (log.file < 0 || log.lost) return;
  log.gathered.append(stamp()).append(speaker.is_error ? " stderr " : " stdout ");
  log.gathered.append(line.end == '\0' ? "P " : "F ").append(line.text).append("\n");
  if (log.gathered.size() >= kEnough) write_out(speaker.rank, log);
}

void Logs::write_out(std::int32_t rank, Log& log) {
  if (log.gathered.empty()) return;
  if (const int error = write_all(log.file, log.gathered); error != 0) {
    log.lost = true;  // what follows a gap would look whole
    trouble_ =
        fmt::format("the output of {} is no longer kept: {}", rank < 0 ? "the launcher" : fmt::format("rank {}", rank),
                    std::generic_category().message(error));
  }
  log.gathered.clear();
}

void Logs::flush() {
  for (auto& [rank, log] : logs_) write_out(rank, log);
}

std::string Logs::take_trouble() { return std::exchange(trouble_, {}); }

}  // namespace ddx::live
