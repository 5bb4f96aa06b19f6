// What the interposer says of this thread to the profiler plugin, whose API events fire inside the user's call.
#pragma once

#include <atomic>
#include <cstdint>

#include "traces/capture/record.h"

namespace ddx::preload {

// A call that NCCL will tell the plugin of only when it launches the group, without a word of where it came from.
struct PendingCall {
  std::uint64_t call;  // of the recorder
  capture::CallKind kind;
  const void* send;
  const void* recv;
  std::uint64_t bytes;  // user's count times the size of an element
  int peer;             // or root; -1
};

struct Current {
  std::uint64_t call;    // the recorder's number of the call that this thread is in; 0: none
  std::uint64_t event;   // the plugin's own, of that call; 0: none yet
  PendingCall* pending;  // kMostPending of them, or nullptr
  std::uint32_t pendings;
  std::uint16_t batch;  // of the group that is open; 0: none
  std::int16_t groups;  // that are open
  std::int16_t inside;  // calls of the interposer that this thread is in
};
inline constexpr std::uint32_t kMostPending = 1024;

// Small, and at a fixed place, so that the library can be loaded late, too.
extern constinit __attribute__((tls_model("initial-exec"))) thread_local Current t_current;

// What the plugin tells the interposer: both are of the process.
struct PluginState {
  std::atomic<bool> tells_ends{false};     // kernel events are on: who does not end has not ended
  std::atomic<bool> wants_pending{false};  // it is one of the versions without API events
};
extern PluginState g_plugin;

// An interposed call makes a communicator, from this moment to the plugin's first sight of it: `size` -1 not known.
void expect_comm(int size, int position);
// Whether an interposed call makes the communicator that the plugin is told of; each expectation serves once.
bool was_expected(int size, int position);

}  // namespace ddx::preload
