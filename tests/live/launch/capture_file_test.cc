#include "live/launch/capture_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "traces/capture/writer.h"

namespace ddx::live {
namespace {

class CaptureFileTest : public testing::Test {
 protected:
  CaptureFileTest() {
    path_ = testing::TempDir() + "ddx-capture-" + std::to_string(getpid()) + "-" +
            testing::UnitTest::GetInstance()->current_test_info()->name() + ".ddx";
    std::remove(path_.c_str());
    capture::Header identity{};
    identity.rank = 3;
    EXPECT_EQ(writer_.open(path_.c_str(), identity, {.ring_segments = 2}), 0);
  }
  ~CaptureFileTest() override {
    writer_.close();
    std::remove(path_.c_str());
  }
  std::uint64_t call(std::int64_t issue, std::uint8_t flags = 0, std::uint32_t group = 0, std::uint32_t seq = 0) {
    capture::Call call{};
    call.kind = static_cast<std::uint8_t>(capture::CallKind::all_reduce);
    call.issue = issue;
    call.flags = flags;
    call.group = group;
    call.seq = seq;
    return writer_.call(call, nullptr, 0, 0);
  }
  std::string path_;
  capture::Writer writer_;
};

TEST_F(CaptureFileTest, TellsWhichCallsAreOpen) {
  const auto file = CaptureFile::open(path_);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->header().rank, 3);
  const std::uint64_t first = call(100, 0, 7, 1);
  call(110, capture::kNoEnd);
  const std::uint64_t last = call(120, capture::kAsync, 7, 2);
  writer_.mark_end(first, 115);
  file->refresh();
  ASSERT_EQ(file->open_calls().size(), 1U);
  EXPECT_EQ(file->open_calls().begin()->second.seq, 2U);
  EXPECT_TRUE(file->open_calls().begin()->second.async);
  EXPECT_EQ(file->latest(7), 120);
  writer_.mark_end(last, 150);
  file->refresh();
  EXPECT_TRUE(file->open_calls().empty());
  EXPECT_EQ(file->latest(7), 150);
  EXPECT_EQ(file->calls(), 3U);
}

// Where two threads make a segment at once, one of the two may stay unused for ever.
TEST_F(CaptureFileTest, PassesOverASegmentThatNobodyUses) {
  call(100);
  call(120);
  std::ostringstream whole;
  whole << std::ifstream(path_, std::ios::binary).rdbuf();
  const std::string bytes = whole.str();
  const std::string with_gap = path_ + ".gap";
  std::ofstream(with_gap, std::ios::binary)
      << bytes.substr(0, capture::kHeaderBytes) << std::string(capture::kSegmentBytes, '\0')
      << bytes.substr(capture::kHeaderBytes);
  const auto file = CaptureFile::open(with_gap);
  ASSERT_TRUE(file);
  file->refresh();
  EXPECT_EQ(file->calls(), 2U);
  EXPECT_EQ(file->latest(), 120);
  std::remove(with_gap.c_str());
}

TEST_F(CaptureFileTest, FollowsTheRingAround) {
  const auto file = CaptureFile::open(path_);
  ASSERT_TRUE(file);
  // Three times the ring, looked at in unequal steps; every call ends but the last.
  const std::uint64_t count = 3 * 2 * capture::kSegmentRecords;
  for (std::uint64_t i = 1; i <= count; ++i) {
    const std::uint64_t id = call(static_cast<std::int64_t>(i));
    if (i < count) writer_.mark_end(id, static_cast<std::int64_t>(i));
    if (i % 7919 == 0) file->refresh();
  }
  file->refresh();
  EXPECT_EQ(file->latest(), static_cast<std::int64_t>(count));
  ASSERT_EQ(file->open_calls().size(), 1U);
  EXPECT_EQ(file->open_calls().begin()->second.issue, static_cast<std::int64_t>(count));
}

TEST_F(CaptureFileTest, NamesGroupsAndTheirRanks) {
  const auto file = CaptureFile::open(path_);
  ASSERT_TRUE(file);
  capture::Group even{};
  even.name = writer_.text("a name that is longer than one record of text has room for, by some letters");
  even.size = 3;
  even.first = 2;
  even.step = 2;
  const std::uint32_t regular = writer_.group(even, nullptr, 0);
  const std::int32_t ranks[] = {5, 1, 9, 2, 7, 3, 4, 8, 6, 0, 11, 10, 13, 12, 15, 14};
  capture::Group odd{};
  odd.size = 16;
  odd.first = 5;
  odd.step = 0;
  const std::uint32_t irregular = writer_.group(odd, ranks, 16);
  file->refresh();
  EXPECT_EQ(file->group(regular).name, "a name that is longer than one record of text has room for, by some letters");
  EXPECT_EQ(file->group(regular).ranks, (std::vector<std::int32_t>{2, 4, 6}));
  EXPECT_EQ(file->group(irregular).ranks, std::vector<std::int32_t>(std::begin(ranks), std::end(ranks)));
  EXPECT_TRUE(file->group(999'999).ranks.empty());
}

TEST_F(CaptureFileTest, RefusesWhatIsNone) {
  EXPECT_FALSE(CaptureFile::open(path_ + ".absent"));
  const std::string other = path_ + ".other";
  for (const std::string& bytes : {std::string(), std::string("ddxtrace"), std::string(8192, 'x')}) {
    std::ofstream(other, std::ios::trunc) << bytes;
    EXPECT_FALSE(CaptureFile::open(other));
  }
  std::remove(other.c_str());
}

TEST_F(CaptureFileTest, SurvivesAFileThatIsCutWhileItIsRead) {
  const auto file = CaptureFile::open(path_);
  ASSERT_TRUE(file);
  call(100);
  file->refresh();
  ASSERT_EQ(file->open_calls().size(), 1U);
  const std::string cut = path_ + ".cut";
  {
    std::ifstream from(path_, std::ios::binary);
    std::string head(capture::kHeaderBytes + 100, '\0');
    from.read(head.data(), static_cast<std::streamsize>(head.size()));
    std::ofstream(cut, std::ios::binary) << head;
  }
  const auto short_file = CaptureFile::open(cut);
  ASSERT_TRUE(short_file);
  short_file->refresh();
  EXPECT_TRUE(short_file->open_calls().empty());
  std::remove(cut.c_str());
}

}  // namespace
}  // namespace ddx::live
