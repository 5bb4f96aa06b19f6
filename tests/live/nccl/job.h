// Runs a driver program once for each rank, and gathers what it and the test double left.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/live/nccl/capture_file.h"

namespace ddx::nccl_test {

struct JobSpec {
  std::vector<std::string> command;
  int size = 2;
  std::map<std::string, std::string> environment;
  bool with_ddx = true;  // libddx_trace.so is preloaded and DDX_TRACE_DIR is set
};

// A line of the double's ledger: its first word, and the others by name.
struct LedgerLine {
  std::string what;
  std::map<std::string, std::string> fields;
  long long number(const std::string& field) const { return std::stoll(fields.at(field)); }
};

struct RankResult {
  int status = -1;  // of waitpid
  std::string out, err;
  std::vector<std::string> plugin;     // lines of the user's own profiler plugin, sorted
  std::optional<CaptureFile> capture;  // nothing: it left no file
  std::vector<LedgerLine> ledger;
};

struct JobResult {
  std::vector<RankResult> ranks;
  std::vector<std::string> trace_files;
  std::vector<CaptureFile> others;  // of processes that are no rank
};

JobResult run_job(const JobSpec& spec);

}  // namespace ddx::nccl_test
