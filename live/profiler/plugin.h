// What all versions of the plugin have in common: events in shared words, and what NCCL's calls come to. A version is
// its number, its event's layout and what its init is told.
#pragma once

#include <type_traits>

#include "live/profiler/chain.h"
#include "live/profiler/core.h"

namespace ddx::profiler {

// Of a collective or a transfer as any version tells of it, what all tell.
template <class Coll>
void take_coll(Event& event, const Coll& coll) {
  event.kind = kind_of(coll.function);
  event.send = coll.send;
  event.recv = coll.recv;
  event.count = coll.count;
  event.element = type_of(coll.type);
  event.peer = coll.root;
}

template <class P2p>
void take_p2p(Event& event, const P2p& p2p) {
  event.kind = kind_of(p2p.function);
  (event.kind == capture::CallKind::send ? event.send : event.recv) = p2p.buffer;
  event.count = p2p.count;
  event.element = type_of(p2p.type);
  event.peer = p2p.peer;
}

template <class AnyEvent>
Event common_of(const AnyEvent& told) {
  constexpr bool kTellsChannels = std::is_same_v<AnyEvent, EventV4> || std::is_same_v<AnyEvent, EventV5>;
  Event event;
  event.type = static_cast<EventType>(told.type);
  event.parent = told.parent;
  if (event.type == kColl) take_coll(event, told.coll);
  if (event.type == kP2p) take_p2p(event, told.p2p);
  if constexpr (kTellsChannels) {
    if (event.type == kColl) event.channels = told.coll.channels;
    if (event.type == kP2p) event.channels = told.p2p.channels;
  } else {  // which tell with each event whose it is
    if (event.type == kColl) event.comm = {told.coll.comm_name, told.coll.comm_hash, -1, told.rank};
    if (event.type == kP2p) event.comm = {told.p2p.comm_name, told.p2p.comm_hash, -1, told.rank};
  }
  if constexpr (std::is_same_v<AnyEvent, EventV1>) {
    if (event.type == kColl) event.reduction = static_cast<int>(told.coll.reduction);
  }
  if constexpr (std::is_same_v<AnyEvent, EventV5>) {
    if (event.type != kCollApi) return event;
    const auto& api = told.coll_api;
    event.kind = kind_of(api.function);
    event.count = api.count;
    event.element = type_of(api.type);
    event.peer = api.root;
    event.stream = api.stream;
  }
  return event;
}

template <int kVersion, class AnyEvent>
struct Plugin {
  // Versions 1 to 3, 4, and 5 and 6. Each asks for its own caller, which is NCCL.
  static Result init(void** context, int* mask) {
    *mask = static_cast<int>(wanted_mask(kVersion, __builtin_return_address(0)));
    Context* opened = open_context(kVersion, {});
    init_old<AnyEvent>(kVersion, opened, mask);
    *context = opened;
    return 0;
  }

  static Result init(void** context, int* mask, const char* comm_name, std::uint64_t comm_hash, int nodes, int ranks,
                     int rank, LogFunction log) {
    *mask = static_cast<int>(wanted_mask(kVersion, __builtin_return_address(0)));
    *context = open_new({comm_name, comm_hash, ranks, rank}, nodes, mask, log);
    return 0;
  }

  static Result init(void** context, std::uint64_t comm_id, int* mask, const char* comm_name, int nodes, int ranks,
                     int rank, LogFunction log) {
    *mask = static_cast<int>(wanted_mask(kVersion, __builtin_return_address(0)));
    *context = open_new({comm_name, comm_id, ranks, rank}, nodes, mask, log);
    return 0;
  }

  static Result start_event(void* context, void** handle, AnyEvent* event) {
    auto* own = static_cast<Context*>(context);
    void* users = nullptr;
    if constexpr (kVersion >= 5) {
      users = start_user(kVersion, own, *event);
    } else if constexpr (kVersion == 4) {
      users = start_user(own, *event);
    } else {
      users = start_old(kVersion, own, *event);
    }
    *handle = start(own, common_of(*event), users);
    return 0;
  }

  static Result stop_event(void* handle) {
    stop(handle);
    stop_user(kVersion, handle);
    return 0;
  }

  static Result record_state(void* handle, int state, void* arguments) {
    record_user(kVersion, handle, state, arguments);
    return 0;
  }

  static Result finalize(void* context) {
    finalize_user(kVersion, static_cast<Context*>(context));
    if (context != nullptr) close_context(static_cast<Context*>(context));
    return 0;
  }

 private:
  static Context* open_new(const CommFacts& comm, int nodes, int* mask, LogFunction log) {
    Context* opened = open_context(kVersion, comm);
    init_user(kVersion, opened, comm, nodes, mask, log);
    return opened;
  }
};

}  // namespace ddx::profiler
