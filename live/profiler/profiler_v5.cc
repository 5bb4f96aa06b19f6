// Version 5 of the plugin interface: NCCL 2.28.
#include "live/profiler/profiler_v5.h"

namespace ddx::profiler {

Event common_of(const EventV5& told) {
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
    (event.kind == capture::CallKind::send ? event.send : event.recv) = p2p.buffer;
    event.count = p2p.count;
    event.element = type_of(p2p.type);
    event.peer = p2p.peer;
    event.channels = p2p.channels;
  } else if (event.type == kCollApi) {
    const auto& api = told.coll_api;
    event.kind = kind_of(api.function);
    event.count = api.count;
    event.element = type_of(api.type);
    event.peer = api.root;
    event.stream = api.stream;
  }
  return event;
}

}  // namespace ddx::profiler

extern "C" {
__attribute__((visibility("default"))) ddx::profiler::PluginV5 ncclProfiler_v5 = ddx::profiler::NewPlugin<5>::plugin();
}
