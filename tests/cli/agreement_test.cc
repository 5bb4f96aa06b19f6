// Verbs and nouns agree with what they stand beside, whatever the numbers are: in all that is said of all cases here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "cli/app.h"

namespace ddx::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// What is wrong in `text`; empty: nothing.
std::string disagreement(const std::string& text) {
  static const std::regex kWrong(
      // several ranks and a verb for one
      "\\b[Rr]anks [0-9][-0-9,]*(,\\.\\.\\. \\([0-9,]+ ranks\\))? "
      "(is|was|has|does|waits|makes|names|reports|calls|speaks|stops|answers|it)\\b"
      // one thing of several ranks
      "|\\b([Tt]he|a) (dump|record|log|ring|device|process) of ranks\\b"
      // one rank and a verb for several
      "|\\b[Rr]ank [0-9]+ (are|were|have|do|wait|make|report|speak|stop|they)\\b"
      // one of what is counted; but "rank 1 calls"
      "|(^|[(]|[^k] )1 "
      "(ranks|calls|dumps|files|records|groups|members|operations|restarts|places|errors)\\b"
      "|\\bnext one\\b"
      "|[0-9] (rank|dump|file|record|group|restart)\\(s\\)");
  std::smatch match;
  return std::regex_search(text, match, kWrong) ? match.str() : std::string();
}

TEST(Agreement, KnowsWhatIsWrong) {
  for (const char* wrong :
       {"ranks 0,1 was there", "Ranks 0-3 is cut", "1 calls", "the dump of ranks 0-3 is", "rank 3 wait for it",
        "the next one call", "2 file(s)", "all ranks agree: 1 calls in 1 group", "ranks 0,2,4,... (9 ranks) waits"}) {
    EXPECT_NE(disagreement(wrong), "") << wrong;
  }
  for (const char* right : {"ranks 0,1 were there", "rank 1 waits", "rank 1 calls it", "21 calls", "0,1 ranks",
                            "ranks 0,1 wait", "1 call", "the dumps of ranks 0-3 are", "one call", "seq 11 calls"}) {
    EXPECT_EQ(disagreement(right), "") << right;
  }
}

std::vector<fs::path> cases() {
  const fs::path tests = fs::path(DDX_SOURCE_DIR) / "tests";
  std::vector<fs::path> all;
  for (const char* room : {"cases/public", "analyzers/judges/cases", "e2e/data", "sim/data"}) {
    for (const auto& entry : fs::directory_iterator(tests / room)) all.push_back(entry.path());
  }
  std::sort(all.begin(), all.end());
  return all;
}

TEST(Agreement, HoldsInEveryFindingOfEveryCase) {
  std::size_t findings = 0;
  for (const fs::path& path : cases()) {
    std::ostringstream out, err;
    Console console{.out = out, .err = err};
    run({"analyze", path.string(), "--format", "json"}, console);
    const json report = json::parse(out.str());
    for (const json& finding : report["findings"]) {
      ++findings;
      for (const char* part : {"summary", "explanation", "advice"}) {
        EXPECT_EQ(disagreement(finding[part]), "") << path << ": " << finding[part];
      }
    }
  }
  EXPECT_GT(findings, 50U);
}

}  // namespace
}  // namespace ddx::cli
