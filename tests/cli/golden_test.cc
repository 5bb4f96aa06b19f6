// Runs tests/golden/<case>/cmd, a shell line with "ddx" for the built program, inside the case's folder, and compares
// all that it prints, and its status, with expected.txt. "@VERSION@" in expected.txt stands for ddx's version.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

const fs::path& root() {
  static const fs::path kRoot = fs::path(DDX_SOURCE_DIR) / "tests" / "golden";
  return kRoot;
}

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(root())) {
    if (fs::exists(entry.path() / "cmd")) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string quoted(const std::string& text) { return "'" + text + "'"; }

std::string run(const std::string& name) {
  const std::string command = "cd " + quoted((root() / name).string()) + " && ddx() { " + quoted(DDX_PROGRAM) +
                              " \"$@\"; }; " + content(root() / name / "cmd");
  std::FILE* pipe = ::popen(("{ " + command + "\n} 2>&1").c_str(), "r");
  if (pipe == nullptr) return "cannot run it";
  std::string out;
  char buffer[4096];
  for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) out.append(buffer, n);
  const int status = ::pclose(pipe);
  return out + "[exit " + std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : -1) + "]\n";
}

std::string expected(const std::string& name) {
  std::string text = content(root() / name / "expected.txt");
  const std::string mark = "@VERSION@";
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark)) {
    text.replace(at, mark.size(), DDX_VERSION);
  }
  return text;
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, PrintsWhatIsExpected) { EXPECT_EQ(run(GetParam()), expected(GetParam())); }

INSTANTIATE_TEST_SUITE_P(Commands, Golden, testing::ValuesIn(case_names()), [](const auto& case_info) {
  std::string name = case_info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(GoldenCases, AreThere) { EXPECT_GE(case_names().size(), 10U); }

}  // namespace
