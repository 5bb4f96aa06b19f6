#include "cli/commands/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <span>
#include <streambuf>
#include <system_error>
#include <utility>

#include "cli/commands/common_options.h"

namespace ddx::cli {
namespace {

[[noreturn]] void fail(const std::string& path, int error) {
  throw UsageError(
      fmt::format("the answer could not be written to '{}': {}", path, std::generic_category().message(error)));
}

// An open file to write to. Remembers the first error, so that a stream over it need not be asked at each step.
class FileBuffer : public std::streambuf {
 public:
  explicit FileBuffer(int descriptor) : descriptor_(descriptor) {
    setp(buffer_.data(), buffer_.data() + buffer_.size());
  }
  ~FileBuffer() override {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  FileBuffer(const FileBuffer&) = delete;
  FileBuffer& operator=(const FileBuffer&) = delete;

  // 0, or what went wrong.
  int close() {
    drain();
    if (::close(std::exchange(descriptor_, -1)) != 0 && error_ == 0) error_ = errno;
    return error_;
  }

 protected:
  int_type overflow(int_type c) override {
    if (!drain()) return traits_type::eof();
    if (!traits_type::eq_int_type(c, traits_type::eof())) sputc(traits_type::to_char_type(c));
    return traits_type::not_eof(c);
  }
  int sync() override { return drain() ? 0 : -1; }

 private:
  bool drain() {
    const char* at = pbase();
    while (error_ == 0 && at < pptr()) {
      const ssize_t n = ::write(descriptor_, at, static_cast<std::size_t>(pptr() - at));
      if (n >= 0) {
        at += n;
      } else if (errno != EINTR) {
        error_ = errno;
      }
    }
    setp(buffer_.data(), buffer_.data() + buffer_.size());
    return error_ == 0;
  }

  int descriptor_;
  int error_ = 0;
  std::array<char, 1 << 16> buffer_;
};

int fill(int descriptor, const std::function<void(std::ostream&)>& write) {
  FileBuffer buffer(descriptor);
  std::ostream out(&buffer);
  write(out);
  return buffer.close();
}

// Devices, pipes, and files in folders that take no new ones.
void write_in_place(const std::string& path, const std::function<void(std::ostream&)>& write) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
  if (descriptor < 0) fail(path, errno);
  if (const int error = fill(descriptor, write); error != 0) fail(path, error);
}

// What `path` names in the end: links followed, so that the file is replaced and not the link.
std::string target_of(const std::string& path) {
  std::error_code error;
  const std::filesystem::path target = std::filesystem::canonical(path, error);
  return error ? path : target.string();
}

// A new file beside `target` that nobody else has; the descriptor is -1 where there can be none.
std::pair<std::string, int> open_beside(const std::string& target) {
  std::string name;
  int descriptor = -1;
  for (int i = 0; i < 100 && descriptor < 0; ++i) {
    name = fmt::format("{}.ddx-{}-{}", target, ::getpid(), i);
    descriptor = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0 && errno != EEXIST) break;
  }
  return {name, descriptor};
}

using Identity = std::pair<dev_t, ino_t>;

std::optional<Identity> identity_of(const std::string& path) {
  struct stat about = {};
  if (::stat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) return std::nullopt;
  return Identity{about.st_dev, about.st_ino};
}

// Where a file that is not there yet would come to be: links followed, also those that lead to nothing.
std::filesystem::path place_of(std::filesystem::path path) {
  std::error_code error;
  for (int links = 0; links < 40 && std::filesystem::is_symlink(std::filesystem::symlink_status(path, error));
       ++links) {
    path = path.parent_path() / std::filesystem::read_symlink(path, error);
  }
  return std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
}

bool will_be_one(const std::string& a, const std::string& b) {
  const std::optional<Identity> identity = identity_of(a);
  if (identity) return identity == identity_of(b);
  return !std::filesystem::exists(a) && place_of(a) == place_of(b);
}

}  // namespace

void refuse_overwriting(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const NamedFile& output = outputs[i];
    for (const NamedFile& other : std::span(outputs).subspan(i + 1)) {
      if (!will_be_one(output.path, other.path)) continue;
      throw UsageError(
          fmt::format("{} and {} name one file, '{}': give two", output.option, other.option, output.path));
    }
    const std::optional<Identity> identity = identity_of(output.path);
    if (!identity) continue;
    for (const NamedFile& input : inputs) {
      if (identity_of(input.path) != identity) continue;
      throw UsageError(fmt::format("{} '{}' is evidence that was given ({}): write to another file", output.option,
                                   output.path, input.option));
    }
  }
}

void write_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
  const std::string target = target_of(path);
  struct stat about = {};
  const bool there = ::stat(target.c_str(), &about) == 0;
  const bool dangling = !there && std::filesystem::is_symlink(std::filesystem::symlink_status(target));
  if ((there && !S_ISREG(about.st_mode)) || dangling) return write_in_place(path, write);
  if (there && ::access(target.c_str(), W_OK) != 0) fail(path, errno);  // the folder's leave is not the file's
  const auto [beside, descriptor] = open_beside(target);
  if (descriptor < 0) return write_in_place(path, write);
  if (there) static_cast<void>(::fchmod(descriptor, about.st_mode & 07777));
  int error = 0;
  try {
    error = fill(descriptor, write);
  } catch (...) {
    ::unlink(beside.c_str());
    throw;
  }
  if (error == 0 && ::rename(beside.c_str(), target.c_str()) != 0) error = errno;
  if (error == 0) return;
  ::unlink(beside.c_str());
  fail(path, error);
}

}  // namespace ddx::cli
