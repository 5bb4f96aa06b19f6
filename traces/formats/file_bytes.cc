#include "traces/formats/file_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

#include "base/error.h"

namespace ddx::formats {
namespace {

// Below this a copy costs little, and a file that its job cuts while we read it cannot raise SIGBUS, as a mapping can.
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

}  // namespace

FileBytes::FileBytes(const std::string& path) {
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  const int opened = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (opened < 0) fail(path, "cannot be opened", errno);
  const Descriptor file(opened);
  struct stat about = {};
  if (::fstat(file.value, &about) != 0) fail(path, "cannot be examined", errno);
  if (S_ISDIR(about.st_mode)) throw Error(path, {}, "is a folder where a file was expected");
  if (!S_ISREG(about.st_mode)) throw Error(path, {}, "is no regular file (a pipe, socket or device)");
  const auto size = static_cast<std::uint64_t>(about.st_size);
  if (size >= kMapFrom) {
    void* mapping = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.value, 0);
    if (mapping == MAP_FAILED) fail(path, "cannot be mapped", errno);
    ::madvise(mapping, size, MADV_SEQUENTIAL);
    mapping_ = mapping;
    mapped_ = size;
    view_ = {static_cast<const char*>(mapping), mapped_};
    return;
  }
  read_all(file.value, static_cast<std::size_t>(size), path);
}

FileBytes::~FileBytes() {
  if (mapping_ != nullptr) ::munmap(mapping_, mapped_);
}

// Reads what the file held when it was opened: what a job appends meanwhile is left out, what it cuts is gone.
void FileBytes::read_all(int descriptor, std::size_t size, const std::string& path) {
  buffer_.resize(size);
  std::size_t got = 0;
  while (got < size) {
    const ssize_t n = ::read(descriptor, buffer_.data() + got, size - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path, "cannot be read", errno);
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  view_ = {buffer_.data(), got};
}

}  // namespace ddx::formats
