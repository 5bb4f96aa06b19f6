#include "live/launch/job_environment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "traces/capture/output_offer.h"

namespace ddx::live {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string first_there(const std::vector<fs::path>& paths) {
  std::error_code ignored;
  for (const fs::path& path : paths) {
    if (fs::exists(path, ignored)) return fs::absolute(path, ignored).lexically_normal().string();
  }
  return {};
}

std::string prepended(const std::string& first, const std::string& rest, char separator) {
  return rest.empty() ? first : first + separator + rest;
}

}  // namespace

InstalledParts find_parts() {
  InstalledParts parts;
  std::error_code ignored;
  const fs::path here = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  const fs::path installed = here.parent_path() / "lib" / "ddx";
  const std::string other = variable("DDX_WRAP_LIB");
  parts.library =
      other.empty() ? first_there({here / "libddx_trace.so", installed / "libddx_trace.so"}) : first_there({other});
  parts.dlopen_hooks = first_there({here / "libddx_dlsym.so", installed / "libddx_dlsym.so"});
  std::vector<fs::path> packages = {here / "torch", installed / "torch"};
  // In the build tree the package is in the source. An installed program takes no code from where it was once built.
  if (fs::exists(here / "libddx_trace.so", ignored)) packages.push_back(fs::path(DDX_WRAP_SOURCE) / "live" / "torch");
  parts.torch = first_there(packages);
  return parts;
}

JobEnvironment job_environment(const std::string& folder, const std::string& address, const InstalledParts& parts,
                               const CaptureOptions& options) {
  JobEnvironment job;
  const auto set = [&job](std::string name, std::string value) {
    job.set.emplace_back(std::move(name), std::move(value));
  };
  if (folder.empty()) return job;
  if (parts.library.empty()) {
    job.missing.emplace_back(
        "libddx_trace.so is not there (beside ddx, in ../lib/ddx, or where DDX_WRAP_LIB points): no call is recorded, "
        "and whose line is whose is not known");
    return job;
  }
  set("DDX_TRACE_DIR", folder);
  set("DDX_TRACE_LIB", parts.library);
  set(capture::kWatcherVariable, std::to_string(::getpid()));
  if (!address.empty()) set(capture::kOutputVariable, address);
  std::string preload = parts.library;
  if (options.dlopen_hooks && parts.dlopen_hooks.empty()) {
    job.missing.emplace_back("libddx_dlsym.so is not there: programs that load NCCL by dlopen are not seen to call it");
  } else if (options.dlopen_hooks) {
    preload += ":" + parts.dlopen_hooks;
  }
  set("LD_PRELOAD", prepended(preload, variable("LD_PRELOAD"), ':'));
  if (options.nccl) {
    if (const std::string user = variable("NCCL_PROFILER_PLUGIN"); !user.empty()) set("DDX_USER_PROFILER_PLUGIN", user);
    set("NCCL_PROFILER_PLUGIN", parts.library);
    // Without the times of its kernels nobody can tell a call of NCCL's that hangs from one that is over.
    if (variable("DDX_NCCL_TIMING").empty()) set("DDX_NCCL_TIMING", "gpu");
  } else {
    set("DDX_NO_NCCL", "1");
  }
  if (options.torch && parts.torch.empty()) {
    job.missing.emplace_back("ddx's Python package is not there: calls of PyTorch are not recorded");
  } else if (options.torch) {
    set("PYTHONPATH", prepended(parts.torch, variable("PYTHONPATH"), ':'));
    // Its older name makes newer releases warn on the job's standard error.
    if (variable("TORCH_FR_BUFFER_SIZE").empty() && variable("TORCH_NCCL_TRACE_BUFFER_SIZE").empty()) {
      set("TORCH_FR_BUFFER_SIZE", "2000");
    }
  }
  return job;
}

std::string make_folder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw std::system_error(error);
  if (!fs::is_empty(path, error) && !error) {
    throw RequestError(fmt::format("'{}' is not empty: what is captured would mix with what is there", path));
  }
  if (error) throw std::system_error(error);
  // Leave to write is not all that it takes: the file system may be full, or may not be written to.
  const std::string probe = path + "/.ddx-probe";
  const int file = ::open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) throw std::system_error(errno, std::generic_category());
  ::close(file);
  ::unlink(probe.c_str());
  return fs::absolute(path).lexically_normal().string();
}

std::string default_folder() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  return fmt::format("ddx-wrap-{:04}{:02}{:02}-{:02}{:02}{:02}-{}", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, ::getpid());
}

}  // namespace ddx::live
