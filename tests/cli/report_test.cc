#include "cli/report/report.h"

#include <gtest/gtest.h>

#include "tests/cli/sample_report.h"

namespace ddx::cli {
namespace {

// Two ranks of a world of four have a record, a third a log line.
Evidence three_of_four() {
  Evidence evidence;
  evidence.trace.world_size = 4;
  evidence.trace.programs.emplace_back();
  for (std::int32_t rank : {0, 2}) {
    RankRecord record;
    record.rank = RankId(rank);
    evidence.trace.ranks.push_back(record);
  }
  LogEvent event;
  event.rank = RankId(1);
  evidence.events.push_back(event);
  return evidence;
}

Finding of(Severity severity, const std::string& code = "timeout") {
  Finding finding;
  finding.severity = severity;
  finding.code = code;
  return finding;
}

TEST(Report, KnowsWhoIsSeenAndWhoIsAbsent) {
  const Report report = make_report("analyze", three_of_four(), {});
  EXPECT_EQ(report.ranks_seen, (RankSet{RankId(0), RankId(1), RankId(2)}));
  EXPECT_EQ(report.ranks_absent, (RankSet{RankId(3)}));
}

TEST(Report, MembersOfGroupsAreExpectedWhereNoWorldIsStated) {
  Evidence evidence = three_of_four();
  evidence.trace.world_size.reset();
  Communicator comm;
  comm.members = {RankId(0), RankId(9)};
  evidence.trace.intern(comm);
  EXPECT_EQ(make_report("analyze", evidence, {}).ranks_absent, (RankSet{RankId(9)}));
}

TEST(Report, ACorruptWorldSizeCostsNoMemory) {
  Evidence evidence = three_of_four();
  evidence.trace.world_size = 4'294'967'295;
  const Report report = make_report("analyze", evidence, {});
  EXPECT_TRUE(report.ranks_absent.empty());
  EXPECT_EQ(report.world_size, 4'294'967'295);
}

TEST(Report, VerdictFollowsTheWorstFinding) {
  const auto verdict = [](std::vector<Finding> findings) {
    return make_report("analyze", three_of_four(), std::move(findings)).verdict;
  };
  EXPECT_EQ(verdict({}), Verdict::clean);
  EXPECT_EQ(verdict({of(Severity::info)}), Verdict::clean);
  EXPECT_EQ(verdict({of(Severity::info, "inconclusive")}), Verdict::inconclusive);
  EXPECT_EQ(verdict({of(Severity::info, "inconclusive"), of(Severity::warning)}), Verdict::warning);
  EXPECT_EQ(verdict({of(Severity::info), of(Severity::error), of(Severity::warning)}), Verdict::error);
}

TEST(Report, NothingReadableDoesNotSuffice) {
  Evidence evidence;
  evidence.inputs.push_back({"a.bin", "unknown", {}, {}, "no format", false});
  const Report report = make_report("analyze", evidence, {});
  EXPECT_FALSE(report.sufficient);
  EXPECT_EQ(report.verdict, Verdict::inconclusive);
}

TEST(Report, FailsAtOrAboveTheThreshold) {
  Report report;
  report.findings = {of(Severity::warning)};
  EXPECT_FALSE(fails(report, Severity::error));
  EXPECT_TRUE(fails(report, Severity::warning));
  EXPECT_TRUE(fails(report, Severity::info));
  EXPECT_FALSE(fails(report, std::nullopt));
}

}  // namespace
}  // namespace ddx::cli
