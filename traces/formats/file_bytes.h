// FileBytes: a file's content in memory while it is read.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ddx::formats {

class FileBytes {
 public:
  // Throws Error (path, why) where the file cannot be opened or read, or is no regular file. Never waits on a pipe.
  explicit FileBytes(const std::string& path);
  ~FileBytes();
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  std::string_view view() const { return view_; }

 private:
  void read_all(int descriptor, std::size_t size, const std::string& path);

  std::vector<char> buffer_;
  void* mapping_ = nullptr;
  std::size_t mapped_ = 0;
  std::string_view view_;
};

}  // namespace ddx::formats
