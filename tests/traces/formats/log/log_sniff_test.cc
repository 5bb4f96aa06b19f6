#include <gtest/gtest.h>

#include "tests/traces/formats/log/log_test_support.h"

namespace ddx::formats {
namespace {

TEST(LogSniff, ByNameAndByLines) {
  using namespace std::string_view_literals;
  const auto sniff = [](const std::string& path, std::string_view head) { return log_importer().sniff(path, head); };
  EXPECT_EQ(sniff("job.log", "anything"), Sniff::likely);
  EXPECT_EQ(sniff("job.err", "anything"), Sniff::likely);
  EXPECT_EQ(sniff("slurm-4711.out", "anything"), Sniff::likely);
  EXPECT_EQ(sniff("ras.txt", "#0-0 (00000000deadbeef) MISMATCH\n"), Sniff::likely);
  EXPECT_EQ(sniff("notes.txt", "dear diary"), Sniff::maybe);
  EXPECT_EQ(sniff("output", "Traceback (most recent call last):\n"), Sniff::maybe);
  EXPECT_EQ(sniff("output", "dear diary"), Sniff::no);
  EXPECT_EQ(sniff("README.md", "Watchdog caught collective operation timeout"), Sniff::no);
  EXPECT_EQ(sniff("job.log", ""), Sniff::no);
  EXPECT_EQ(sniff("job.log", "\x80\x02}q\x00(X\x07\x00\x00\x00versionq\x01X\x03\x00\x00\x00"sv), Sniff::no);
  EXPECT_EQ(sniff("job.log", "a\x1b[31mred\x1b[0m\r\nM\xc3\xbcnchen \xff cut\n a long enough text around the bad byte"),
            Sniff::likely);
}

TEST(LogSniff, OlderLogsKeepTheirName) {
  for (const char* path :
       {"train.log.1", "train.log.12", "train.log.1.", "job.out.3", "job.err.2", "job.log-20261129",
        "job.log.2026-11-29", "job.log.old", "job.log.1.bak", "JOB.LOG.1", "run.o4711", "run.e4711"}) {
    EXPECT_EQ(log_importer().sniff(path, "anything"), Sniff::likely) << path;
  }
  for (const char* path : {"train.1", "weights.old", "main.o", "a.b.c"}) {
    EXPECT_EQ(log_importer().sniff(path, "anything"), Sniff::no) << path;
  }
}

TEST(LogSniff, HolesOfZerosDoNotMakeALogUnknown) {
  const std::string hole(30'000, '\0');
  EXPECT_EQ(log_importer().sniff("job.log", "step 1\n" + hole), Sniff::likely) << "a node crashed";
  EXPECT_EQ(log_importer().sniff("job.log", hole + "step 1\n"), Sniff::likely) << "cut short under its writer";
  EXPECT_EQ(log_importer().sniff("job.log", hole), Sniff::no);
  std::string wide;
  for (char c : std::string("some text\n")) wide += {c, '\0'};
  EXPECT_EQ(log_importer().sniff("job.log", wide), Sniff::no);
}

}  // namespace
}  // namespace ddx::formats
