#include "cli/app.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "tests/cli/sample_report.h"
#include "tests/cli/well_formed.h"

namespace ddx::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

struct Answer {
  int status = 0;
  std::string out;
  std::string err;
};

Answer ddx(const std::vector<std::string>& arguments) {
  std::ostringstream out, err;
  Console console{.out = out, .err = err};
  const Exit status = run(arguments, console);
  return {static_cast<int>(status), out.str(), err.str()};
}

class App : public testing::Test {
 protected:
  App() {
    std::string name = (fs::temp_directory_path() / "ddx_cli_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no scratch folder");
    folder_ = name;
  }
  ~App() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  std::string path(const std::string& name = "") const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return path(name);
  }

 private:
  fs::path folder_;
};

// Two ranks use two groups in opposite orders; and two that agree.
constexpr const char* kInverted =
    "world 2\npg pgA = 0,1\npg pgB = 0,1\n"
    "0 all_reduce f32 8 pgA\n0 all_gather f32 8 pgB\n1 all_gather f32 8 pgB\n1 all_reduce f32 8 pgA\n";
constexpr const char* kAgreed = "world 2\n0-1 all_reduce f32 8 pg0\n0-1 barrier pg0\n";

// A flight-recorder dump of one rank of two, with one all_reduce whose group has this description.
std::string dump(const std::string& description, const std::string& file) {
  json entry = {{"record_id", 0},
                {"pg_id", 0},
                {"process_group", {"0", description}},
                {"collective_seq_id", 1},
                {"p2p_seq_id", 0},
                {"op_id", 1},
                {"profiling_name", "nccl:all_reduce"},
                {"time_created_ns", 1700000000000000000},
                {"input_sizes", json::array({json::array({8})})},
                {"input_dtypes", {"Float"}},
                {"output_sizes", json::array({json::array({8})})},
                {"output_dtypes", {"Float"}},
                {"state", "scheduled"},
                {"is_p2p", false},
                {"retired", false},
                {"timeout_ms", 600000},
                {"frames", json::array({{{"name", file}, {"filename", file}, {"line", 5}}})}};
  json all = {{"version", "2.4"},
              {"pg_config", {{"0", {{"name", "0"}, {"desc", description}, {"ranks", "[0, 1]"}}}}},
              {"entries", json::array({entry})}};
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
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
    EXPECT_EQ(answer.status, 2) << testing::PrintToString(c.arguments);
    EXPECT_THAT(answer.err, HasSubstr(c.says)) << testing::PrintToString(c.arguments);
    EXPECT_THAT(answer.err, StartsWith("ddx: "));
    EXPECT_EQ(answer.err.find('\x1b'), std::string::npos);
    EXPECT_EQ(answer.out, "");
  }
}

TEST_F(App, HelpAndVersionAreFine) {
  EXPECT_EQ(ddx({"--help"}).status, 0);
  EXPECT_THAT(ddx({"--help"}).out, HasSubstr("Exit status"));
  EXPECT_THAT(ddx({"analyze", "--help"}).out, HasSubstr("--rank-from"));
  EXPECT_THAT(ddx({"--version"}).out, testing::MatchesRegex("ddx [0-9]+\\.[0-9]+\\.[0-9]+\n"));
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
  EXPECT_THAT(ddx({"analyze", path("missing")}).err, HasSubstr("cannot be found"));
  EXPECT_EQ(ddx({"info", path("missing")}).status, 3);
  EXPECT_EQ(ddx({"convert", path("in"), "-o", "-"}).status, 3);
}

TEST_F(App, OutputGoesToTheFile) {
  const std::string good = write("good.ops", kAgreed);
  const Answer answer = ddx({"analyze", good, "--format", "json", "--output", path("report.json")});
  EXPECT_EQ(answer.out, "");
  std::ifstream file(path("report.json"));
  EXPECT_EQ(json::parse(file)["verdict"], "clean");
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
    log += hostile + "\n[rank0]: ";
    log += hostile + "\n";
    write(folder + "/train.log", log);
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
  }
}

}  // namespace
}  // namespace ddx::cli
