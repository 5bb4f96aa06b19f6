// Where wrap keeps what it captures, and with what environment the job runs.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace ddx::live {

struct CaptureOptions {
  bool torch = true;
  bool nccl = true;
  bool dlopen_hooks = false;
};

// What belongs to ddx and is loaded into the job. Empty where it is not found.
struct InstalledParts {
  std::string library;       // libddx_trace.so
  std::string dlopen_hooks;  // libddx_dlsym.so
  std::string torch;         // the folder of the Python package
};
// Beside this program: the build tree's or the installed ones. DDX_WRAP_LIB names another library.
InstalledParts find_parts();

struct JobEnvironment {
  std::vector<std::pair<std::string, std::string>> set;
  std::vector<std::string> missing;  // what will not be captured, and why: a sentence each
};
// `address`: where ranks' processes ask for pipes of their own; empty: nowhere.
JobEnvironment job_environment(const std::string& folder, const std::string& address, const InstalledParts& parts,
                               const CaptureOptions& options);

// Makes the folder, or takes an empty one. Returns its absolute path. Throws RequestError where there is something in
// it, std::system_error where it cannot be had or written to.
std::string make_folder(const std::string& path);
// "ddx-wrap-20260131-235959-PID"
std::string default_folder();

}  // namespace ddx::live
