#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "cli/closest.h"
#include "cli/explain_pages.h"
#include "cli/report/explain_report.h"

namespace ddx::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> page_codes() {
  std::vector<std::string> codes;
  for (const ExplainSection& section : explain_sections()) {
    for (const ExplainPage& page : section.pages) codes.emplace_back(page.code);
  }
  return codes;
}

struct DocumentRow {
  std::string code;  // the first cell
  std::string line;
};

std::vector<DocumentRow> document_rows() {
  std::ifstream file(std::string(DDX_SOURCE_DIR) + "/docs/findings.md");
  const std::regex row("^\\| `([a-z0-9-]+)` \\|");
  std::vector<DocumentRow> rows;
  for (std::string line; std::getline(file, line);) {
    std::smatch match;
    if (std::regex_search(line, match, row)) rows.push_back({match[1], line});
  }
  return rows;
}

std::vector<std::string> document_codes() {
  std::vector<std::string> codes;
  for (const DocumentRow& row : document_rows()) codes.push_back(row.code);
  return codes;
}

TEST(Explain, PagesAndDocumentHaveTheSameCodes) {
  EXPECT_THAT(page_codes(), testing::ElementsAreArray(document_codes()));
  EXPECT_GE(page_codes().size(), 90U);
}

TEST(Explain, ACodeStandsOnce) {
  const std::vector<std::string> codes = page_codes();
  EXPECT_EQ(std::set<std::string>(codes.begin(), codes.end()).size(), codes.size());
}

TEST(Explain, NoPageLeavesAPartOpen) {
  for (const ExplainSection& section : explain_sections()) {
    for (const ExplainPage& page : section.pages) {
      for (std::string_view part : {page.severity, page.meaning, page.ranks, page.how_to_know, page.usual_causes,
                                    page.what_to_do, page.what_it_is_not}) {
        EXPECT_GT(part.size(), 3U) << page.code;
      }
    }
  }
}

// Analyzers write codes as literals; a mistyped one would be a code that nobody can look up.
TEST(Explain, EveryCodeThatAnalyzersWriteHasAPage) {
  const std::regex literal("\"([a-z0-9]+(-[a-z0-9]+)+)\"");
  std::size_t seen = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(std::string(DDX_SOURCE_DIR) + "/analyzers")) {
    if (entry.path().extension() != ".cc") continue;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      for (std::sregex_iterator at(line.begin(), line.end(), literal), end; at != end; ++at) {
        EXPECT_NE(find_page((*at)[1].str()), nullptr) << (*at)[1] << " in " << entry.path();
        ++seen;
      }
    }
  }
  EXPECT_GT(seen, 0U);
}

// What the list says of this version is what the analyzers' sources say.
TEST(Explain, KnowsWhatThisVersionFinds) {
  std::string sources;
  for (const char* room : {"/analyzers", "/cli/commands", "/sim"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(std::string(DDX_SOURCE_DIR) + room)) {
      if (entry.path().extension() != ".cc") continue;
      std::ostringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      sources += text.str();
    }
  }
  for (const std::string& code : page_codes()) {
    EXPECT_EQ(is_found(*find_page(code)), sources.find('"' + code + '"') != std::string::npos) << code;
  }
  EXPECT_THAT(explain_list_text({.width = 300}), testing::HasSubstr("[not found by this version]\n"));
  EXPECT_THAT(explain_page_text(*find_page("rank-skipped"), {}), testing::Not(testing::HasSubstr("This version")));
}

TEST(Explain, TheDocumentMarksWhatThisVersionDoesNotFind) {
  for (const DocumentRow& row : document_rows()) {
    ASSERT_NE(find_page(row.code), nullptr) << row.code;
    const bool marked = row.line.find("*(not found by this version)* |") != std::string::npos;
    EXPECT_EQ(marked, !is_found(*find_page(row.code))) << row.line;
  }
}

TEST(Explain, FindsAPageByItsCode) {
  ASSERT_NE(find_page("rank-skipped"), nullptr);
  EXPECT_EQ(find_page("rank-skipped")->severity, "error");
  EXPECT_EQ(find_page("rank-skippe"), nullptr);
  EXPECT_EQ(find_page(""), nullptr);
}

TEST(Closest, ProposesWhatWasMeant) {
  EXPECT_THAT(closest("analyse", {"analyze", "info", "explain", "convert"}), ElementsAre("analyze"));
  EXPECT_THAT(closest("mismatch-sizes", {"mismatch-size", "mismatch-type", "p2p-size"}),
              ElementsAre("mismatch-size", "mismatch-type"));
  EXPECT_THAT(closest("size", {"mismatch-size", "p2p-cycle"}), ElementsAre("mismatch-size")) << "a part of a code";
  EXPECT_THAT(closest("p2p", page_codes()), testing::Contains("p2p-unmatched")) << "all that hold it";
  EXPECT_THAT(closest("zzzzzz", {"analyze", "info"}), IsEmpty());
  EXPECT_THAT(closest("", {"a"}), IsEmpty());
  EXPECT_THAT(closest(std::string(100'000, 'a'), {"a"}), IsEmpty());
}

}  // namespace
}  // namespace ddx::cli
