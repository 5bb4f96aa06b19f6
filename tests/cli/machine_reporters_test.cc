#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "tests/cli/sample_report.h"
#include "tests/cli/well_formed.h"

namespace ddx::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// The sample report in the schema of docs/report-schema.json.
constexpr const char* kSampleJson = R"({
  "schema": "ddx.report/1",
  "command": "analyze",
  "verdict": "error",
  "inputs": [
    {
      "path": "fr/rank_0",
      "format": "flight-recorder-pickle",
      "ranks": [0]
    },
    {
      "path": "fr/rank_3",
      "format": "flight-recorder-pickle",
      "ranks": [3],
      "note": "cut at byte 90"
    },
    {
      "path": "fr/readme",
      "format": "unknown",
      "ranks": [],
      "note": "no format that ddx knows"
    },
    {
      "path": "fr/secret",
      "format": "unknown",
      "ranks": [],
      "note": "cannot be opened: Permission denied",
      "unreadable": true
    }
  ],
  "world_size": 8,
  "ranks_seen": [0, 3],
  "ranks_absent": [1, 2, 4, 5, 6, 7],
  "findings": [
    {
      "code": "rank-skipped",
      "severity": "error",
      "confidence": "high",
      "ranks": [3],
      "victims": [0, 1, 2, 4, 5, 6, 7],
      "subjects": ["group pg0", "seq 812"],
      "summary": "rank 3 skipped one all_reduce (group pg0, seq 812): 7 ranks wait for it",
      "explanation": "From 812 on rank 3 is one ahead.\nThe circle:\n  rank 3 waits for rank 0\n",
      "evidence": [
        {
          "path": "fr/rank_3",
          "line": 12,
          "text": "all_gather f32 x 64"
        },
        {
          "path": "fr/rank_0",
          "text": "all_reduce f32 x 64"
        }
      ],
      "advice": "Let all ranks call it, or none."
    },
    {
      "code": "evidence-missing",
      "severity": "info",
      "confidence": "medium",
      "ranks": [],
      "victims": [],
      "subjects": [],
      "summary": "no dump of rank 7",
      "explanation": "",
      "evidence": [],
      "advice": "Collect it."
    }
  ],
  "diagnostics": [
    {
      "name": "flight_recorder.truncated_file",
      "severity": "data-loss",
      "count": 1,
      "detail": "fr/rank_3 at byte 90: cut"
    },
    {
      "name": "load.unknown_file",
      "severity": "notice",
      "count": 1,
      "detail": "fr/readme: no format that ddx knows"
    },
    {
      "name": "load.unreadable_file",
      "severity": "data-loss",
      "count": 1,
      "detail": "fr/secret: cannot be opened"
    }
  ]
}
)";

TEST(JsonReporter, IsTheSchema) { EXPECT_EQ(render_json(sample_report(), {}), kSampleJson); }

TEST(JsonReporter, AnUnknownWorldIsNull) {
  Report report = sample_report();
  report.world_size.reset();
  EXPECT_TRUE(json::parse(render_json(report, {}))["world_size"].is_null());
}

// What section 3 of the SARIF 2.1.0 standard demands of the parts that ddx writes.
void check_sarif(const json& sarif) {
  ASSERT_EQ(sarif["version"], "2.1.0");
  ASSERT_EQ(sarif["runs"].size(), 1U);
  const json& run = sarif["runs"][0];
  const json& driver = run["tool"]["driver"];
  ASSERT_EQ(driver["name"], "ddx");
  for (const json& invocation : run["invocations"]) {
    EXPECT_TRUE(invocation["executionSuccessful"].is_boolean());
    for (const json& told : invocation.value("toolExecutionNotifications", json::array())) {
      EXPECT_TRUE(told["message"]["text"].is_string());
      EXPECT_TRUE(told["descriptor"]["id"].is_string());
    }
  }
  for (const json& rule : driver["rules"]) EXPECT_TRUE(rule["id"].is_string());
  for (const json& result : run["results"]) {
    ASSERT_TRUE(result["message"]["text"].is_string());
    const std::size_t index = result["ruleIndex"];
    ASSERT_LT(index, driver["rules"].size());
    EXPECT_EQ(driver["rules"][index]["id"], result["ruleId"]);
    EXPECT_THAT(std::string(result["level"]), testing::AnyOf("error", "warning", "note"));
    json locations = result.value("locations", json::array());
    for (const json& related : result.value("relatedLocations", json::array())) locations.push_back(related);
    for (const json& location : locations) {
      const std::string uri = location["physicalLocation"]["artifactLocation"]["uri"];
      EXPECT_TRUE(
          std::regex_match(uri.substr(0, 200), std::regex("(file://)?([A-Za-z0-9._~/-]|%[0-9A-F]{2})*%?[0-9A-F]?")))
          << uri;
      if (location["physicalLocation"].contains("region")) {
        EXPECT_GE(location["physicalLocation"]["region"]["startLine"], 1);
      }
    }
  }
}

TEST(SarifReporter, NamesRulesResultsAndPlaces) {
  const json sarif = json::parse(render_sarif(sample_report(), {}));
  check_sarif(sarif);
  const json& run = sarif["runs"][0];
  ASSERT_EQ(run["results"].size(), 2U);
  const json& result = run["results"][0];
  EXPECT_EQ(result["ruleId"], "rank-skipped");
  EXPECT_EQ(result["level"], "error");
  EXPECT_EQ(run["results"][1]["level"], "note");
  EXPECT_THAT(std::string(result["message"]["text"]), testing::StartsWith("rank 3 skipped one all_reduce"));
  EXPECT_EQ(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "fr/rank_3");
  EXPECT_EQ(result["locations"][0]["physicalLocation"]["region"]["startLine"], 12);
  EXPECT_EQ(result["locations"].size(), 1U) << "tools show a result at its first place alone";
  ASSERT_EQ(result["relatedLocations"].size(), 1U);
  EXPECT_EQ(result["relatedLocations"][0]["physicalLocation"]["artifactLocation"]["uri"], "fr/rank_0");
  EXPECT_FALSE(result["relatedLocations"][0]["physicalLocation"].contains("region"));
  EXPECT_EQ(run["results"][1]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "fr/rank_0")
      << "without evidence: the first input";
  EXPECT_EQ(result["properties"]["ranks"], json::array({3}));
  EXPECT_EQ(run["tool"]["driver"]["rules"].size(), 2U);
  EXPECT_EQ(run["invocations"][0]["executionSuccessful"], true);
  EXPECT_EQ(run["invocations"][0]["toolExecutionNotifications"].size(), 3U);
}

TEST(SarifReporter, PathsBecomeUris) {
  Report report = sample_report();
  report.findings[0].evidence = {{"/logs/rank 3#.txt", 1, ""}, {"a/b%c", 0, "x"}};
  const json sarif = json::parse(render_sarif(report, {}));
  const json& result = sarif["runs"][0]["results"][0];
  const json& place = result["locations"][0]["physicalLocation"];
  const json& related = result["relatedLocations"][0]["physicalLocation"];
  EXPECT_EQ(place["artifactLocation"]["uri"], "file:///logs/rank%203%23.txt");
  EXPECT_EQ(related["artifactLocation"]["uri"], "a/b%25c");
  EXPECT_FALSE(related.contains("region")) << "there is no line 0";
}

TEST(SarifReporter, ACallSiteIsThePlace) {
  Report report = sample_report();
  report.findings[0].evidence = {
      {"fr/rank_1", {}, "rank 1: ended"},
      {"fr/rank_3", {}, "rank 3: all_gather f32 x 64 (group pg0), started, at /src/train.py:48 in step"},
      {"fr/rank_0", {}, "rank 0: all_reduce f32 x 64 (group pg0), started, at /src/train.py:39 in step"}};
  const json sarif = json::parse(render_sarif(report, {}));
  check_sarif(sarif);
  const json& result = sarif["runs"][0]["results"][0];
  ASSERT_EQ(result["locations"].size(), 1U);
  EXPECT_EQ(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "file:///src/train.py");
  EXPECT_EQ(result["locations"][0]["physicalLocation"]["region"]["startLine"], 48);
  EXPECT_EQ(result["relatedLocations"].size(), 3U);
  EXPECT_THAT(render_github(report, {}), testing::StartsWith("::error file=/src/train.py,line=48,title="));
  for (const char* none : {"ended, at noon", "x, at y:0 in z", "x, at y:-1", "x, at :7", "x, at y:99999999999"}) {
    report.findings[0].evidence = {{"fr/rank_3", {}, none}};
    EXPECT_THAT(render_github(report, {}), testing::StartsWith("::error file=fr/rank_3,title=")) << none;
  }
}

TEST(JunitReporter, AFindingIsACase) {
  EXPECT_EQ(render_junit(sample_report(), {}), R"(<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="ddx" tests="2" failures="1" errors="0" skipped="0">
  <testsuite name="ddx analyze" tests="2" failures="1" errors="0" skipped="0">
    <testcase classname="ddx.analyze" name="rank-skipped: rank 3 skipped one all_reduce (group pg0, seq 812): 7 ranks wait for it">
      <failure type="rank-skipped" message="rank 3 skipped one all_reduce (group pg0, seq 812): 7 ranks wait for it">confidence: high
at fault: rank 3
waiting: ranks 0-2,4-7
From 812 on rank 3 is one ahead.
The circle:
  rank 3 waits for rank 0
fr/rank_3:12: all_gather f32 x 64
fr/rank_0: all_reduce f32 x 64
Let all ranks call it, or none.
</failure>
    </testcase>
    <testcase classname="ddx.analyze" name="evidence-missing: no dump of rank 7">
      <system-out>confidence: medium
Collect it.
</system-out>
    </testcase>
    <system-err>1 x flight_recorder.truncated_file: fr/rank_3 at byte 90: cut
1 x load.unreadable_file: fr/secret: cannot be opened
</system-err>
  </testsuite>
</testsuites>
)");
}

TEST(JunitReporter, FailuresFollowFailOn) {
  const auto count = [](std::optional<Severity> fail_on) {
    const std::string xml = render_junit(sample_report(), {.fail_on = fail_on});
    std::size_t failures = 0;
    for (std::size_t at = xml.find("<failure"); at != std::string::npos; at = xml.find("<failure", at + 1)) ++failures;
    return failures;
  };
  EXPECT_EQ(count(Severity::error), 1U);
  EXPECT_EQ(count(Severity::info), 2U);
  EXPECT_EQ(count(std::nullopt), 0U);
}

TEST(JunitReporter, CleanPassesAndNoEvidenceIsAnError) {
  Report clean;
  clean.command = "analyze";
  EXPECT_THAT(render_junit(clean, {}), HasSubstr("tests=\"1\" failures=\"0\" errors=\"0\""));
  EXPECT_EQ(xml_problem(render_junit(clean, {})), "");
  const std::string nothing = render_junit(insufficient_report("x: cannot be found"), {});
  EXPECT_THAT(nothing, HasSubstr("tests=\"1\" failures=\"0\" errors=\"1\""));
  EXPECT_THAT(nothing, HasSubstr("message=\"the evidence does not suffice to judge: x: cannot be found\""));
  EXPECT_EQ(xml_problem(nothing), "");
}

TEST(GithubReporter, AFindingIsAnAnnotation) {
  EXPECT_EQ(
      render_github(sample_report(), {}),
      "::error file=fr/rank_3,line=12,title=ddx%3A rank-skipped [high confidence]::rank 3 skipped one all_reduce "
      "(group pg0, seq 812): 7 ranks wait for it%0Aat fault: rank 3%0Awaiting: ranks 0-2,4-7%0AFrom 812 on rank 3 is "
      "one ahead.%0AThe circle:%0A  rank 3 waits for rank 0%0ALet all ranks call it, or none.\n"
      "::notice file=fr/rank_0,title=ddx%3A evidence-missing [medium confidence]::no dump of rank 7%0ACollect it.\n"
      "::warning title=ddx%3A flight_recorder.truncated_file::1 x: fr/rank_3 at byte 90: cut\n"
      "::warning title=ddx%3A load.unreadable_file::1 x: fr/secret: cannot be opened\n");
}

TEST(GithubReporter, SaysSomethingWhereThereIsNoFinding) {
  Report clean;
  clean.command = "analyze";
  EXPECT_EQ(render_github(clean, {}), "::notice title=ddx analyze::nothing wrong found\n");
  EXPECT_EQ(render_github(insufficient_report("50% of\nit"), {}),
            "::warning title=ddx analyze::the evidence does not suffice to judge: 50%25 of it\n");
}

TEST(JsonReporter, IsPlainAscii) {
  for (const std::string& hostile : hostile_strings()) {
    for (const std::string& text :
         {render_json(hostile_report(hostile), {}), render_sarif(hostile_report(hostile), {})}) {
      for (const char c : text) ASSERT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f)) << static_cast<int>(c);
    }
  }
  Report report = sample_report();
  report.findings[0].summary = "\xc2\x9b \xe2\x80\xae \x7f \xf0\x9f\x92\xa5";
  EXPECT_THAT(render_json(report, {}), HasSubstr("\"\\u009b \\u202e \\u007f \\ud83d\\udca5\""));
}

TEST(JsonReporter, SaysWhyItIsInconclusive) {
  EXPECT_EQ(json::parse(render_json(insufficient_report("x: empty"), {}))["reason"], "x: empty");
  EXPECT_FALSE(json::parse(render_json(sample_report(), {})).contains("reason"));
}

class HostileText : public testing::TestWithParam<std::string> {};

TEST_P(HostileText, LeavesJsonWhole) {
  const json parsed = json::parse(render_json(hostile_report(GetParam()), {}));
  EXPECT_EQ(parsed["findings"].size(), 4U);
}

TEST_P(HostileText, LeavesSarifWhole) {
  const json sarif = json::parse(render_sarif(hostile_report(GetParam()), {}));
  check_sarif(sarif);
  EXPECT_EQ(sarif["runs"][0]["results"].size(), 4U);
}

TEST_P(HostileText, LeavesXmlWellFormed) { EXPECT_EQ(xml_problem(render_junit(hostile_report(GetParam()), {})), ""); }

TEST_P(HostileText, LeavesAnnotationsOnTheirLines) {
  std::istringstream lines(render_github(hostile_report(GetParam()), {}));
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_TRUE(std::regex_search(line.substr(0, 10), std::regex("^::(error|warning|notice)"))) << line;
    const std::size_t end = line.find("::", 2);
    ASSERT_NE(end, std::string::npos);
    // Properties are name=value lists; a bare colon or an extra comma would end or add one.
    EXPECT_EQ(line.substr(2, end - 2).find(':'), std::string::npos) << line;
    for (char c : line) EXPECT_FALSE(c >= 0 && c < 0x20) << "control character in " << line;
  }
  EXPECT_EQ(count, 7U) << "one line for each of 4 findings and 3 losses";
}

INSTANTIATE_TEST_SUITE_P(Strings, HostileText, testing::ValuesIn(hostile_strings()));

TEST(XmlProblem, SeesWhatIsWrong) {
  const std::string head = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  EXPECT_EQ(xml_problem(head + "<a b=\"c\"><d/>&lt;</a>\n"), "");
  for (const char* bad : {"<a>\n", "<a></b>\n", "<a b=c/>\n", "<a>&nbsp;</a>\n", "<a>\x01</a>\n", "<a b=\"<\"/>\n",
                          "<a/><b/>\n", "<a b=\"1\" b=\"2\"/>\n", "<a>\xff</a>\n"}) {
    EXPECT_NE(xml_problem(head + bad), "") << bad;
  }
}

}  // namespace
}  // namespace ddx::cli
