// FileBytes: a file's content in memory while it is read.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ddx::formats {

class GuardedMapping;

// One thread reads one file at a time: make and use it in the same thread.
class FileBytes {
 public:
  // Throws Error (path, why) where the file cannot be opened or read, or is no regular file. Never waits on a pipe.
  explicit FileBytes(const std::string& path);
  ~FileBytes();
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  // A large file that is cut meanwhile reads as zeros from there on.
  std::string_view view() const { return view_; }
  // The file lost some of its end after it was opened.
  bool was_cut() const;

 private:
  void read_all(int descriptor, std::size_t size, const std::string& path);

  std::vector<char> buffer_;
  std::unique_ptr<GuardedMapping> mapping_;
  bool short_read_ = false;
  std::string_view view_;
};

}  // namespace ddx::formats
