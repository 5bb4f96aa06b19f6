#include "cli/app.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "tests/cli/run_ddx.h"
#include "tests/cli/sample_report.h"
#include "tests/cli/well_formed.h"
#include "tests/support/recorder_json.h"
#include "tests/support/scratch_folder.h"

namespace ddx::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class App : public ::testing::Test, protected ddx::testing::ScratchFolder {};

// Two ranks use two groups in opposite orders; and two that agree.
constexpr const char* kInverted =
    "world 2\npg pgA = 0,1\npg pgB = 0,1\n"
    "0 all_reduce f32 8 pgA\n0 all_gather f32 8 pgB\n1 all_gather f32 8 pgB\n1 all_reduce f32 8 pgA\n";
constexpr const char* kAgreed = "world 2\n0-1 all_reduce f32 8 pg0\n0-1 barrier pg0\n";

// A flight-recorder dump of one rank of two, with one all_reduce whose group has this description.
std::string dump(const std::string& description, const std::string& file) {
  return ddx::testing::recorder_dump(2, description, file);
}

TEST_F(App, WrongUsageIsTwoAndSaysWhatToDo) {
  struct Case {
    std::vector<std::string> arguments;
    const char* says;
  };
  const std::string file = write("a.ops", kAgreed);
  const Case cases[] = {
      {{}, "ddx --help"},
      {{"analyse", file}, "Did you mean: ddx analyze"},
      {{"zzzzzz"}, "there is no command 'zzzzzz'"},
      {{"analyze"}, "PATH"},
      {{"analyze", file, "--bogus"}, "--bogus"},
      {{"analyze", file, "--format", "yaml"}, "yaml"},
      {{"analyze", file, "--fail-on", "sometimes"}, "sometimes"},
      {{"analyze", file, "--threads", "-1"}, "ddx analyze --help"},
      {{"analyze", file, "--rank-from", "("}, "no regular expression"},
      {{"analyze", file, "--rank-from", "rank[0-9]+"}, "has no group"},
      {{"analyze", file, "--output", "/no/such/folder/x"}, "could not be written"},
      {{"info", file, "--format", "sarif"}, "sarif"},
      {{"explain", "mismatch-sise"}, "did you mean: mismatch-size"},
      {{"explain", "zzzzzzzzzzzzz"}, "lists them all"},
      {{"convert", file}, "-o OUT.ops"},
      {{"\x1b[31m"}, "there is no command"},
  };
  for (const Case& c : cases) {
    const Answer answer = ddx(c.arguments);
    EXPECT_EQ(answer.status, 2) << ::testing::PrintToString(c.arguments);
    EXPECT_THAT(answer.err, HasSubstr(c.says)) << ::testing::PrintToString(c.arguments);
    EXPECT_THAT(answer.err, StartsWith("ddx: "));
    EXPECT_EQ(answer.err.find('\x1b'), std::string::npos);
    EXPECT_EQ(answer.out, "");
  }
}

TEST_F(App, HelpAndVersionAreFine) {
  EXPECT_EQ(ddx({"--help"}).status, 0);
  EXPECT_THAT(ddx({"--help"}).out, HasSubstr("Exit status"));
  EXPECT_THAT(ddx({"analyze", "--help"}).out, HasSubstr("--rank-from"));
  EXPECT_THAT(ddx({"--version"}).out, ::testing::MatchesRegex("ddx [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST_F(App, HelpIsACommandToo) {
  EXPECT_EQ(ddx({"help"}).out, ddx({"--help"}).out);
  EXPECT_EQ(ddx({"help"}).status, 0);
  for (const char* command : {"analyze", "info", "explain", "convert"}) {
    const Answer answer = ddx({"help", command});
    EXPECT_EQ(answer.status, 0) << command;
    EXPECT_EQ(answer.out, ddx({command, "--help"}).out) << command;
  }
  const Answer unknown = ddx({"help", "analyse"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, HasSubstr("Did you mean: ddx analyze"));
}

// An option that does nothing in a command is taken there, and not told; what is told is true of that command.
TEST_F(App, HelpTellsWhatOptionsDoThere) {
  using ::testing::Not;
  const auto help = [](const char* command) { return ddx({command, "--help"}).out; };
  EXPECT_THAT(help("analyze"), HasSubstr("One line a finding"));
  for (const char* command : {"info", "explain", "convert"}) EXPECT_THAT(help(command), Not(HasSubstr("finding\n")));
  for (const char* command : {"analyze", "info"}) EXPECT_THAT(help(command), HasSubstr("--verbose")) << command;
  for (const char* command : {"explain", "convert"}) EXPECT_THAT(help(command), Not(HasSubstr("--verbose"))) << command;
  EXPECT_THAT(help("convert"), Not(HasSubstr("instead of standard output")));
  EXPECT_EQ(ddx({"explain", "rank-skipped", "--verbose"}).status, 0);
  const std::string good = write("good.ops", kAgreed);
  EXPECT_NE(ddx({"info", good}).out, ddx({"info", good, "--verbose"}).out);
  EXPECT_NE(ddx({"info", good}).out, ddx({"info", good, "--quiet"}).out);
  EXPECT_NE(ddx({"explain", "rank-skipped"}).out, ddx({"explain", "rank-skipped", "--quiet"}).out);
}

// Not only a bad line in it: also a file whose first line is not there.
TEST_F(App, AnOpsFileWithoutItsWorldIsToldWhatIsExpected) {
  const std::string text = "# of two ranks\n0-1 all_reduce f32 8 pg0\n";
  for (const char* name : {"job.ops", "job.txt"}) {
    const Answer answer = ddx({"analyze", write(name, text), "--format", "json"});
    EXPECT_EQ(answer.status, 3) << name;
    EXPECT_EQ(json::parse(answer.out)["inputs"][0]["note"], "line 2: expected 'world N' before anything else") << name;
  }
}

TEST_F(App, APatternForRanksThatFindsNoneIsTold) {
  write("in/rank_0.json", dump("pg", "a.py"));
  write("in/rank_1.json", dump("pg", "a.py"));
  const std::string says = "--rank-from finds a rank in no file's path";
  EXPECT_THAT(ddx({
                      "analyze",
                      path("in"),
                      "--rank-from",
                      "foo_(\\d+)",
                  })
                  .out,
              HasSubstr(says));
  EXPECT_THAT(ddx({"convert", path("in"), "--rank-from", "foo_(\\d+)", "-o", "-"}).err, HasSubstr(says));
  EXPECT_THAT(ddx({"analyze", path("in"), "--rank-from", "rank_(\\d+)"}).out, ::testing::Not(HasSubstr(says)));
}

TEST_F(App, StatusFollowsFindingsAndFailOn) {
  const std::string bad = write("bad.ops", kInverted);
  const std::string good = write("good.ops", kAgreed);
  EXPECT_EQ(ddx({"analyze", bad}).status, 1);
  EXPECT_EQ(ddx({"analyze", bad, "--fail-on", "never"}).status, 0);
  EXPECT_EQ(ddx({"analyze", good}).status, 0);
  const json report = json::parse(ddx({"analyze", bad, "--format", "json"}).out);
  EXPECT_EQ(report["verdict"], "error");
  EXPECT_EQ(report["findings"][0]["code"], "order-cross-group");
  EXPECT_EQ(json::parse(ddx({"analyze", good, "--format", "json"}).out)["verdict"], "clean");
}

TEST_F(App, NoEvidenceIsThreeAndStillAReport) {
  write("in/noise.bin", std::string("\x00\x01\x02", 3));
  write("in/packed.gz", "\x1f\x8b\x08");
  fs::create_directories(path("empty"));
  for (const std::string& where : {path("in"), path("empty"), path("missing")}) {
    const Answer answer = ddx({"analyze", where, "--format", "json"});
    EXPECT_EQ(answer.status, 3) << where;
    const json report = json::parse(answer.out);
    EXPECT_EQ(report["schema"], "ddx.report/1");
    EXPECT_EQ(report["verdict"], "inconclusive");
  }
  EXPECT_THAT(ddx({"analyze", path("missing"), "--quiet"}).out, HasSubstr("missing: cannot be found:"));
  EXPECT_THAT(ddx({"analyze", path("missing"), "--format", "github"}).out, HasSubstr("::warning title=ddx%3A load."));
  EXPECT_EQ(ddx({"info", path("missing")}).status, 3);
  EXPECT_EQ(ddx({"convert", path("in"), "-o", "-"}).status, 3);
}

TEST_F(App, AMissingPathHidesNothing) {
  const std::string bad = write("bad.ops", kInverted);
  const Answer answer = ddx({"analyze", path("missing"), bad, "--format", "json"});
  EXPECT_EQ(answer.status, 1);
  const json report = json::parse(answer.out);
  EXPECT_EQ(report["findings"][0]["code"], "order-cross-group");
  EXPECT_EQ(report["inputs"].size(), 2U);
  const auto lost = [](const json& d) { return d["name"] == "load.unreadable_file" && d["severity"] == "data-loss"; };
  EXPECT_TRUE(std::any_of(report["diagnostics"].begin(), report["diagnostics"].end(), lost));
  EXPECT_EQ(ddx({"info", path("missing"), bad}).status, 0);
  EXPECT_EQ(ddx({"convert", path("missing"), bad, "-o", "-"}).status, 0);
}

TEST_F(App, ControlBytesInAPathReachNoStream) {
  for (const char* command : {"analyze", "info", "convert"}) {
    const Answer answer = ddx({command, path("no\x1b[31mpath\n::error::x"), "-o", "-"});
    EXPECT_EQ(answer.status, 3) << command;
    EXPECT_EQ((answer.out + answer.err).find('\x1b'), std::string::npos) << command;
    EXPECT_EQ(workflow_command(answer.out + answer.err), "") << command;
  }
}

// Nothing was judged here, so nothing may be called clean.
TEST_F(App, WhatProvesNothingIsInconclusive) {
  const std::string whole = dump("pg", "a.py");
  const std::string cases[] = {
      write("progress.log", "[rank0]: step 1 loss 2\n"),
      write("env.csv", "host,RANK,WORLD_SIZE,LOCAL_RANK\nnode-a,0,2,0\nnode-a,1,2,1\n"),
      write("hosts.csv", "rank,host,ip\n0,node-a,192.0.2.1\n"),
      // Stacks of a real job that hung: where each rank stood.
      std::string(DDX_SOURCE_DIR) + "/examples/hang/evidence/logs",
      std::string(DDX_SOURCE_DIR) + "/tests/e2e/data/skipped/logs",
      write("job.sh", "torchrun --nproc_per_node 4 train.py\n"),
      write("one/rank_0.json", whole),  // of two
      write("cut/rank_0.json", whole.substr(0, whole.size() / 2)),
      write("void.log", ""),
      write("deep.ops", "world 2\nrepeat 100000000\n0,1 barrier pg0\nend\n"),
  };
  for (const std::string& file : cases) {
    const Answer answer = ddx({"analyze", file, "--format", "json"});
    EXPECT_EQ(answer.status, 3) << file << '\n' << answer.out;
    const json report = json::parse(answer.out);
    EXPECT_EQ(report["verdict"], "inconclusive") << file;
    EXPECT_THAT(ddx({"analyze", file}).out, StartsWith("INCONCLUSIVE  ")) << file;
  }
  EXPECT_THAT(ddx({"analyze", path("deep.ops"), "--quiet"}).out, HasSubstr("more than 50,000,000 operations"));
  EXPECT_THAT(ddx({"analyze", path("job.sh")}).out, ::testing::Not(HasSubstr("ddx check")))
      << "there is no such command";
}

// A mistake in a file is told once, and as what it is.
TEST_F(App, AMistakeInAFileIsToldOnce) {
  for (const char* line : {"0 send f32 10 2", "0 recv f32 10 2", "0 sned f32 10 to 2", "0 all_reduce f3"}) {
    const Answer answer = ddx({"analyze", write("job.ops", std::string("world 3\n") + line + "\n")});
    EXPECT_EQ(answer.status, 3);
    EXPECT_THAT(answer.out, StartsWith("INCONCLUSIVE  nothing was judged: "));
    EXPECT_EQ(answer.out.find("line 2"), answer.out.rfind("line 2")) << answer.out;
  }
  EXPECT_THAT(on_one_line(ddx({"analyze", write("a.ops", "world 3\n0 send f32 10 2\n")}).out),
              HasSubstr("expected 'to RANK': 'to 2', if 2 is meant"));
}

// Of a table with one usable size, nothing is clean.
TEST_F(App, ATableOfOneSizeIsInconclusive) {
  for (const char* rows : {"8,100\n16,abc\n", "8,100\n", "8,100\n8,101\n"}) {
    const std::string table = write("t.csv", std::string("gpus,step_ms\n") + rows);
    const Answer answer = ddx({"predict", "--measured", table, "--format", "json"});
    EXPECT_EQ(answer.status, 3) << rows;
    EXPECT_EQ(json::parse(answer.out)["verdict"], "inconclusive") << rows;
    EXPECT_THAT(ddx({"predict", "--measured", table, "--quiet"}).out, StartsWith("INCONCLUSIVE")) << rows;
  }
  EXPECT_EQ(ddx({"predict", "--measured", write("t.csv", "gpus,step_ms\n8,100\n16,abc\n32,120\n")}).status, 0);
}

// A warning does not hide why the rest is said.
TEST_F(App, ATableTellsAllItsReasons) {
  const Answer answer = ddx({"predict", "--measured", write("t.csv", "gpus,images_per_s\n8,1000\n16,900\n")});
  std::size_t found = 0, reasons = 0;
  for (std::size_t at = 0; (at = answer.out.find("\n  what ", at)) != std::string::npos; ++at) ++found;
  for (std::size_t at = 0; (at = answer.out.find("\n  why ", at)) != std::string::npos; ++at) ++reasons;
  EXPECT_EQ(found, 3U);
  EXPECT_EQ(reasons, found) << answer.out;
}

TEST_F(App, ConvertTellsWhatItWritesUnderAnotherName) {
  const std::string good = write("good.ops", kAgreed);
  EXPECT_THAT(ddx({"convert", good, "-o", path("out.foo")}).err, HasSubstr("holds the ops notation"));
  for (const char* name : {"out.ops", "out.txt", "out"}) EXPECT_EQ(ddx({"convert", good, "-o", path(name)}).err, "");
  EXPECT_EQ(ddx({"convert", good, "-o", path("out.foo"), "--quiet"}).err, "");
}

TEST_F(App, OutputGoesToTheFile) {
  const std::string good = write("good.ops", kAgreed);
  const Answer answer = ddx({"analyze", good, "--format", "json", "--output", path("report.json")});
  EXPECT_EQ(answer.out, "");
  std::ifstream file(path("report.json"));
  EXPECT_EQ(json::parse(file)["verdict"], "clean");
}

std::string content(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

TEST_F(App, EvidenceIsNeverOverwritten) {
  const std::string rank = write("in/rank_0.json", dump("pg", "a.py"));
  write("in/rank_1.json", dump("pg", "a.py"));
  const std::string noise = write("noise.bin", std::string("\x00\x01", 2));
  fs::create_symlink(rank, path("link"));
  const std::string before = content(rank);
  const std::vector<std::vector<std::string>> refused{
      {"convert", rank, "-o", rank},          {"convert", path("in"), "-o", rank},
      {"convert", rank, "-o", path("link")},  {"analyze", rank, "-o", path("in/../in/rank_0.json")},
      {"info", path("in"), "--output", rank}, {"analyze", noise, rank, "-o", noise},
  };
  for (const std::vector<std::string>& arguments : refused) {
    const Answer answer = ddx(arguments);
    EXPECT_EQ(answer.status, 2) << ::testing::PrintToString(arguments);
    EXPECT_THAT(answer.err, HasSubstr("is evidence that was given")) << ::testing::PrintToString(arguments);
    EXPECT_EQ(content(rank), before);
  }
  EXPECT_EQ(content(noise).size(), 2U);
  const std::string older = write("in/report.bin", std::string("\x00old", 4));
  EXPECT_NE(ddx({"analyze", path("in"), "-o", older}).status, 2) << "an unknown file in the folder may be replaced";
  EXPECT_THAT(content(older), HasSubstr("Verdict: "));
}

// Every option that names an input, with every one that names an output, by the same name, a link and a hard link.
TEST_F(App, NoOutputTakesAnInputsPlace) {
  const std::string job = write("job.ops", kAgreed);
  const std::string cluster = write("c.json", R"({"flat": "1GB/s,1us", "nodes": 2})");
  const std::string runs = write("runs.json", R"({"runs": []})"), table = write("t.csv", "gpus,step_ms\n8,1\n16,2\n");
  const std::string flat = "1GB/s,1us";
  struct Case {
    std::vector<std::string> arguments;
    std::string input;
    std::vector<std::string> outputs;
  };
  const Case cases[] = {
      {{"sim", job, "--flat", flat}, job, {"-o", "--timeline"}},
      {{"sim", job, "--cluster", cluster}, cluster, {"-o", "--timeline"}},
      {{"sim", "--describe-cluster", cluster}, cluster, {"-o"}},
      {{"predict", job, "--scale", "2,4", "--flat", flat}, job, {"-o", "--plot"}},
      {{"predict", job, "--scale", "2,4", "--cluster", cluster}, cluster, {"-o", "--plot"}},
      {{"predict", "--collectives", runs}, runs, {"-o"}},
      {{"predict", "--measured", table}, table, {"-o"}},
  };
  for (const Case& c : cases) {
    const std::string before = content(c.input);
    fs::create_symlink(c.input, path("soft"));
    fs::create_hard_link(c.input, path("hard"));
    for (const std::string& option : c.outputs) {
      for (const std::string& output : {c.input, path("soft"), path("hard")}) {
        std::vector<std::string> arguments = c.arguments;
        arguments.insert(arguments.end(), {option, output});
        const Answer answer = ddx(arguments);
        EXPECT_EQ(answer.status, 2) << ::testing::PrintToString(arguments);
        EXPECT_THAT(answer.err, HasSubstr("is evidence that was given")) << ::testing::PrintToString(arguments);
        EXPECT_EQ(content(c.input), before) << ::testing::PrintToString(arguments);
      }
    }
    fs::remove(path("soft"));
    fs::remove(path("hard"));
  }
}

TEST_F(App, TwoOutputsAreTwoFiles) {
  const std::string job = write("job.ops", kAgreed);
  fs::create_symlink(path("t.json"), path("dangling"));
  fs::create_directory(path("d"));
  const std::vector<std::string> sim{"sim", job, "--flat", "1GB/s,1us", "--timeline"};
  const std::vector<std::string> scale{"predict", job, "--flat", "1GB/s,1us", "--scale", "2,4", "--plot"};
  for (const bool there : {false, true}) {
    if (there) write("t.json", "old");
    for (const std::vector<std::string>& command : {sim, scale}) {
      for (const std::string& other : {path("t.json"), path("d/../t.json"), path("dangling")}) {
        std::vector<std::string> arguments = command;
        arguments.insert(arguments.end(), {other, "-o", path("t.json")});
        const Answer answer = ddx(arguments);
        EXPECT_EQ(answer.status, 2) << ::testing::PrintToString(arguments);
        EXPECT_THAT(answer.err, HasSubstr("name one file")) << ::testing::PrintToString(arguments);
        EXPECT_EQ(fs::exists(path("t.json")), there) << "before anything is written";
      }
    }
  }
  EXPECT_EQ(content(path("t.json")), "old");
  EXPECT_EQ(ddx({"sim", job, "--flat", "1GB/s,1us", "--timeline", path("a.json"), "-o", path("b.txt")}).status, 0);
  EXPECT_EQ(ddx({"sim", job, "--flat", "1GB/s,1us", "--timeline", "/dev/null", "-o", "/dev/null"}).status, 0);
}

TEST_F(App, AnOutputIsWrittenWhollyOrNotAtAll) {
  const std::string good = write("good.ops", kAgreed);
  const std::string old = write("out.json", "old");
  fs::permissions(old, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink(old, path("way"));
  EXPECT_EQ(ddx({"analyze", good, "--format", "json", "-o", path("way")}).status, 0);
  EXPECT_TRUE(fs::is_symlink(path("way")));
  EXPECT_EQ(json::parse(content(old))["verdict"], "clean");
  EXPECT_EQ(fs::status(old).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  for (const char* command : {"analyze", "info", "convert"}) {
    const Answer full = ddx({command, good, "-o", "/dev/full"});
    EXPECT_EQ(full.status, 2) << command;
    EXPECT_THAT(full.err, HasSubstr("'/dev/full': No space left on device")) << command;
  }
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
  EXPECT_EQ(std::distance(fs::directory_iterator(path()), fs::directory_iterator()), 3) << "nothing is left over";
}

TEST_F(App, ConvertSaysWhatItLeavesOut) {
  write("in/rank_0.json", dump("pg", "a.py"));
  write("in/train.log", "[rank1]: RuntimeError: boom\n");
  const Answer answer = ddx({"convert", path("in"), "-o", path("job.ops")});
  EXPECT_EQ(answer.status, 0);
  EXPECT_THAT(answer.err, HasSubstr("ddx: 1 log event left out: it is no operation\n"));
  const std::string unnamed = write("dump.json", dump("pg", "a.py"));
  const Answer nothing = ddx({"convert", unnamed, "-o", path("none.ops")});
  EXPECT_EQ(nothing.status, 3) << "no rank is known";
  EXPECT_THAT(nothing.err, HasSubstr("1 record left out"));
  EXPECT_FALSE(fs::exists(path("none.ops")));
}

// What a terminal would not show as it is does not come out as it is, and the rest comes back in as it was.
TEST_F(App, ConvertedTextMovesNoCursor) {
  const std::string hostile =
      "pg \x1b[31m \xc2\x9b"
      "31m \xe2\x80\xae \x7f gr\xc3\xbc\xc3\x9f";
  const std::string rank = write("rank_0.json", dump(hostile, "a.py"));
  const Answer answer = ddx({"convert", rank, "-o", "-"});
  for (const char* moves : {"\x1b", "\xc2\x9b", "\xe2\x80\xae", "\x7f"}) {
    EXPECT_THAT(answer.out, Not(HasSubstr(moves)));
  }
  EXPECT_THAT(answer.out, HasSubstr("desc=\"pg "));
  EXPECT_THAT(answer.out, HasSubstr("gr\xc3\xbc\xc3\x9f\"\n"));
  const std::string again = write("again.ops", answer.out);
  EXPECT_EQ(ddx({"convert", again, "-o", "-"}).out, answer.out);
}

TEST_F(App, FailOnIsTakenByAllAndToldWhereItCounts) {
  const std::string good = write("good.ops", kAgreed);
  EXPECT_EQ(ddx({"info", good, "--fail-on", "never"}).status, 0);
  EXPECT_THAT(ddx({"analyze", "--help"}).out, HasSubstr("--fail-on"));
  for (const char* command : {"info", "explain", "convert"}) {
    EXPECT_THAT(ddx({command, "--help"}).out, ::testing::Not(HasSubstr("  --fail-on"))) << command;
  }
}

TEST_F(App, ConvertGivesTheSameJobBack) {
  const std::string bad = write("bad.ops", kInverted);
  EXPECT_EQ(ddx({"convert", bad, "-o", path("again.ops")}).status, 0);
  const json first = json::parse(ddx({"analyze", bad, "--format", "json"}).out);
  const json again = json::parse(ddx({"analyze", path("again.ops"), "--format", "json"}).out);
  EXPECT_EQ(first["findings"][0]["summary"], again["findings"][0]["summary"]);
}

TEST_F(App, ProgramsBesideARealRunArePutAside) {
  write("in/plan.ops", kInverted);
  write("in/rank_0.json", dump("default_pg", "train.py"));
  write("in/rank_1.json", dump("default_pg", "train.py"));
  const json report = json::parse(ddx({"analyze", path("in"), "--format", "json"}).out);
  for (const json& finding : report["findings"]) EXPECT_NE(finding["code"], "order-cross-group");
  const auto aside = [](const json& d) { return d["name"] == "replay.put_aside"; };
  EXPECT_TRUE(std::any_of(report["diagnostics"].begin(), report["diagnostics"].end(), aside));
}

TEST_F(App, SameInputSameBytes) {
  write("in/a.ops", kInverted);
  write("in/b.log", "[rank1]: RuntimeError: boom\n");
  for (const char* format : {"text", "json", "sarif", "junit", "github"}) {
    const std::string first = ddx({"analyze", path("in"), "--format", format}).out;
    for (const char* threads : {"1", "2", "7"}) {
      EXPECT_EQ(ddx({"analyze", path("in"), "--format", format, "--threads", threads}).out, first) << format;
    }
  }
}

TEST_F(App, OrderOfPathsDoesNotMatter) {
  std::vector<std::string> paths{write("rank_0.json", dump("pg", "a.py")), write("rank_1.json", dump("pg", "a.py")),
                                 write("train.log", "[rank1]: RuntimeError: boom\n")};
  const auto answer = [](std::vector<std::string> order) {
    order.insert(order.begin(), "analyze");
    order.insert(order.end(), {"--format", "json"});
    return ddx(order).out;
  };
  const std::string first = answer(paths);
  std::mt19937 random(1);
  for (int i = 0; i < 6; ++i) {
    std::shuffle(paths.begin(), paths.end(), random);
    EXPECT_EQ(answer(paths), first);
  }
}

// Strings that come in by files must not break what goes out, whatever they are.
TEST_F(App, HostileInputNeverBreaksAFormat) {
  std::size_t number = 0;
  for (const std::string& hostile : hostile_strings()) {
    const std::string folder = "in" + std::to_string(number++);
    write(folder + "/rank_0.json", dump(hostile, hostile));
    write(folder + "/rank_1.json", dump(hostile + "other", hostile));
    std::string log = "[rank1]: RuntimeError: ";
    log += hostile + "\n[rank0]: RuntimeError: word " + std::string(70, 'y') + " ";
    log += hostile + "\n";
    write(folder + "/train.log", log);
    write(folder + "/odd\n::error::name\n##[error]x\n", "what is this");
    write(folder + "/odd \"name\"\n%,:;<&>\x1b[31m", "what is this");
    const auto out = [&](const char* command, const char* format) {
      const Answer answer = ddx({command, path(folder), "--format", format, "--verbose"});
      EXPECT_TRUE(answer.status == 0 || answer.status == 1) << answer.status << " " << answer.err;
      return answer.out;
    };
    EXPECT_EQ(json::parse(out("analyze", "json"))["schema"], "ddx.report/1");
    EXPECT_EQ(json::parse(out("analyze", "sarif"))["version"], "2.1.0");
    EXPECT_EQ(xml_problem(out("analyze", "junit")), "");
    EXPECT_EQ(json::parse(out("info", "json"))["schema"], "ddx.info/1");
    for (const std::string& text : {out("analyze", "text"), out("analyze", "github"), out("info", "text")}) {
      EXPECT_EQ(text.find('\x1b'), std::string::npos);
      EXPECT_EQ(text.find('\0'), std::string::npos);
      EXPECT_EQ(text.find("\n::error file=x"), std::string::npos);
    }
    for (const std::string& text : {out("analyze", "text"), out("analyze", "junit"), out("info", "text")}) {
      EXPECT_EQ(workflow_command(text), "") << hostile;
    }
  }
}

}  // namespace
}  // namespace ddx::cli
