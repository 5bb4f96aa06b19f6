#include "traces/formats/process_report.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/traces/formats/log/log_test_support.h"

namespace ddx::formats {
namespace {

std::string report(const std::string& rows) {
  return "{\"schema\": \"ddx.processes/1\", \"processes\": [\n" + rows + "\n]}\n";
}

// One process, as wrap writes it.
std::string row(int pid, const std::string& rank, const std::string& code, const std::string& signal,
                const std::string& more = "\"helper\": false, \"ended_by\": null") {
  return "{\"pid\": " + std::to_string(pid) + ", \"parent\": 1, \"rank\": " + rank +
         ", \"host\": \"node-a\", \"exit_code\": " + code + ", \"signal\": " + signal + ", " + more +
         ", \"started\": \"1970-01-01T00:00:01.000Z\", \"ended\": \"1970-01-01T00:00:07.250Z\"}";
}

std::vector<LogEvent> ends(const std::string& rows) {
  return events_of<ProcessEnd>(read_as(process_report_importer(), report(rows), "processes.json"));
}

TEST(ProcessReport, IsKnownByItsSchema) {
  const Importer importer = process_report_importer();
  EXPECT_EQ(importer.sniff("x", report("")), Sniff::sure);
  EXPECT_EQ(importer.sniff("processes.json", "{\"schema\": \"ddx.report/1\"}"), Sniff::no);
}

TEST(ProcessReport, TellsOfSignalsAndExitCodes) {
  const auto found = ends(row(40, "null", "1", "null") + ",\n" + row(41, "0", "0", "null") + ",\n" +
                          row(42, "1", "null", "9") + ",\n" + row(43, "2", "3", "null"));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].rank, RankId(1));
  EXPECT_EQ(found[0].pid, 42);
  EXPECT_EQ(found[0].host, "node-a");
  EXPECT_EQ(found[0].line, 4U);
  EXPECT_EQ(found[0].time, 7 * kSecond + 250 * kMillisecond);
  EXPECT_EQ(std::get<ProcessEnd>(found[0].fact).signal, 9);
  EXPECT_EQ(std::get<ProcessEnd>(found[0].fact).kind, ProcessEnd::Kind::signal);
  EXPECT_EQ(found[1].rank, RankId(2));
  EXPECT_EQ(std::get<ProcessEnd>(found[1].fact).exit_code, 3);
}

TEST(ProcessReport, HelpersAndWhatWrapEndedAreNobodysFault) {
  EXPECT_TRUE(ends(row(41, "0", "1", "null", "\"helper\": true, \"ended_by\": null")).empty());
  EXPECT_TRUE(ends(row(41, "0", "null", "9", "\"helper\": false, \"ended_by\": \"wrap\"")).empty());
  EXPECT_TRUE(ends(row(41, "0", "null", "null")).empty());  // how it ended is not known
}

TEST(ProcessReport, TellsOfWantOfMemory) {
  const auto found = ends(row(41, "0", "null", "9", "\"helper\": false, \"out_of_memory\": true"));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(std::get<ProcessEnd>(found[0].fact).kind, ProcessEnd::Kind::oom_kill);
}

TEST(ProcessReport, TheLaterAttemptSpeaksForARank) {
  EXPECT_TRUE(ends(row(41, "0", "null", "9") + ",\n" + row(51, "0", "0", "null")).empty());
}

TEST(ProcessReport, RefusesWhatIsNone) {
  for (const char* text : {"{\"schema\": \"ddx.processes/1\"}", "{\"schema\": \"ddx.processes/1\", \"processes\": 7}",
                           "{\"schema\": \"ddx.processes/1\", \"processes\": [", "\"ddx.processes/1\""}) {
    EXPECT_THROW(read_as(process_report_importer(), text, "x"), Error) << text;
  }
  EXPECT_TRUE(
      ends("7, null, {}, {\"rank\": \"1\"}, {\"rank\": -4, \"signal\": 9}, {\"rank\": 4000000000, \"signal\": 9}, "
           "{\"rank\": 1, \"helper\": 3, \"signal\": \"9\"}")
          .empty());
}

}  // namespace
}  // namespace ddx::formats
