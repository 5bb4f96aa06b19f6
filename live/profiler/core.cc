#include "live/profiler/core.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "live/capture/ddx_trace.h"
#include "live/preload/call.h"
#include "live/preload/current.h"

namespace ddx::profiler {

using capture::CallKind;

struct Context {
  std::atomic<bool> used;
  int version;
  CommFacts comm;
  char name[64];
  std::atomic<std::uint32_t> group;  // of the recorder; 0: nothing was recorded here yet
  bool interposed;                   // the interposer made it, and records its calls
  void* user;
};

namespace {

constexpr std::uint8_t kLayer = static_cast<std::uint8_t>(capture::Layer::nccl_profiler);
constexpr std::size_t kContexts = 1 << 10;
constexpr std::size_t kSlots = 1 << 16;

// One event, until 65,536 later ones. An event's number is its handle: number % kSlots is its place.
struct Slot {
  std::atomic<std::uint64_t> number;  // 0: being written, or never was
  EventType type;
  std::uint64_t call;              // of the recorder; 0: none
  std::uint64_t owner;             // API events: that of the first of the same call. Coll, P2p: what counts the call's
                                   // ends. Kernels: their Coll or P2p
  std::atomic<std::int32_t> open;  // owner: Coll and P2p events that have not ended; Coll, P2p: channels
  void* user;                      // the handle of the user's plugin
};

// All of the process: NCCL hands over nothing but handles.
Context g_contexts[kContexts] = {};
Slot g_slots[kSlots] = {};
std::atomic<std::uint64_t> g_numbers{0};
std::atomic<bool> g_told{false};

bool with_kernels() {
  const char* timing = std::getenv("DDX_NCCL_TIMING");
  return timing != nullptr && std::strcmp(timing, "gpu") == 0;
}

void tell(capture::EventCode code, const char* text) {
  ddx_event(static_cast<std::uint8_t>(code), kLayer, 0, ddx_text(text, std::strlen(text)), 0, 0);
}

Slot* slot_of(std::uint64_t number) {
  if (number == 0) return nullptr;
  Slot& slot = g_slots[number % kSlots];
  return slot.number.load(std::memory_order_acquire) == number ? &slot : nullptr;
}

Slot* slot_of(const void* handle) { return slot_of(reinterpret_cast<std::uint64_t>(handle)); }

// A new event's. `fill` writes what is in it, before anybody can find it.
template <class Fill>
std::uint64_t take(EventType type, void* user, Fill fill) {
  const std::uint64_t number = g_numbers.fetch_add(1, std::memory_order_relaxed) + 1;
  Slot& slot = g_slots[number % kSlots];
  slot.number.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  slot.type = type;
  slot.call = 0;
  slot.owner = 0;
  slot.open.store(0, std::memory_order_relaxed);
  slot.user = user;
  fill(slot, number);
  slot.number.store(number, std::memory_order_release);
  return number;
}

void* handle_of(std::uint64_t number) { return reinterpret_cast<void*>(number); }

std::uint32_t group_of(Context& context, const CommFacts& told) {
  std::uint32_t group = context.group.load(std::memory_order_acquire);
  if (group != 0) return group;
  const char* name = context.name[0] != '\0' ? context.name : told.name;
  DdxGroupInfo info{};
  info.size_of = sizeof(info);
  info.layer = kLayer;
  info.name = name == nullptr ? 0 : ddx_text(name, std::strlen(name));
  info.backend = ddx_text("nccl", 4);
  info.outer = ddx_current_group();
  info.size = context.comm.size;
  info.position = context.comm.position >= 0 ? context.comm.position : told.position;
  info.hash = context.comm.hash != 0 ? context.comm.hash : told.hash;
  info.device = -1;
  const std::uint32_t made = ddx_group(&info);
  context.group.compare_exchange_strong(group, made);
  return context.group.load(std::memory_order_acquire);
}

// What NCCL turned into bytes before it told of it: the user's own type and count are not known.
bool is_in_bytes(const Context& context, const Event& event) {
  return context.version < 5 && event.element == nccl::kInt8 &&
         (event.kind == CallKind::all_gather || event.kind == CallKind::broadcast);
}

// A call that only the plugin sees.
std::uint64_t record(Context& context, const Event& event) {
  DdxCallInfo info{};
  info.size_of = sizeof(info);
  info.layer = kLayer;
  info.kind = static_cast<std::uint8_t>(event.kind);
  info.flags = capture::kAsync;
  info.group = group_of(context, event.comm);
  const bool rooted = event.kind == CallKind::broadcast || event.kind == CallKind::reduce ||
                      event.kind == CallKind::send || event.kind == CallKind::recv;
  info.peer = rooted ? event.peer : -1;
  info.stream = reinterpret_cast<std::uint64_t>(event.stream);
  info.count = event.count;
  if (event.kind == CallKind::reduce_scatter && context.comm.size > 0) {
    info.count *= static_cast<std::uint64_t>(context.comm.size);
  } else if (event.kind == CallKind::reduce_scatter) {
    info.flags |= capture::kNoCount;
  }
  if (is_in_bytes(context, event)) {
    info.flags |= capture::kNoCount;
  } else {
    info.element = preload::element_of(event.element);
  }
  // NCCL has a reduction for every function.
  const bool reduces =
      event.kind == CallKind::all_reduce || event.kind == CallKind::reduce || event.kind == CallKind::reduce_scatter;
  if (reduces) info.reduction = preload::reduction_of(event.reduction);
  if (!preload::g_plugin.tells_ends.load(std::memory_order_relaxed)) info.flags |= capture::kNoEnd;
  const std::uint64_t call = ddx_begin(&info);
  ddx_returned(call, 0);
  return call;
}

// The interposer's call of this thread that the event is about, in releases whose events say nothing of their origin.
std::uint64_t pending_call(const Event& event) {
  preload::Current& current = preload::t_current;
  const std::uint64_t bytes = event.count * nccl::bytes_of(event.element);
  for (std::uint32_t i = 0; i < current.pendings; ++i) {
    preload::PendingCall& pending = current.pending[i];
    if (pending.call == 0 || pending.kind != event.kind || pending.bytes != bytes || pending.send != event.send ||
        pending.recv != event.recv) {
      continue;
    }
    if (event.type == kP2p && pending.peer != event.peer) continue;
    const std::uint64_t call = pending.call;
    pending.call = 0;
    return call;
  }
  return 0;
}

// In the user's thread, inside his call.
void* start_api(Context& context, const Event& event, void* user) {
  preload::Current& current = preload::t_current;
  const std::uint64_t number = take(event.type, user, [&](Slot& slot, std::uint64_t own) {
    slot.owner = own;
    slot.call = current.call;
    if (slot.call == 0 && event.type == kCollApi) slot.call = record(context, event);
    slot.open.store(1, std::memory_order_relaxed);
    if (current.call == 0) return;
    // An all-to-all is many sends and receives, and over when they all are.
    if (Slot* first = slot_of(current.event)) {
      slot.owner = current.event;
      first->open.fetch_add(1, std::memory_order_relaxed);
    } else {
      current.event = own;
    }
  });
  return handle_of(number);
}

// When a group is launched.
void* start_task(Context& context, const Event& event, void* user) {
  const Slot* api = slot_of(event.parent);
  const bool has_origin = api != nullptr && (api->type == kCollApi || api->type == kP2pApi);
  const std::uint64_t number = take(event.type, user, [&](Slot& slot, std::uint64_t own) {
    slot.owner = own;
    if (has_origin && api->call != 0) {
      slot.call = api->call;
      slot.owner = api->owner;
    } else if (context.version < 5) {
      slot.call = pending_call(event);
      if (slot.call == 0 && !context.interposed) slot.call = record(context, event);
    } else if (event.type == kP2p) {
      slot.call = record(context, event);  // its API event did not tell the peer
    }
    slot.open.store(event.channels, std::memory_order_relaxed);
  });
  return handle_of(number);
}

void* start_kernel(const Event& event, void* user) {
  const Slot* task = slot_of(event.parent);
  if (task == nullptr || (task->type != kColl && task->type != kP2p))
    return handle_of(take(event.type, user, [](Slot&, std::uint64_t) {}));
  ddx_started(task->call, 0);
  const auto owner = reinterpret_cast<std::uint64_t>(event.parent);
  return handle_of(take(event.type, user, [&](Slot& slot, std::uint64_t) { slot.owner = owner; }));
}

// A channel's part is done; that of the last channel of the last part ends the call.
void stop_kernel(const Slot& kernel) {
  Slot* task = slot_of(kernel.owner);
  if (task == nullptr || task->open.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const std::uint64_t call = task->call;
  Slot* owner = slot_of(task->owner);
  if (owner == nullptr) return;  // so long ago that it cannot be told whether all parts are over
  if (owner != task && owner->open.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  ddx_ended(call, 0);
}

}  // namespace

std::uint32_t wanted_mask(int version, const void* nccl_code) {
  if (ddx_recording() == 0) return 0;
  std::uint32_t mask = kColl | kP2p;
  if (version >= 5) mask |= kGroupApi | kCollApi | kP2pApi;
  if (version < 4 || !with_kernels()) return mask;
  int number = 0;
  preload::real<preload::Function::GetVersion>(preload::site_of(nccl_code, false).library, &number);
  if (number < 23100) return mask | kKernelCh;
  if (!g_told.exchange(true)) tell(capture::EventCode::layer_blind, "times on the GPU cost too much from NCCL 2.31 on");
  return mask;
}

Context* open_context(int version, const CommFacts& comm) {
  for (Context& context : g_contexts) {
    bool free = false;
    if (context.used.load(std::memory_order_relaxed) || !context.used.compare_exchange_strong(free, true)) continue;
    context.version = version;
    context.comm = comm;
    context.comm.name = nullptr;
    context.name[0] = '\0';
    if (comm.name != nullptr) std::strncpy(context.name, comm.name, sizeof(context.name) - 1);
    context.group.store(0, std::memory_order_relaxed);
    context.interposed = preload::was_expected(comm.size, comm.position);
    context.user = nullptr;
    preload::g_plugin.wants_pending.store(version < 5, std::memory_order_relaxed);
    preload::g_plugin.tells_ends.store(version >= 4 && with_kernels(), std::memory_order_relaxed);
    return &context;
  }
  return nullptr;
}

void close_context(Context* context) { context->used.store(false, std::memory_order_release); }

void*& user_context(Context* context) { return context->user; }

void* start(Context* context, const Event& event, void* user) {
  if (context == nullptr) return nullptr;
  switch (event.type) {
    case kCollApi:
    case kP2pApi: return start_api(*context, event, user);
    case kColl:
    case kP2p: return start_task(*context, event, user);
    case kKernelCh: return start_kernel(event, user);
    default: break;
  }
  // Of the others only the user's plugin hears.
  return user == nullptr ? nullptr : handle_of(take(event.type, user, [](Slot&, std::uint64_t) {}));
}

void* user_handle(const void* handle) {
  const Slot* slot = slot_of(handle);
  return slot == nullptr ? nullptr : slot->user;
}

void stop(const void* handle) {
  const Slot* slot = slot_of(handle);
  if (slot != nullptr && slot->type == kKernelCh) stop_kernel(*slot);
}

CallKind kind_of(const char* function) {
  struct Named {
    const char* name;
    CallKind kind;
  };
  constexpr Named kNames[] = {{"AllReduce", CallKind::all_reduce},
                              {"Broadcast", CallKind::broadcast},
                              {"Reduce", CallKind::reduce},
                              {"AllGather", CallKind::all_gather},
                              {"ReduceScatter", CallKind::reduce_scatter},
                              {"AlltoAll", CallKind::all_to_all},
                              {"Gather", CallKind::gather},
                              {"Scatter", CallKind::scatter},
                              {"Send", CallKind::send},
                              {"Recv", CallKind::recv}};
  for (const Named& named : kNames) {
    if (function != nullptr && std::strcmp(named.name, function) == 0) return named.kind;
  }
  return CallKind::unknown;
}

CallKind kind_of(std::uint8_t number) {
  constexpr CallKind kKinds[] = {CallKind::broadcast,      CallKind::reduce,     CallKind::all_gather,
                                 CallKind::reduce_scatter, CallKind::all_reduce, CallKind::unknown,
                                 CallKind::send,           CallKind::recv};
  return number < sizeof(kKinds) / sizeof(kKinds[0]) ? kKinds[number] : CallKind::unknown;
}

nccl::DataType type_of(const char* name) {
  constexpr const char* kNames[] = {"ncclInt8",    "ncclUint8",    "ncclInt32",      "ncclUint32",
                                    "ncclInt64",   "ncclUint64",   "ncclFloat16",    "ncclFloat32",
                                    "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};
  for (int type = 0; name != nullptr && type < nccl::kTypes; ++type) {
    if (std::strcmp(kNames[type], name) == 0) return type;
  }
  return -1;
}

nccl::DataType type_of(std::uint8_t number) { return static_cast<nccl::DataType>(number); }

}  // namespace ddx::profiler
