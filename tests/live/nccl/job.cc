#include "tests/live/nccl/job.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <sstream>
#include <thread>

#include "tests/support/scratch_folder.h"

namespace ddx::nccl_test {

namespace {

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {(std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>()};
}

std::vector<LedgerLine> ledger_of(const std::string& path) {
  std::vector<LedgerLine> lines;
  std::istringstream text(text_of(path));
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    LedgerLine parsed;
    words >> parsed.what;
    for (std::string word; words >> word;) {
      const std::size_t equals = word.find('=');
      parsed.fields[word.substr(0, equals)] = word.substr(equals + 1);
    }
    lines.push_back(parsed);
  }
  return lines;
}

pid_t start(const JobSpec& spec, const testing::ScratchFolder& folder, int rank) {
  std::map<std::string, std::string> environment = spec.environment;
  environment["RANK"] = std::to_string(rank);
  environment["WORLD_SIZE"] = std::to_string(spec.size);
  environment["MEET"] = folder.path("meet");
  environment["DDX_DOUBLE_LEDGER"] = folder.path("ledger");
  // Where the tests are built so: a plugin's handles are never freed, and two plugins have structures of one name.
  environment["ASAN_OPTIONS"] = "detect_leaks=0:detect_odr_violation=0";
  environment.try_emplace("DDX_DOUBLE_TIMEOUT_S", "200");  // a busy machine is no fault
  environment["USER_PLUGIN_LOG"] = folder.path("plugin");
  if (spec.with_ddx) {
    environment.try_emplace("DDX_TRACE_DIR", folder.path("trace"));
    environment.try_emplace("LD_PRELOAD", DDX_TRACE_LIBRARY);
  }
  std::vector<std::string> words;
  for (const auto& [name, value] : environment) {
    if (!value.empty()) words.push_back(name + "=" + value);
  }
  std::vector<char*> variables;
  for (std::string& word : words) variables.push_back(word.data());
  variables.push_back(nullptr);
  std::vector<std::string> command = spec.command;
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const std::string out = folder.path("out" + std::to_string(rank));
  const std::string err = folder.path("err" + std::to_string(rank));
  const pid_t child = fork();
  if (child != 0) return child;
  dup2(open(out.c_str(), O_CREAT | O_WRONLY, 0600), 1);
  dup2(open(err.c_str(), O_CREAT | O_WRONLY, 0600), 2);
  execve(arguments[0], arguments.data(), variables.data());
  _exit(127);
}

// A job that hangs is ended, so that the test says so.
void wait_for(const std::vector<pid_t>& children, JobResult& result) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(240);
  for (std::size_t rank = 0; rank < children.size(); ++rank) {
    while (waitpid(children[rank], &result.ranks[rank].status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > limit) kill(children[rank], SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
}

}  // namespace

JobResult run_job(const JobSpec& spec) {
  const testing::ScratchFolder folder;
  for (const char* name : {"meet/second", "ledger", "trace"}) std::filesystem::create_directories(folder.path(name));
  JobResult result;
  result.ranks.resize(static_cast<std::size_t>(spec.size));
  std::vector<pid_t> children;
  for (int rank = 0; rank < spec.size; ++rank) children.push_back(start(spec, folder, rank));
  wait_for(children, result);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path("trace"))) {
    const std::string path = entry.path().string();
    result.trace_files.push_back(path);
    const bool is_rank = std::any_of(children.begin(), children.end(),
                                     [&](pid_t child) { return path.ends_with("-" + std::to_string(child) + ".ddx"); });
    if (!is_rank) result.others.push_back(read_capture(path));
  }
  for (std::size_t rank = 0; rank < children.size(); ++rank) {
    RankResult& one = result.ranks[rank];
    one.out = text_of(folder.path("out" + std::to_string(rank)));
    one.err = text_of(folder.path("err" + std::to_string(rank)));
    std::istringstream plugin(text_of(folder.path("plugin." + std::to_string(rank))));
    for (std::string line; std::getline(plugin, line);) one.plugin.push_back(line);
    std::sort(one.plugin.begin(), one.plugin.end());
    one.ledger = ledger_of(folder.path("ledger/ledger-" + std::to_string(children[rank]) + ".txt"));
    for (const std::string& path : result.trace_files) {
      if (path.ends_with("-" + std::to_string(children[rank]) + ".ddx")) one.capture = read_capture(path);
    }
  }
  return result;
}

}  // namespace ddx::nccl_test
