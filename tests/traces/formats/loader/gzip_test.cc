#include "traces/formats/gzip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "traces/formats/loader.h"

namespace ddx::formats {
namespace {

using testing::HasSubstr;

std::string packed(const std::string& text) {
  z_stream z = {};
  if (::deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 9, Z_DEFAULT_STRATEGY) != Z_OK) throw std::bad_alloc();
  std::string out(::deflateBound(&z, static_cast<uLong>(text.size())), '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  if (::deflate(&z, Z_FINISH) != Z_STREAM_END) throw std::runtime_error("deflate");
  out.resize(z.total_out);
  ::deflateEnd(&z);
  return out;
}

// Text that does not pack well, so that cuts leave something.
std::string noise(std::size_t size) {
  std::string text(size, ' ');
  std::uint64_t state = 1;
  for (char& c : text) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    c = static_cast<char>('a' + (state >> 60));
  }
  return text;
}

TEST(Gzip, gives_back_what_was_packed) {
  for (const std::size_t size : {0U, 1U, 1000U, 3'000'000U}) {
    const std::string text = noise(size);
    const Unpacked out = gunzip(packed(text));
    EXPECT_EQ(out.end, Unpacked::End::whole);
    EXPECT_EQ(out.bytes, text);
  }
}

TEST(Gzip, members_follow_each_other_and_zeros_may_fill_the_end) {
  const Unpacked out = gunzip(packed("one ") + packed("two") + std::string(512, '\0'));
  EXPECT_EQ(out.end, Unpacked::End::whole);
  EXPECT_EQ(out.bytes, "one two");
  const Unpacked trailing = gunzip(packed("one") + "garbage");
  EXPECT_EQ(trailing.end, Unpacked::End::damaged);
  EXPECT_EQ(trailing.bytes, "one");
}

TEST(Gzip, every_cut_gives_the_beginning) {
  const std::string text = noise(3000), whole = packed(text);
  std::size_t most = 0;
  for (std::size_t size = 2; size < whole.size(); ++size) {
    const Unpacked out = gunzip(std::string_view(whole).substr(0, size));
    EXPECT_EQ(out.end, Unpacked::End::cut) << size;
    EXPECT_TRUE(text.starts_with(out.bytes)) << size;
    most = std::max(most, out.bytes.size());
  }
  EXPECT_EQ(most, text.size()) << "all but the check sum";
}

TEST(Gzip, every_flipped_byte_is_seen_or_harmless) {
  const std::string text = noise(300), whole = packed(text);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x15);
    const Unpacked out = gunzip(flipped);
    if (out.end != Unpacked::End::whole) continue;
    EXPECT_EQ(out.bytes, text) << at << ": only header fields that nobody reads may differ unseen";
  }
}

TEST(Gzip, what_expands_too_far_is_refused) {
  const std::string bomb = packed(std::string(4'000'000, 'a'));  // 1 to 1,000
  GzipLimits limits;
  limits.free = 1'000'000;
  limits.per_byte = 100;
  const Unpacked out = gunzip(bomb, limits);
  EXPECT_EQ(out.end, Unpacked::End::too_big);
  EXPECT_TRUE(out.bytes.empty());
  limits.per_byte = 2000;
  EXPECT_EQ(gunzip(bomb, limits).bytes.size(), 4'000'000U);
  limits.at_most = 1000;
  EXPECT_EQ(gunzip(bomb, limits).end, Unpacked::End::too_big);
}

// What is packed behind it does not make room for a bomb in front.
TEST(Gzip, a_bomb_is_seen_where_it_stands) {
  const std::string bomb = packed(std::string(20'000'000, 'a')), rest = packed(noise(2'000'000));
  GzipLimits limits;
  limits.free = 1'000'000;
  limits.per_byte = 100;
  const Unpacked out = gunzip(bomb + rest, limits);
  EXPECT_EQ(out.end, Unpacked::End::too_big);
  EXPECT_LT(out.at, bomb.size()) << "within the bomb, by what was read of it";
  EXPECT_EQ(gunzip(rest + bomb, limits).end, Unpacked::End::whole) << "by then enough was read";
}

class GzipFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("ddx_gzip_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  Evidence load_file(const std::string& name, const std::string& bytes) const {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << bytes;
    return load({path}, {});
  }
  std::filesystem::path folder_;
};

TEST_F(GzipFile, is_read_like_what_it_holds) {
  const std::string table = "rank,op,peer,count\n0,send,1,5\n1,recv,0,5\n";
  EXPECT_EQ(load_file("calls.csv.gz", packed(table)).inputs.front().format, "op-table");
  EXPECT_EQ(load_file("case.ops.gz", packed("world 2\n0 barrier\n")).inputs.front().format, "ops");
}

TEST_F(GzipFile, that_is_cut_is_read_as_far_as_it_goes) {
  std::string table = "rank,op,peer,count\n";
  for (int i = 0; i < 2000; ++i) table += "0,send,1," + std::to_string(i * 7919 % 100003) + "\n";
  const std::string whole = packed(table);
  const Evidence evidence = load_file("calls.csv.gz", whole.substr(0, whole.size() / 2));
  EXPECT_EQ(evidence.diagnostics.count_of("load.gzip_cut"), 1U);
  const std::size_t rows = evidence.trace.program(evidence.trace.ranks.at(0)).size();
  EXPECT_GT(rows, 100U);
  EXPECT_LT(rows, 2000U);
}

TEST_F(GzipFile, a_packed_archive_must_be_unpacked) {
  std::string archive(1024, '\0');
  archive.replace(257, 5, "ustar");
  const Evidence evidence = load_file("dumps.tar.gz", packed(archive));
  EXPECT_THAT(evidence.inputs.front().note, HasSubstr("compressed (tar, inside gzip): unpack it first"));
}

TEST_F(GzipFile, a_bomb_is_left_out_with_a_reason) {
  const Evidence evidence = load_file("bomb.json.gz", packed(std::string(100'000'000, '0')));
  EXPECT_THAT(evidence.inputs.front().note, HasSubstr("a size that traces do not have"));
  EXPECT_EQ(evidence.diagnostics.count_of("load.compressed_file"), 1U);
}

}  // namespace
}  // namespace ddx::formats
