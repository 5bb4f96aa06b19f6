// What versions 5 and 6 share: all of it but the number, and events that only the user's own plugin cares for.
#pragma once

#include "live/profiler/chain.h"
#include "live/profiler/core.h"

namespace ddx::profiler {

Event common_of(const EventV5& told);

template <int kVersion>
struct NewPlugin {
  static Result init(void** context, std::uint64_t comm_id, int* mask, const char* comm_name, int nodes, int ranks,
                     int rank, LogFunction log) {
    const CommFacts comm{comm_name, comm_id, ranks, rank};
    *mask = static_cast<int>(wanted_mask(kVersion, __builtin_return_address(0)));
    Context* opened = open_context(kVersion, comm);
    init_user(kVersion, opened, comm, nodes, mask, log);
    *context = opened;
    return 0;
  }

  static Result start_event(void* context, void** handle, EventV5* event) {
    auto* own = static_cast<Context*>(context);
    *handle = start(own, common_of(*event), start_user(kVersion, own, *event));
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

  static constexpr PluginV5 plugin() { return {"ddx", init, start_event, stop_event, record_state, finalize}; }
};

}  // namespace ddx::profiler
