#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/report/printable.h"
#include "tests/cli/sample_report.h"

namespace ddx::cli {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(TextReporter, AnswersFirstThenWhyThenWhatIsMissing) {
  EXPECT_EQ(render_text(sample_report(), {.width = 80}),
            R"(ERROR  rank 3 skipped one all_reduce (group pg0, seq 812): 7 ranks wait for it
  what   rank-skipped, confidence high, group pg0, seq 812
  who    rank 3; ranks 0-2,4-7 wait
  why    From 812 on rank 3 is one ahead.
         The circle:
           rank 3 waits for rank 0
  seen   fr/rank_3:12: all_gather f32 x 64
         fr/rank_0: all_reduce f32 x 64
  do     Let all ranks call it, or none.

INFO  no dump of rank 7
  what   evidence-missing, confidence medium
  do     Collect it.

What the evidence does not hold:
  - nothing from ranks 1,2,4-7 of 8
  - 1 file that could not be read: fr/secret (cannot be opened: Permission
    denied)
  - 1 file read in part: fr/rank_3 (cut at byte 90)
  - 1 file left out: fr/readme (no format that ddx knows)
  - 1 x flight_recorder.truncated_file: fr/rank_3 at byte 90: cut

Verdict: error (1 error, 0 warnings, 1 note); 2 of 8 ranks seen in 4 files.
         More: ddx explain rank-skipped
)");
}

TEST(TextReporter, QuietIsOneLineAFinding) {
  EXPECT_EQ(render_text(sample_report(), {.quiet = true}),
            "ERROR  rank 3 skipped one all_reduce (group pg0, seq 812): 7 ranks wait for it\n"
            "INFO  no dump of rank 7\n");
}

TEST(TextReporter, CleanAndInsufficientSaySo) {
  Report report;
  report.command = "analyze";
  report.ranks_seen = RankSet::range(RankId(0), RankId(7));
  EXPECT_THAT(render_text(report, {}), StartsWith("CLEAN  nothing wrong found in the evidence of 8 ranks\n"));
  const Report nothing = no_evidence_report("analyze", "/nope: cannot be found");
  EXPECT_THAT(render_text(nothing, {}), StartsWith("INCONCLUSIVE  the evidence does not suffice to judge"));
  EXPECT_THAT(render_text(nothing, {}), HasSubstr("/nope: cannot be found"));
}

TEST(TextReporter, ColoursOnlyWhereAsked) {
  EXPECT_THAT(render_text(sample_report(), {}), Not(HasSubstr("\x1b")));
  EXPECT_THAT(render_text(sample_report(), {.color = true}), StartsWith("\x1b[1;31mERROR\x1b[0m  "));
}

TEST(TextReporter, ManyRanksAreRangesAndManyFindingsAreCounted) {
  Report report = sample_report();
  Finding finding = skipped();
  finding.victims = RankSet::range(RankId(0), RankId(4095)).without({RankId(3)});
  report.findings.assign(23, finding);
  report.findings.insert(report.findings.end(), 2, note());
  const std::string text = render_text(report, {});
  EXPECT_THAT(text, HasSubstr("rank 3; ranks 0-2,4-4095 wait"));
  EXPECT_THAT(text, HasSubstr("And more: 2 of evidence-missing, 3 of rank-skipped (--verbose shows them)"));
  EXPECT_LT(text.size(), 20'000U);
  const std::string all = render_text(report, {.verbose = true});
  EXPECT_THAT(all, Not(HasSubstr("And more:")));
}

TEST(TextReporter, LongPartsAreCutUnlessVerbose) {
  Report report = sample_report();
  Finding& finding = report.findings.front();
  finding.explanation.clear();
  for (int i = 0; i < 60; ++i) finding.explanation += "line " + std::to_string(i) + "\n";
  finding.evidence.assign(9, {"a.log", 1, std::string(1000, 'y')});
  const std::string text = render_text(report, {});
  EXPECT_THAT(text, HasSubstr("line 39\n         ... (20 lines more, --verbose shows them)\n"));
  EXPECT_THAT(text, Not(HasSubstr("line 40")));
  EXPECT_THAT(text, HasSubstr("... and 5 more (--verbose shows them)"));
  EXPECT_THAT(text, Not(HasSubstr(std::string(400, 'y'))));
  EXPECT_THAT(render_text(report, {.verbose = true}), HasSubstr("line 59"));
}

TEST(TextReporter, NothingFromInputReachesTheTerminalUnfiltered) {
  for (const std::string& hostile : hostile_strings()) {
    const std::string text = render_text(hostile_report(hostile), {.verbose = true});
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint point = code_point_at(text, at);
      EXPECT_FALSE((point.value < 0x20 && point.value != '\n') || (point.value >= 0x7f && point.value < 0xa0))
          << "control character in: " << text.substr(at > 20 ? at - 20 : 0, 40);
      EXPECT_FALSE(point.value == 0xfffd && text.compare(at, 3, "\xef\xbf\xbd") != 0) << "bytes that are no UTF-8";
      EXPECT_NE(point.value, U'\u202e');
      at += point.length;
    }
  }
}

TEST(TextReporter, LinesKeepToTheWidth) {
  for (std::size_t width : {40U, 60U, 100U}) {
    const std::string text = render_text(sample_report(), {.width = width});
    std::size_t begin = 0;
    while (begin < text.size()) {
      const std::size_t end = text.find('\n', begin);
      EXPECT_LE(end - begin, width) << text.substr(begin, end - begin);
      begin = end + 1;
    }
  }
}

TEST(Printable, RemovesWhatMovesTheCursor) {
  EXPECT_EQ(printable_line("\x1b[1;31mred\x1b[0m"), "red");
  EXPECT_EQ(printable_line("\x1b]0;title\atext"), "text");
  EXPECT_EQ(printable_line("\x1b]8;;http://x\x1b\\link"), "link");
  EXPECT_EQ(printable_line("a\nb\tc\rd"), "a b cd");
  EXPECT_EQ(printable_lines("a\nb"), "a\nb");
  EXPECT_EQ(printable_lines("\x1b]0;never ends\nnext"), "\nnext") << "an open sequence ends with its line";
  EXPECT_EQ(printable_line("\xe2\x80\xae"
                           "abc"),
            "abc")
      << "direction override";
  EXPECT_EQ(printable_line("\xc2\x9b"
                           "31m"),
            "31m")
      << "C1 control";
  EXPECT_EQ(printable_line("gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f");
}

TEST(Printable, ReplacesWhatIsNoUtf8) {
  const std::string replaced = "\xef\xbf\xbd";
  EXPECT_EQ(printable_line("\xff"), replaced);
  EXPECT_EQ(printable_line("\xc3"), replaced) << "cut";
  EXPECT_EQ(printable_line("\xc0\x80"), replaced + replaced) << "overlong";
  EXPECT_EQ(printable_line("\xed\xa0\x80"), replaced + replaced + replaced) << "surrogate";
  EXPECT_EQ(printable_line("\xf4\x90\x80\x80"), replaced + replaced + replaced + replaced) << "above U+10FFFF";
}

TEST(Printable, ShortensByCodePoints) {
  EXPECT_EQ(shortened("abcdef", 6), "abcdef");
  EXPECT_EQ(shortened("abcdefg", 6), "abc...");
  EXPECT_EQ(shortened("\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f"
                      "efg",
                      6),
            "\xc3\xa4\xc3\xb6\xc3\xbc...");
}

}  // namespace
}  // namespace ddx::cli
