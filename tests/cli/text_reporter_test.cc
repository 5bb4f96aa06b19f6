#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/report/printable.h"
#include "tests/cli/sample_report.h"
#include "tests/cli/well_formed.h"

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
  Report nothing = insufficient_report("/nope: cannot be found");
  const std::string says = "INCONCLUSIVE  the evidence does not suffice to judge: /nope: cannot be found\n";
  EXPECT_THAT(render_text(nothing, {}), StartsWith(says));
  EXPECT_EQ(render_text(nothing, {.quiet = true}), says);
  nothing.findings = {note()};
  EXPECT_THAT(render_text(nothing, {}), StartsWith(says + "\nINFO  no dump of rank 7\n")) << "beside a note too";
}

TEST(TextReporter, ColoursOnlyWhereAsked) {
  EXPECT_THAT(render_text(sample_report(), {}), Not(HasSubstr("\x1b")));
  EXPECT_THAT(render_text(sample_report(), {.color = true}), StartsWith("\x1b[1;31mERROR\x1b[0m  "));
}

TEST(TextReporter, ManyRanksAreRangesAndManyFindingsAreCounted) {
  Report report = sample_report();
  Finding finding = skipped();
  finding.victims = RankSet::range(RankId(0), RankId(4095)).without({RankId(3)});
  report.findings.clear();
  for (char letter = 'a'; letter < 'a' + 23; ++letter) {
    report.findings.push_back(finding);
    report.findings.back().summary = std::string("fault ") + letter;
  }
  report.findings.insert(report.findings.end(), 2, note());
  const std::string text = render_text(report, {});
  EXPECT_THAT(text, HasSubstr("rank 3; ranks 0-2,4-4095 wait"));
  EXPECT_THAT(text, HasSubstr("And more: 2 of evidence-missing, 3 of rank-skipped (--verbose shows them)"));
  EXPECT_LT(text.size(), 20'000U);
  const std::string all = render_text(report, {.verbose = true});
  EXPECT_THAT(all, Not(HasSubstr("And more:")));
}

// 512 groups of 8 of 4,096 ranks: in each of them one rank has another size.
Report one_odd_size_in_each_group() {
  Report report = sample_report();
  report.findings.clear();
  for (std::int64_t group = 0; group < 512; ++group) {
    const RankId odd(8 * group + group % 8);
    Finding finding;
    finding.code = "mismatch-size";
    finding.ranks = {odd};
    finding.victims = RankSet::range(RankId(0), RankId(4095)).without({odd});
    finding.subjects = {fmt::format("group tp{}", group), "seq 11"};
    const RankSet others = RankSet::range(RankId(8 * group), RankId(8 * group + 7)).without({odd});
    finding.summary = fmt::format("{} and {} disagree on the size: {} against 64 (group tp{}, seq 11)",
                                  RankSet{odd}.label(), others.label(), 65 + group, group);
    report.findings.push_back(std::move(finding));
  }
  return report;
}

TEST(TextReporter, FindingsThatSayTheSameAreToldOnce) {
  const Report report = one_odd_size_in_each_group();
  const std::string text = render_text(report, {});
  EXPECT_THAT(text,
              StartsWith("ERROR  rank 0 and ranks 1-7 disagree on the size: 65 against 64 (group tp0, seq 11)\n"));
  EXPECT_THAT(text,
              HasSubstr("ERROR  511 more like this one (mismatch-size): ranks 9,18,27,36,45,54,63,64,73,... (511 "));
  EXPECT_THAT(text, HasSubstr("  each   group tp1, seq 11: rank 9\n         group tp2, seq 11: rank 18\n"));
  EXPECT_THAT(text, HasSubstr("... and 495 more (--verbose shows all in full)"));
  EXPECT_THAT(text, HasSubstr("Verdict: error (512 errors"));
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 40);
  const std::string quiet = render_text(report, {.quiet = true});
  EXPECT_EQ(std::count(quiet.begin(), quiet.end(), '\n'), 2) << quiet;
  EXPECT_THAT(render_text(report, {.verbose = true}), HasSubstr("rank 4095 and ranks 4088-4094 disagree"));
  const std::string json = render_json(report, {});
  EXPECT_THAT(json, HasSubstr("rank 4095 and ranks 4088-4094 disagree"));
}

TEST(TextReporter, FindingsThatDifferAreNotToldAsOne) {
  Report report = sample_report();
  Finding other = skipped();
  other.confidence = Confidence::low;
  Finding worded = skipped();
  worded.summary = "rank 4 skipped one broadcast (group pg0, seq 812): 7 ranks wait for it";
  report.findings = {skipped(), other, worded};
  EXPECT_THAT(render_text(report, {}), Not(HasSubstr("more like this one")));
  report.findings = {skipped(), skipped()};
  EXPECT_THAT(render_text(report, {}), Not(HasSubstr("more like this one"))) << "two are no crowd";
}

TEST(TextReporter, ACulpritIsNobodysVictim) {
  Report report = sample_report();
  Finding other = skipped();
  other.ranks = {RankId(5)};
  other.victims = RankSet::range(RankId(0), RankId(7)).without({RankId(5)});
  Finding doubt = note("lagging-rank");
  doubt.severity = Severity::warning;
  doubt.ranks = {RankId(0)};
  doubt.victims = {RankId(3), RankId(1)};
  report.findings = {skipped(), other, doubt};
  const std::string text = render_text(report, {.verbose = true});
  EXPECT_THAT(text, HasSubstr("rank 3; ranks 0-2,4,6,7 wait"));
  EXPECT_THAT(text, HasSubstr("rank 5; ranks 0-2,4,6,7 wait"));
  EXPECT_THAT(text, HasSubstr("rank 0; rank 1 waits")) << "a mere warning does not free rank 0 of waiting above";
  EXPECT_THAT(render_junit(report, {}), HasSubstr("waiting: ranks 0-2,4,6,7\n"));
}

TEST(TextReporter, FilesAreToldByWhatIsTheMatter) {
  Report report = sample_report();
  report.inputs = {{"a.log", "unknown", {}, "empty file", false},
                   {"b.log", "unknown", {}, "empty file", false},
                   {"env.csv", "env-table", {RankId(0)}, "of the launch", false},
                   {"run.sh", "launch", {}, "of the launch", false}};
  const std::string text = render_text(report, {.width = 200});
  EXPECT_THAT(text, Not(HasSubstr("empty"))) << "a process that prints nothing leaves an empty log";
  EXPECT_THAT(render_text(report, {.width = 200, .verbose = true}), HasSubstr("  - 2 empty files: a.log, b.log\n"));
  EXPECT_THAT(text,
              HasSubstr("2 files that describe the launch, which this version does not judge: env.csv, run.sh\n"));
  report.inputs.pop_back();
  EXPECT_THAT(render_text(report, {.width = 200}), HasSubstr("1 file that describes the launch"));
}

TEST(TextReporter, RecordsWithoutARankAreNotNothing) {
  Report report = sample_report();
  report.unnumbered = report.ranks_absent.size() - 1;
  EXPECT_THAT(render_text(report, {}), HasSubstr("nothing from ranks"));
  ++report.unnumbered;
  EXPECT_THAT(render_text(report, {}), Not(HasSubstr("nothing from ranks"))) << "they may be those of all of them";
}

TEST(TextReporter, AnEmptyDumpIsNamed) {
  const auto text_for = [](const std::string& path) {
    Report report = sample_report();
    report.inputs = {{path, "unknown", {}, "empty file", false}};
    return render_text(report, {.width = 200});
  };
  for (const char* dump : {"nccl_trace_rank_3", "fr/rank_3", "rank_3.json", "x/comm_lib_trace_rank_12", "trace_0",
                           "nccl-dump-1", "fr.pickle", "job/r3.pkl"}) {
    EXPECT_THAT(text_for(dump), HasSubstr(std::string("  - 1 empty dump: ") + dump + "\n"));
  }
  for (const char* other : {"stdout.log", "rank_3.log", "logs/rank_3/stderr.log", "rank_3.err", "job.out.3", "slurm-12",
                            "metrics.json", "rank_3/notes", "__init__.py", ""}) {
    EXPECT_THAT(text_for(other), Not(HasSubstr("empty"))) << other;
  }
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

TEST(TextReporter, NoLineIsACommandToARunner) {
  for (const std::string& hostile : hostile_strings()) {
    for (std::size_t width : {40U, 100U}) {
      for (const bool verbose : {false, true}) {
        const std::string text = render_text(hostile_report(hostile), {.width = width, .verbose = verbose});
        EXPECT_EQ(workflow_command(text), "") << hostile;
      }
    }
    EXPECT_EQ(workflow_command(render_junit(hostile_report(hostile), {})), "") << hostile;
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

TEST(Printable, SetsCommandsApart) {
  EXPECT_EQ(inert_line("::error::x"), "> ::error::x");
  EXPECT_EQ(inert_line(" \t\xe3\x80\x80::x"), " \t\xe3\x80\x80> ::x") << "an ideographic space is a blank too";
  EXPECT_EQ(inert_line("a::b"), "a::b");
  EXPECT_EQ(inert_line(":: "), "> :: ");
  EXPECT_EQ(inert_line(""), "");
  EXPECT_EQ(inert_lines("a\n::b\n"), "a\n> ::b\n");
  EXPECT_EQ(printable_line("a ##[error]b"), "a ## [error]b");
  EXPECT_EQ(printable_line("#\x07#[error]"), "## [error]") << "what is left when controls are gone";
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
