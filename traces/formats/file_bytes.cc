#include "traces/formats/file_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <system_error>

#include "base/error.h"

namespace ddx::formats {
namespace {

// Below this a copy costs little.
constexpr std::uint64_t kMapFrom = std::uint64_t{64} << 20;

[[noreturn]] void fail(const std::string& path, const std::string& what, int error) {
  throw Error(path, {}, what + ": " + std::generic_category().message(error));
}

struct Descriptor {
  explicit Descriptor(int number) : value(number) {}
  ~Descriptor() { ::close(value); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int value;
};

// What a signal handler must know of the mapping that its thread reads.
struct Guarded {
  char* begin = nullptr;
  std::size_t size = 0;
  volatile std::sig_atomic_t cut = 0;
};

// A signal handler is given nothing but the address, so this cannot be passed along.
thread_local Guarded* guarded = nullptr;

// Touching a mapped page behind the end that the file has by now raises SIGBUS (logs are rotated and truncated while
// they are read). Zeros are put there instead, once, and the reading goes on.
void on_bus_error(int signal, siginfo_t* info, void*) {
  Guarded* const mapping = guarded;
  auto* const at = static_cast<char*>(info->si_addr);
  if (mapping != nullptr && at >= mapping->begin && at < mapping->begin + mapping->size) {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto offset = static_cast<std::size_t>(at - mapping->begin) / page * page;
    void* const zeros = ::mmap(mapping->begin + offset, mapping->size - offset, PROT_READ,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (zeros != MAP_FAILED) {
      mapping->cut = 1;
      return;
    }
  }
  ::signal(signal, SIG_DFL);  // not ours: the same access faults again, for good
}

void install_bus_handler() {
  struct sigaction action = {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace

// A read-only mapping of a file that may lose its end meanwhile.
class GuardedMapping {
 public:
  GuardedMapping(int descriptor, std::size_t size, const std::string& path) : outer_(guarded) {
    static std::once_flag installed;
    std::call_once(installed, install_bus_handler);
    void* const mapping = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (mapping == MAP_FAILED) fail(path, "cannot be mapped", errno);
    ::madvise(mapping, size, MADV_SEQUENTIAL);
    range_.begin = static_cast<char*>(mapping);
    range_.size = size;
    guarded = &range_;
  }
  ~GuardedMapping() {
    guarded = outer_;
    ::munmap(range_.begin, range_.size);
  }
  GuardedMapping(const GuardedMapping&) = delete;
  GuardedMapping& operator=(const GuardedMapping&) = delete;

  std::string_view view() const { return {range_.begin, range_.size}; }
  bool was_cut() const { return range_.cut != 0; }

 private:
  Guarded range_;
  Guarded* outer_;
};

FileBytes::FileBytes(const std::string& path) {
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  const int opened = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (opened < 0) {
    const int error = errno;
    fail(path, error == ENOENT || error == ENOTDIR ? "cannot be found" : "cannot be opened", error);
  }
  const Descriptor file(opened);
  struct stat about = {};
  if (::fstat(file.value, &about) != 0) fail(path, "cannot be examined", errno);
  if (S_ISDIR(about.st_mode)) throw Error(path, {}, "is a folder where a file was expected");
  if (!S_ISREG(about.st_mode)) throw Error(path, {}, "is no regular file (a pipe, socket or device)");
  const auto size = static_cast<std::uint64_t>(about.st_size);
  if (size >= kMapFrom) {
    mapping_ = std::make_unique<GuardedMapping>(file.value, static_cast<std::size_t>(size), path);
    view_ = mapping_->view();
  } else {
    read_all(file.value, static_cast<std::size_t>(size), path);
  }
}

FileBytes::~FileBytes() = default;

bool FileBytes::was_cut() const { return short_read_ || (mapping_ != nullptr && mapping_->was_cut()); }

// Reads what the file held when it was opened: what a job appends meanwhile is left out, what it cuts is gone.
void FileBytes::read_all(int descriptor, std::size_t size, const std::string& path) {
  buffer_.resize(size);
  std::size_t got = 0;
  while (got < size) {
    const ssize_t n = ::read(descriptor, buffer_.data() + got, size - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path, "cannot be read", errno);
    if (n == 0) {
      short_read_ = true;
      break;
    }
    got += static_cast<std::size_t>(n);
  }
  view_ = {buffer_.data(), got};
}

}  // namespace ddx::formats
