// Drives a profiler plugin as NCCL does: in the release's version of the interface, from the threads that NCCL's events
// come from, and with their faults. Events are made in the newest form and told in the older ones.
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "tests/support/nccl_double/nccl_double.h"

namespace ddx::nccl_double::profiling {

using namespace ddx::profiler;  // NOLINT(google-build-using-namespace): the structures of events

namespace {

constexpr std::uint8_t kChannels = 2;
constexpr const char* kTypes[] = {"ncclInt8",    "ncclUint8",    "ncclInt32",      "ncclUint32",
                                  "ncclInt64",   "ncclUint64",   "ncclFloat16",    "ncclFloat32",
                                  "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};

struct Plugin {
  void* at = nullptr;
  int version = 0;
};

Plugin load() {
  const char* path = std::getenv("NCCL_PROFILER_PLUGIN");
  if (path == nullptr || std::strcmp(path, "none") == 0) return {};
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return {};
  constexpr int kNewest[] = {1, 2, 2, 3, 4, 5, 6, 6};  // of 2.23 to 2.30
  for (int version = kNewest[minor_version() - 23]; version > 0; --version) {
    const std::string name = "ncclProfiler_v" + std::to_string(version);
    if (void* found = dlsym(library, name.c_str())) return {found, version};
  }
  return {};
}

const Plugin& plugin() {
  static const Plugin loaded = load();
  return loaded;
}

std::uint32_t g_mask = 0;  // one for all communicators, as in NCCL; the last init wins

// As NCCL's own counters: by ncclFunc_t.
FunctionNumber number_of(Kind kind) {
  switch (kind) {
    case Kind::all_reduce: return FunctionNumber::all_reduce;
    case Kind::broadcast: return FunctionNumber::broadcast;
    case Kind::reduce: return FunctionNumber::reduce;
    case Kind::all_gather: return FunctionNumber::all_gather;
    case Kind::reduce_scatter: return FunctionNumber::reduce_scatter;
    case Kind::recv: return FunctionNumber::recv;
    default: return FunctionNumber::send;
  }
}

const char* function_name(Kind kind) {
  constexpr const char* kNames[] = {"AllReduce", "Broadcast", "Reduce",  "AllGather", "ReduceScatter",
                                    "AlltoAll",  "Gather",    "Scatter", "Send",      "Recv"};
  return kNames[static_cast<int>(kind)];
}

bool is_transfers(Kind kind) { return kind >= Kind::all_to_all; }

template <class Table, class Event>
void start_with(Member& comm, void** handle, Event& event) {
  static_cast<Table*>(plugin().at)->start_event(comm.profiler_context, handle, &event);
}

// The older forms of an event.
template <class Event>
Event head_of(const EventV5& event) {
  Event old{};
  old.type = static_cast<std::uint8_t>(event.type);
  old.parent = event.parent;
  old.rank = event.rank;
  return old;
}

EventV4 v4_of(const EventV5& event) {
  auto old = head_of<EventV4>(event);
  if (event.type == kColl) {
    old.parent = event.coll.parent_group;
    old.coll = {event.coll.seq,   event.coll.function,  event.coll.send,    event.coll.recv,
                event.coll.count, event.coll.root,      event.coll.type,    event.coll.channels,
                event.coll.warps, event.coll.algorithm, event.coll.protocol};
  } else if (event.type == kP2p) {
    old.parent = event.p2p.parent_group;
    old.p2p = {event.p2p.function, event.p2p.buffer, event.p2p.type,
               event.p2p.count,    event.p2p.peer,   event.p2p.channels};
  } else if (event.type == kKernelCh) {
    old.kernel = event.kernel;
  }
  return old;
}

EventV3 v3_of(const Member& comm, const EventV5& event) {
  auto old = head_of<EventV3>(event);
  const char* name = comm.config_name.c_str();
  if (event.type == kColl) {
    old.parent = event.coll.parent_group;
    old.coll = {name,
                comm.hash,
                event.coll.seq,
                event.coll.function,
                event.coll.send,
                event.coll.recv,
                event.coll.count,
                event.coll.root,
                event.coll.type,
                event.coll.channels,
                event.coll.warps,
                event.coll.algorithm,
                event.coll.protocol};
  } else if (event.type == kP2p) {
    old.parent = event.p2p.parent_group;
    old.p2p = {name, comm.hash, event.p2p.function, event.p2p.buffer, event.p2p.type, event.p2p.count, event.p2p.peer};
  } else if (event.type == kKernelCh) {
    old.kernel = {event.kernel.channel};
  }
  return old;
}

EventV2 v2_of(const Member& comm, const EventV5& event) {
  auto old = head_of<EventV2>(event);
  const char* name = comm.config_name.c_str();
  if (event.type == kColl) {
    old.parent = event.coll.parent_group;
    old.coll = {name,
                comm.hash,
                event.coll.seq,
                event.coll.function,
                event.coll.send,
                event.coll.recv,
                event.coll.count,
                event.coll.root,
                event.coll.type,
                0,
                event.coll.channels,
                event.coll.warps,
                event.coll.algorithm,
                event.coll.protocol};
  } else if (event.type == kP2p) {
    old.parent = event.p2p.parent_group;
    old.p2p = {name, comm.hash, event.p2p.function, event.p2p.buffer, event.p2p.type, event.p2p.count, event.p2p.peer};
  }
  return old;
}

std::uint8_t type_number(const char* name) {
  std::uint8_t number = 0;
  while (std::strcmp(kTypes[number], name) != 0) ++number;
  return number;
}

EventV1 v1_of(const Member& comm, const EventV5& event, const Task* task) {
  auto old = head_of<EventV1>(event);
  const char* name = comm.config_name.c_str();
  if (event.type == kColl) {
    old.parent = event.coll.parent_group;
    old.coll = {name,
                comm.hash,
                event.coll.seq,
                static_cast<std::uint8_t>(number_of(task->kind)),
                event.coll.send,
                event.coll.recv,
                event.coll.count,
                event.coll.root,
                type_number(event.coll.type),
                static_cast<std::uint32_t>(task->op < 0 ? nccl::kSum : task->op),
                0,
                event.coll.channels,
                event.coll.warps,
                0,
                0,
                0,
                0};
  } else if (event.type == kP2p) {
    old.parent = event.p2p.parent_group;
    old.p2p = {name,
               comm.hash,
               static_cast<std::uint8_t>(number_of(task->kind)),
               event.p2p.buffer,
               type_number(event.p2p.type),
               event.p2p.count,
               event.p2p.peer};
  }
  return old;
}

void* start(Member& comm, EventV5 event, const Task* task = nullptr) {
  void* handle = nullptr;
  event.rank = comm.rank;
  const int version = plugin().version;
  if (version >= 5) {
    start_with<PluginV5>(comm, &handle, event);
  } else if (event.type > kNetPlugin || (version < 3 && event.type == kKernelCh)) {
    return nullptr;  // that release has no such event
  } else if (version == 4) {
    auto old = v4_of(event);
    start_with<PluginV4>(comm, &handle, old);
  } else if (version == 3) {
    auto old = v3_of(comm, event);
    start_with<PluginV3>(comm, &handle, old);
  } else if (version == 2) {
    auto old = v2_of(comm, event);
    start_with<PluginV2>(comm, &handle, old);
  } else {
    auto old = v1_of(comm, event, task);
    start_with<PluginV1>(comm, &handle, old);
  }
  return handle;
}

// These two stand at one place in the structures of all versions but for what is before them.
void stop(void* handle) {
  if (handle == nullptr) return;
  if (plugin().version >= 5) static_cast<PluginV5*>(plugin().at)->stop_event(handle);
  if (plugin().version == 4) static_cast<PluginV4*>(plugin().at)->stop_event(handle);
  if (plugin().version < 4) static_cast<PluginV3*>(plugin().at)->stop_event(handle);
}

void record(void* handle, int state, std::uint64_t timer) {
  if (handle == nullptr) return;
  if (plugin().version >= 5) static_cast<PluginV5*>(plugin().at)->record_state(handle, state, &timer);
  if (plugin().version == 4) static_cast<PluginV4*>(plugin().at)->record_state(handle, state, &timer);
}

EventV5 event_of(EventType type, void* parent) {
  EventV5 event{};
  event.type = type;
  event.parent = parent;
  return event;
}

// Nothing is launched for these, so that nobody is told.
bool is_silent(const Task& task) { return task.count == 0 || task.comm->size == 1; }

thread_local void* t_group_event = nullptr;
thread_local void* t_coll_event = nullptr;  // stays after its stop, as NCCL's does
thread_local int t_calls = 0;

// One send and one receive for each peer that data goes to or comes from.
struct Transfer {
  bool is_send;
  int peer;
};
std::vector<Transfer> transfers_of(const Task& task) {
  if (task.kind == Kind::send) return {{true, task.root}};
  if (task.kind == Kind::recv) return {{false, task.root}};
  std::vector<Transfer> transfers;
  const bool at_root = task.comm->rank == task.root;
  for (int peer = 0; peer < task.comm->size; ++peer) {
    const bool sends = task.kind == Kind::all_to_all || (task.kind == Kind::gather ? peer == task.root : at_root);
    const bool receives = task.kind == Kind::all_to_all || (task.kind == Kind::gather ? at_root : peer == task.root);
    if (sends) transfers.push_back({true, peer});
    if (receives) transfers.push_back({false, peer});
  }
  return transfers;
}

void* start_coll(Task& task, void* group) {
  EventV5 event = event_of(kColl, task.api_event);
  auto& coll = event.coll;
  const bool in_bytes = task.kind == Kind::all_gather || task.kind == Kind::broadcast;
  coll.seq = task.comm->seq[static_cast<int>(number_of(task.kind))]++;
  coll.function = function_name(task.kind);
  coll.send = task.send;
  coll.recv = task.recv;
  coll.count = in_bytes ? task.count * nccl::bytes_of(task.type) : task.count;
  coll.root = task.root < 0 ? 0 : task.root;
  coll.type = in_bytes ? kTypes[nccl::kInt8] : kTypes[task.type];
  coll.channels = kChannels;
  coll.algorithm = "RING";
  coll.protocol = "SIMPLE";
  coll.parent_group = group;
  return start(*task.comm, event, &task);
}

}  // namespace

void init(Member& comm) {
  const Plugin& loaded = plugin();
  if (loaded.at == nullptr) return;
  // Communicators are made by a thread of NCCL's own.
  std::thread([&] {
    const char* name = comm.config_name.c_str();
    if (loaded.version >= 5) {
      static_cast<PluginV5*>(loaded.at)->init(&comm.profiler_context, comm.hash, reinterpret_cast<int*>(&g_mask), name,
                                              1, comm.size, comm.rank, nullptr);
    } else if (loaded.version == 4) {
      static_cast<PluginV4*>(loaded.at)->init(&comm.profiler_context, reinterpret_cast<int*>(&g_mask), name, comm.hash,
                                              1, comm.size, comm.rank, nullptr);
    } else {
      static_cast<PluginV3*>(loaded.at)->init(&comm.profiler_context, reinterpret_cast<int*>(&g_mask));
    }
  }).join();
}

void finalize(Member& comm) {
  if (plugin().at == nullptr || comm.profiler_context == nullptr) return;
  if (plugin().version >= 5) static_cast<PluginV5*>(plugin().at)->finalize(comm.profiler_context);
  if (plugin().version == 4) static_cast<PluginV4*>(plugin().at)->finalize(comm.profiler_context);
  if (plugin().version < 4) static_cast<PluginV3*>(plugin().at)->finalize(comm.profiler_context);
}

void call_begins(Task& task, int group_depth) {
  if (plugin().version < 5 || g_mask == 0 || is_silent(task)) return;
  if (t_group_event == nullptr) {
    EventV5 group = event_of(kGroupApi, nullptr);
    group.group_api.depth = group_depth + 1;
    t_group_event = start(*task.comm, group);
  }
  task.group_event = t_group_event;
  if (is_transfers(task.kind)) {
    for (const Transfer& transfer : transfers_of(task)) {
      EventV5 event = event_of(kP2pApi, t_group_event);
      event.p2p_api = {transfer.is_send ? "Send" : "Recv", task.count, kTypes[task.type], task.stream, false};
      void* handle = start(*task.comm, event);
      stop(handle);
      task.p2p_api_events.push_back(handle);
    }
    return;
  }
  const bool stale = std::getenv("DDX_DOUBLE_STALE") != nullptr && ++t_calls % 2 == 0;
  if (!stale) {
    EventV5 event = event_of(kCollApi, t_group_event);
    event.coll_api = {function_name(task.kind),      task.count,  kTypes[task.type],
                      task.root < 0 ? 0 : task.root, task.stream, false};
    t_coll_event = start(*task.comm, event);
    stop(t_coll_event);
  }
  task.api_event = t_coll_event;
}

void group_ends() {
  stop(t_group_event);
  t_group_event = nullptr;
}

void launched(std::vector<Task>& tasks) {
  if (plugin().at == nullptr || (g_mask & (kColl | kP2p | kKernelCh)) == 0) return;
  bool any = false;
  for (const Task& task : tasks) any = any || !is_silent(task);
  if (!any) return;
  void* group = start(*tasks.front().comm, event_of(kGroup, nullptr));
  for (Task& task : tasks) {
    if (is_silent(task)) continue;
    if (!is_transfers(task.kind)) {
      task.events.push_back(start_coll(task, group));
      continue;
    }
    std::size_t number = 0;
    for (const Transfer& transfer : transfers_of(task)) {
      EventV5 event = event_of(kP2p, number < task.p2p_api_events.size() ? task.p2p_api_events[number] : nullptr);
      ++number;
      const void* buffer = transfer.is_send ? task.send : task.recv;
      event.p2p = {transfer.is_send ? "Send" : "Recv",
                   const_cast<void*>(buffer),
                   kTypes[task.type],
                   task.count,
                   transfer.peer,
                   kChannels,
                   group};
      task.events.push_back(start(*task.comm, event, &task));
    }
  }
  for (const Task& task : tasks) {
    for (void* event : task.events) stop(event);
  }
  stop(group);
}

void kernels(std::vector<Task>& tasks, bool begin) {
  if (plugin().at == nullptr || (g_mask & kKernelCh) == 0) return;
  static thread_local std::uint64_t timer = 0;
  for (Task& task : tasks) {
    if (begin) {
      const std::vector<void*> parents = task.events;
      for (void* parent : parents) {
        for (std::uint8_t channel = 0; channel < kChannels; ++channel) {
          EventV5 event = event_of(kKernelCh, parent);
          event.kernel = {channel, ++timer};
          task.p2p_api_events.push_back(start(*task.comm, event));
        }
      }
      // From here on the handles of the kernels stand where those of the calls did.
      task.p2p_api_events.erase(task.p2p_api_events.begin(),
                                task.p2p_api_events.end() - static_cast<std::ptrdiff_t>(parents.size() * kChannels));
    } else {
      for (void* kernel : task.p2p_api_events) {
        if (kernel == task.p2p_api_events.back()) {
          // Apart from the others, so that it is seen whether a call ends with its last kernel.
          std::this_thread::sleep_for(std::chrono::microseconds(100));
          timespec now{};
          clock_gettime(CLOCK_MONOTONIC, &now);
          ledger(fmt::format("over number={} time={}", task.number, now.tv_sec * 1'000'000'000L + now.tv_nsec));
        }
        record(kernel, kKernelChStop, ++timer);
        stop(kernel);
      }
    }
  }
}

}  // namespace ddx::nccl_double::profiling
