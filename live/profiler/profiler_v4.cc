// Version 4 of the plugin interface: NCCL 2.27.
#include "live/profiler/chain.h"
#include "live/profiler/core.h"

namespace {

using namespace ddx::profiler;  // NOLINT(google-build-using-namespace): the words of the interface

constexpr int kVersion = 4;

Event common_of(const EventV4& told) {
  Event event;
  event.type = static_cast<EventType>(told.type);
  event.parent = told.parent;
  if (event.type == kColl) {
    const auto& coll = told.coll;
    event.kind = kind_of(coll.function);
    event.send = coll.send;
    event.recv = coll.recv;
    event.count = coll.count;
    event.element = type_of(coll.type);
    event.peer = coll.root;
    event.channels = coll.channels;
  } else if (event.type == kP2p) {
    const auto& p2p = told.p2p;
    event.kind = kind_of(p2p.function);
    (event.kind == ddx::capture::CallKind::send ? event.send : event.recv) = p2p.buffer;
    event.count = p2p.count;
    event.element = type_of(p2p.type);
    event.peer = p2p.peer;
    event.channels = p2p.channels;
  }
  return event;
}

Result init(void** context, int* mask, const char* comm_name, std::uint64_t comm_hash, int nodes, int ranks, int rank,
            LogFunction log) {
  const CommFacts comm{comm_name, comm_hash, ranks, rank};
  *mask = static_cast<int>(wanted_mask(kVersion, __builtin_return_address(0)));
  Context* opened = open_context(kVersion, comm);
  init_user(kVersion, opened, comm, nodes, mask, log);
  *context = opened;
  return 0;
}

Result start_event(void* context, void** handle, EventV4* event) {
  auto* own = static_cast<Context*>(context);
  *handle = start(own, common_of(*event), start_user(own, *event));
  return 0;
}

Result stop_event(void* handle) {
  stop(handle);
  stop_user(kVersion, handle);
  return 0;
}

Result record_state(void* handle, int state, void* arguments) {
  record_user(kVersion, handle, state, arguments);
  return 0;
}

Result finalize(void* context) {
  finalize_user(kVersion, static_cast<Context*>(context));
  if (context != nullptr) close_context(static_cast<Context*>(context));
  return 0;
}

}  // namespace

extern "C" {
__attribute__((visibility("default")))
PluginV4 ncclProfiler_v4 = {"ddx", init, start_event, stop_event, record_state, finalize};
}
