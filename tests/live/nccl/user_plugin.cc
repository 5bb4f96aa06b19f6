// A profiler plugin of a user's: notes every event in USER_PLUGIN_LOG.RANK, with its own name for the event above it,
// so that it is seen whether the handles that it gave come back. Built once for version 4 and once for version 6.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

#include "live/profiler/profiler_abi.h"

namespace {

using namespace ddx::profiler;  // NOLINT(google-build-using-namespace): the words of the interface

#if USER_PLUGIN_VERSION == 4
using Event = EventV4;
#else
using Event = EventV5;
#endif

// What a handle of this plugin points to; never freed.
struct Noted {
  unsigned magic = 0xfeed;
  std::string name;
};
int g_context = 0;

void note(const std::string& line) {
  static std::mutex lock;
  const std::lock_guard guard(lock);
  const char* path = std::getenv("USER_PLUGIN_LOG");
  if (path == nullptr) return;
  if (std::FILE* file = std::fopen((std::string(path) + "." + std::getenv("RANK")).c_str(), "a")) {
    std::fprintf(file, "%s\n", line.c_str());
    std::fclose(file);
  }
}

std::string name_of(void* handle) {
  if (handle == nullptr) return "-";
  const auto* noted = static_cast<Noted*>(handle);
  return noted->magic == 0xfeed ? noted->name : "FOREIGN";
}

Result start_event(void* context, void** handle, Event* event) {
  auto* noted = new Noted;
  noted->name = std::to_string(event->type);
  if (event->type == kColl) noted->name += std::string(event->coll.function) + "x" + std::to_string(event->coll.count);
  if (event->type == kP2p) noted->name += std::string(event->p2p.function) + "x" + std::to_string(event->p2p.count);
  note("start " + noted->name + " in " + name_of(event->parent) + (context == &g_context ? "" : " FOREIGN"));
  *handle = noted;
  return 0;
}

Result stop_event(void* handle) {
  note("stop " + name_of(handle));
  return 0;
}

Result record_state(void* handle, int state, void* /*arguments*/) {
  note("state " + name_of(handle) + " " + std::to_string(state));
  return 0;
}

Result finalize(void* context) {
  note(context == &g_context ? "finalize" : "finalize FOREIGN");
  return 0;
}

// Kernels only, and so what stands above them.
#if USER_PLUGIN_VERSION == 4
Result init(void** context, int* mask, const char* name, std::uint64_t hash, int nodes, int ranks, int rank,
            LogFunction) {
#else
Result init(void** context, std::uint64_t hash, int* mask, const char* name, int nodes, int ranks, int rank,
            LogFunction) {
#endif
  note(std::string("init ") + name + " " + std::to_string(hash == 0) + " " + std::to_string(nodes) + " " +
       std::to_string(ranks) + " " + std::to_string(rank));
  *mask = kKernelCh;
  *context = &g_context;
  return 0;
}

}  // namespace

extern "C" {
#if USER_PLUGIN_VERSION == 4
PluginV4 ncclProfiler_v4 = {"user", init, start_event, stop_event, record_state, finalize};
#else
PluginV5 ncclProfiler_v6 = {"user", init, start_event, stop_event, record_state, finalize};
#endif
}
