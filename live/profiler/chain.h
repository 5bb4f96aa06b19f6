// The user's own profiler plugin: NCCL loads one for each of its copies, which is ours, so that ours hands everything
// on. DDX_USER_PROFILER_PLUGIN is what NCCL_PROFILER_PLUGIN was: a path, a file's name, or x of libnccl-profiler-x.so.
#pragma once

#include <cstdint>

#include "live/profiler/core.h"
#include "live/profiler/profiler_abi.h"

namespace ddx::profiler {

struct UserPlugin {
  void* at = nullptr;  // its structure of that version; nullptr: there is none
  int version = 0;
};

// The plugin for an NCCL that speaks `version` with us. From 4 on an older structure serves, too.
UserPlugin user_plugin(int version);

// Whether a plugin that asked for `mask` is told of such an event: a bit also brings the events above it.
bool is_wanted(EventType type, std::uint32_t mask);

// Of version 4 on: `mask` is what the user's plugin asked for is added to.
void init_user(int version, Context* context, const CommFacts& comm, int nodes, int* mask, LogFunction log);
void* start_user(int version, Context* context, EventV5 event);
void* start_user(Context* context, EventV4 event);
void stop_user(int version, const void* handle);
void record_user(int version, const void* handle, int state, void* arguments);
void finalize_user(int version, Context* context);

// Of versions 1 to 3: only to a plugin of the same version.
template <class AnyEvent>
void init_old(int version, Context* context, int* mask);
template <class AnyEvent>
void* start_old(int version, Context* context, AnyEvent event);

// What the user's plugin asked for; one for all, as NCCL's.
extern std::uint32_t g_user_mask;

template <class AnyEvent>
void init_old(int version, Context* context, int* mask) {
  const UserPlugin user = user_plugin(version);
  if (user.version != version || context == nullptr) return;
  int asked = 0;
  if (static_cast<OldPlugin<AnyEvent>*>(user.at)->init(&user_context(context), &asked) != 0) return;
  g_user_mask = static_cast<std::uint32_t>(asked);
  *mask |= asked;
}

template <class AnyEvent>
void* start_old(int version, Context* context, AnyEvent event) {
  const UserPlugin user = user_plugin(version);
  if (context == nullptr || user.version != version || !is_wanted(static_cast<EventType>(event.type), g_user_mask)) {
    return nullptr;
  }
  event.parent = user_handle(event.parent);
  void* handle = nullptr;
  static_cast<OldPlugin<AnyEvent>*>(user.at)->start_event(user_context(context), &handle, &event);
  return handle;
}

}  // namespace ddx::profiler
