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

TEST(Report, CountsRecordsOfNoKnownRank) {
  Evidence evidence = three_of_four();
  EXPECT_EQ(make_report("analyze", evidence, {}).unnumbered, 0U);
  evidence.trace.ranks.front().rank.reset();
  EXPECT_EQ(make_report("analyze", evidence, {}).unnumbered, 1U);
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

// Dumps of `recorded` of a world of `world` ranks, each with one call that is over.
Evidence dumps(std::uint32_t world, std::int32_t recorded) {
  Evidence evidence;
  evidence.trace.world_size = world;
  Op op;
  op.signature = evidence.trace.intern(Signature());
  op.state = OpState::completed;
  evidence.trace.programs.emplace_back().append(op);
  for (std::int32_t rank = 0; rank < recorded; ++rank) {
    RankRecord& record = evidence.trace.ranks.emplace_back();
    record.rank = RankId(rank);
    record.snapshot = true;
  }
  return evidence;
}

Evidence log_of(LogFact fact) {
  Evidence evidence;
  evidence.inputs.push_back({"train.log", "log", {}, {}, "", false});
  evidence.events.emplace_back().fact = std::move(fact);
  return evidence;
}

std::string reason(const Evidence& evidence, std::vector<Finding> findings = {}) {
  const Report report = make_report("analyze", evidence, std::move(findings));
  EXPECT_EQ(report.sufficient, report.reason.empty());
  EXPECT_EQ(report.verdict == Verdict::inconclusive, !report.sufficient) << "these have no louder finding";
  return report.reason;
}

TEST(Sufficiency, HalfOfTheRanksProveNothing) {
  EXPECT_EQ(reason(dumps(8, 8)), "");
  EXPECT_EQ(reason(dumps(8, 5)), "") << "3 of 8 are missing";
  EXPECT_EQ(reason(dumps(8, 4)), "there is no record of 4 of 8 ranks (4-7)");
  EXPECT_EQ(reason(dumps(8, 1), {of(Severity::info, "evidence-missing")}), "there is no record of 7 of 8 ranks (1-7)");
  Evidence progress = dumps(8, 1);
  for (std::int32_t rank = 0; rank < 8; ++rank) {
    LogEvent& event = progress.events.emplace_back();
    event.rank = RankId(rank);
    event.fact = ProgressNotice{"step 1"};
  }
  EXPECT_NE(reason(progress), "") << "a line of progress is no record";
}

TEST(Sufficiency, AFindingOutweighsWhatIsMissing) {
  const Report report = make_report("analyze", dumps(8, 1), {of(Severity::error)});
  EXPECT_EQ(report.verdict, Verdict::error);
  EXPECT_TRUE(report.sufficient);
  EXPECT_EQ(reason(log_of(IdleNotice{"queue empty", {}}), {of(Severity::info, "no-fault")}), "");
}

TEST(Sufficiency, ACutRecordProvesNothing) {
  Evidence evidence = dumps(4, 4);
  evidence.trace.ranks[2].head_lost = true;
  EXPECT_EQ(reason(evidence), "") << "a ring that overran is the recorder's normal state";
  evidence.trace.ranks[2].tail_lost = true;
  EXPECT_EQ(reason(evidence), "the record of rank 2 is cut, and what came after is unknown");
  Evidence lost = dumps(4, 3);
  lost.inputs.push_back({"rank_3", "flight-recorder-pickle", {}, {}, "cut at byte 90", true});
  EXPECT_EQ(reason(lost), "rank_3: cut at byte 90");
}

TEST(Sufficiency, WhatShowsThatAJobRanShowsNoMore) {
  EXPECT_NE(reason(log_of(ProgressNotice{"step 1 loss 2"})), "");
  EXPECT_NE(reason(log_of(RankAddress{RankId(0), "node-a", "192.0.2.1"})), "");
  EXPECT_NE(reason(log_of(LibraryVersion{"2.21.5"})), "");
  EXPECT_EQ(reason(log_of(WatchdogTimeout{})), "") << "analyzers judge that";
  Evidence empty = dumps(2, 2);
  empty.trace.programs[0] = Program();
  EXPECT_NE(reason(empty), "") << "records without a call";
}

TEST(Sufficiency, SaysWhatIsTheMatter) {
  const auto only = [](std::string format, std::string note, bool unreadable) {
    Evidence evidence;
    evidence.inputs.push_back({"x", std::move(format), {}, {}, std::move(note), unreadable});
    return reason(evidence);
  };
  EXPECT_EQ(only("unknown", "cannot be found: No such file or directory", true),
            "x: cannot be found: No such file or directory");
  EXPECT_EQ(only("unknown", "compressed (gzip): unpack it first", false), "x: compressed (gzip): unpack it first");
  EXPECT_EQ(only("unknown", "empty file", false), "the file is empty");
  EXPECT_EQ(only("unknown", "no format that ddx knows", false), "nothing in it speaks of a job");
  EXPECT_EQ(only("launch", "", false),
            "it says how the job is launched, not what its ranks did: give their dumps and logs");
  EXPECT_EQ(reason(Evidence()), "there is no file in what was given");
  Evidence refused;
  refused.diagnostics.count("replay.refused", DiagnosticSeverity::data_loss, "too many operations");
  EXPECT_EQ(reason(refused), "too many operations");
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
