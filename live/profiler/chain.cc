#include "live/profiler/chain.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "live/capture/ddx_trace.h"

namespace ddx::profiler {

std::uint32_t g_user_mask = 0;

namespace {

// All of the process, as NCCL's own: a library is loaded once.
pthread_once_t g_once = PTHREAD_ONCE_INIT;
void* g_plugins[7] = {};  // by version

void say_blind(const char* text) {
  ddx_event(static_cast<std::uint8_t>(capture::EventCode::layer_blind),
            static_cast<std::uint8_t>(capture::Layer::nccl_profiler), 0, ddx_text(text, std::strlen(text)), 0, 0);
}

void load() {
  const char* name = std::getenv("DDX_USER_PROFILER_PLUGIN");
  if (name == nullptr || *name == '\0' || std::strcmp(name, "none") == 0) return;
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    char full[512];
    std::snprintf(full, sizeof(full), "libnccl-profiler-%s.so", name);
    library = dlopen(full, RTLD_NOW | RTLD_LOCAL);
  }
  if (library == nullptr) {
    say_blind("the program's own profiler plugin could not be loaded");
    return;
  }
  for (int version = 1; version <= 6; ++version) {
    char symbol[32];
    std::snprintf(symbol, sizeof(symbol), "ncclProfiler_v%d", version);
    g_plugins[version] = dlsym(library, symbol);
  }
}

EventV4 v4_of(const EventV5& event) {
  EventV4 old{};
  old.type = static_cast<std::uint8_t>(event.type);
  old.parent = event.parent;
  old.rank = event.rank;
  switch (event.type) {
    case kColl:
      old.parent = event.coll.parent_group;
      old.coll = {event.coll.seq,   event.coll.function,  event.coll.send,    event.coll.recv,
                  event.coll.count, event.coll.root,      event.coll.type,    event.coll.channels,
                  event.coll.warps, event.coll.algorithm, event.coll.protocol};
      break;
    case kP2p:
      old.parent = event.p2p.parent_group;
      old.p2p = {event.p2p.function, event.p2p.buffer, event.p2p.type,
                 event.p2p.count,    event.p2p.peer,   event.p2p.channels};
      break;
    case kProxyOp: old.proxy_op = event.proxy_op; break;
    case kProxyStep: old.proxy_step = event.proxy_step; break;
    case kKernelCh: old.kernel = event.kernel; break;
    case kNetPlugin: old.net = event.net; break;
    default: break;
  }
  return old;
}

// Another process's handle means nothing here: the plugin looks at the pid itself.
template <class AnyEvent>
void translate_parent(AnyEvent& event) {
  if (event.type == kProxyOp && event.proxy_op.pid != getpid()) return;
  event.parent = user_handle(event.parent);
}

}  // namespace

UserPlugin user_plugin(int version) {
  pthread_once(&g_once, load);
  const int oldest = version >= 4 ? 4 : version;
  for (int candidate = version; candidate >= oldest; --candidate) {
    if (g_plugins[candidate] != nullptr) return {g_plugins[candidate], candidate};
  }
  return {};
}

bool is_wanted(EventType type, std::uint32_t mask) {
  constexpr std::uint32_t kBelowProxy = kProxyStep | kNetPlugin;
  constexpr std::uint32_t kBelowTask = kProxyOp | kBelowProxy | kKernelCh;
  constexpr std::uint32_t kCopyEngine = kCeColl | kCeSync | kCeBatch;
  std::uint32_t bits = type;
  switch (type) {
    case kProxyOp: bits |= kBelowProxy; break;
    case kProxyStep: bits |= kNetPlugin; break;
    case kColl:
    case kP2p: bits |= kBelowTask; break;
    case kGroup: bits |= kColl | kP2p | kBelowTask; break;
    case kCollApi: bits |= kColl | kBelowTask | kCopyEngine; break;
    case kP2pApi: bits |= kP2p | kBelowTask; break;
    case kGroupApi:
      bits |= kCollApi | kP2pApi | kKernelLaunch | kGroup | kColl | kP2p | kBelowTask | kCopyEngine;
      break;
    default: break;
  }
  return (mask & bits) != 0;
}

void init_user(int version, Context* context, const CommFacts& comm, int nodes, int* mask, LogFunction log) {
  const UserPlugin user = user_plugin(version);
  if (user.at == nullptr || context == nullptr) return;
  void** own = &user_context(context);
  int asked = 0;
  const Result result = user.version >= 5 ? static_cast<PluginV5*>(user.at)->init(own, comm.hash, &asked, comm.name,
                                                                                  nodes, comm.size, comm.position, log)
                                          : static_cast<PluginV4*>(user.at)->init(own, &asked, comm.name, comm.hash,
                                                                                  nodes, comm.size, comm.position, log);
  if (result != 0) return;
  g_user_mask = static_cast<std::uint32_t>(asked);
  *mask |= asked;
}

void* start_user(int version, Context* context, EventV5 event) {
  const UserPlugin user = user_plugin(version);
  const auto type = static_cast<EventType>(event.type);
  if (user.at == nullptr || context == nullptr || !is_wanted(type, g_user_mask)) return nullptr;
  if (user.version == 5 && version == 6 && type >= kCeColl) return nullptr;
  if (user.version == 4 && type >= kGroupApi) return nullptr;
  translate_parent(event);
  if (type == kColl) event.coll.parent_group = user_handle(event.coll.parent_group);
  if (type == kP2p) event.p2p.parent_group = user_handle(event.p2p.parent_group);
  void* handle = nullptr;
  if (user.version >= 5) {
    static_cast<PluginV5*>(user.at)->start_event(user_context(context), &handle, &event);
  } else {
    EventV4 old = v4_of(event);
    static_cast<PluginV4*>(user.at)->start_event(user_context(context), &handle, &old);
  }
  return handle;
}

void* start_user(Context* context, EventV4 event) {
  const UserPlugin user = user_plugin(4);
  if (user.at == nullptr || context == nullptr || !is_wanted(static_cast<EventType>(event.type), g_user_mask)) {
    return nullptr;
  }
  translate_parent(event);
  void* handle = nullptr;
  static_cast<PluginV4*>(user.at)->start_event(user_context(context), &handle, &event);
  return handle;
}

// These three have one form in all versions, at one place of the structure.
static_assert(offsetof(PluginV5, stop_event) == offsetof(PluginV1, stop_event));
static_assert(offsetof(PluginV4, stop_event) == offsetof(PluginV1, stop_event));

void stop_user(int version, const void* handle) {
  void* own = user_handle(handle);
  if (own != nullptr) static_cast<PluginV5*>(user_plugin(version).at)->stop_event(own);
}

void record_user(int version, const void* handle, int state, void* arguments) {
  void* own = user_handle(handle);
  const UserPlugin user = user_plugin(version);
  if (own == nullptr || (user.version == 4 && state > kKernelChStop)) return;
  static_cast<PluginV5*>(user.at)->record_state(own, state, arguments);
}

void finalize_user(int version, Context* context) {
  if (context == nullptr || user_context(context) == nullptr) return;
  static_cast<PluginV5*>(user_plugin(version).at)->finalize(user_context(context));
}

}  // namespace ddx::profiler
