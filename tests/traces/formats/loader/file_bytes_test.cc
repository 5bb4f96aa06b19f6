#include "traces/formats/file_bytes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace ddx::formats {
namespace {

constexpr std::size_t kMapped = std::size_t{65} << 20;  // files of this size are mapped, not copied

class FileBytesTest : public testing::Test {
 protected:
  FileBytesTest() : path_(testing::TempDir() + "ddx_file_bytes_" + std::to_string(::getpid())) {}
  ~FileBytesTest() override { std::filesystem::remove(path_); }
  void write(std::size_t size) const { std::ofstream(path_, std::ios::binary) << std::string(size, 'x'); }
  void cut(std::size_t size) const { std::filesystem::resize_file(path_, size); }

  std::string path_;
};

TEST_F(FileBytesTest, holds_the_whole_file) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{5}, kMapped}) {
    write(size);
    const FileBytes file(path_);
    EXPECT_EQ(file.view().size(), size);
    EXPECT_EQ(std::count(file.view().begin(), file.view().end(), 'x'), static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(file.was_cut());
  }
}

// Log rotation truncates in place; reading a mapping of what is gone would end the process.
TEST_F(FileBytesTest, a_large_file_cut_while_it_is_read_ends_in_zeros) {
  constexpr std::size_t kLeft = 1 << 20;
  write(kMapped);
  const FileBytes file(path_);
  cut(kLeft);
  EXPECT_EQ(file.view().size(), kMapped);
  EXPECT_EQ(std::count(file.view().begin(), file.view().end(), 'x'), std::ptrdiff_t{kLeft});
  EXPECT_EQ(file.view().back(), '\0');
  EXPECT_TRUE(file.was_cut());
}

TEST_F(FileBytesTest, each_thread_guards_its_own_file) {
  write(kMapped);
  const FileBytes outer(path_);
  bool inner_cut = false;
  std::thread([&] {
    const std::string path = path_ + "_2";
    std::ofstream(path, std::ios::binary) << std::string(kMapped, 'y');
    const FileBytes inner(path);
    std::filesystem::resize_file(path, 0);
    EXPECT_EQ(std::count(inner.view().begin(), inner.view().end(), 'y'), 0);
    inner_cut = inner.was_cut();
    std::filesystem::remove(path);
  }).join();
  EXPECT_TRUE(inner_cut);
  EXPECT_EQ(outer.view().back(), 'x');
  EXPECT_FALSE(outer.was_cut());
}

}  // namespace
}  // namespace ddx::formats
