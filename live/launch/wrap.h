// Runs a job as it is, and watches it: what its ranks write, what becomes of its processes, whether it gets on. Judging
// what was captured is not done here: that is handed in.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "live/launch/job_environment.h"

namespace ddx::live {

enum class OnHang { report, kill };

// What the analysis of the folder came to. It is run in a process of its own, so that whatever happens there does not
// happen to the job.
struct Judgement {
  bool is_error = false;  // a finding that counts as one
  bool is_clean = false;  // judged, and nothing is wrong
  bool is_silent = true;  // nothing in it that a person must read after a healthy run
  std::string text;       // for people
  std::string gist;       // one line that two judgements have in common which find the same
};

struct WrapOptions {
  std::vector<std::string> command;
  std::string folder;  // empty: default_folder()
  // One wrap a node, over a folder that all nodes see: each keeps what it captures in FOLDER/node_K, and node 0 has the
  // whole analyzed. One node: all is in the folder itself.
  std::uint32_t nodes = 1;
  std::uint32_t node_rank = 0;
  CaptureOptions capture;
  Nanos hang_after = 120 * kSecond;
  OnHang on_hang = OnHang::report;
  Nanos grace = 30 * kSecond;
  bool quiet = false;
  std::optional<std::int32_t> only_rank;
  bool status_line = false;  // standard output is a terminal
  std::size_t width = 100;   // its columns
  // Of the capture folder; called in a child process.
  std::function<Judgement(const std::string& folder)> analyze;
};

// The status that wrap is to end with. Throws RequestError where the folder is not empty.
int wrap(const WrapOptions& options);

}  // namespace ddx::live
