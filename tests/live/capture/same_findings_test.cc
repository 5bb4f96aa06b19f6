// Recorded jobs, once as PyTorch's recorder dumped them and once with those records as captures: the same is found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "analyzers/analyzer.h"
#include "tests/support/scratch_folder.h"
#include "traces/formats/ddx.h"
#include "traces/formats/loader.h"

namespace ddx {
namespace {

namespace fs = std::filesystem;
using ::testing::SizeIs;

std::vector<std::string> told(const Evidence& evidence) {
  std::vector<std::string> out;
  for (const Finding& finding : analyzers::analyze(evidence)) {
    if (finding.severity == Severity::info) continue;
    out.push_back(finding.code + " of " + finding.ranks.label() + ", victims " + finding.victims.label());
  }
  return out;
}

// The folder of a job without its dumps, and a capture for each of these; or with both.
void copy_job(const fs::path& job, const fs::path& to, bool dumps_too) {
  fs::copy(job, to, fs::copy_options::recursive);
  const Evidence evidence = formats::load({job.string()}, {});
  for (const RankRecord& record : evidence.trace.ranks) {
    if (!record.snapshot) continue;
    formats::write_ddx(evidence.trace, record, to / ("host-" + std::to_string(record.rank->value) + ".ddx"));
    if (!dumps_too) fs::remove(to / fs::path(evidence.path(record.input)).filename());
  }
}

TEST(Captures, SayWhatDumpsSay) {
  std::size_t jobs = 0;
  for (const auto& job : fs::directory_iterator(DDX_SOURCE_DIR "/tests/e2e/data")) {
    const std::vector<std::string> expected = told(formats::load({job.path().string()}, {}));
    for (const bool dumps_too : {false, true}) {
      const testing::ScratchFolder folder;
      copy_job(job.path(), folder.path("job"), dumps_too);
      const Evidence evidence = formats::load({folder.path("job")}, {});
      EXPECT_EQ(told(evidence), expected) << job.path() << (dumps_too ? " with the dumps beside" : "");
      EXPECT_EQ(evidence.diagnostics.count_of("ddx.dump_set_aside") > 0, dumps_too) << job.path();
      EXPECT_THAT(evidence.trace.ranks, SizeIs(::testing::Le(4U)));
    }
    ++jobs;
  }
  EXPECT_GE(jobs, 12U);
}

}  // namespace
}  // namespace ddx
