// Communicators: made, split, and ended.
#include <pthread.h>

#include <cstring>

#include "live/capture/ddx_trace.h"
#include "live/preload/call.h"

using namespace ddx::nccl;     // NOLINT(google-build-using-namespace): the words of the functions below
using namespace ddx::preload;  // NOLINT(google-build-using-namespace)
using ddx::capture::CallKind;
using ddx::capture::EventCode;

namespace {

constexpr std::uint8_t kLayer = static_cast<std::uint8_t>(ddx::capture::Layer::nccl_call);

// What a call that makes a communicator says of it.
struct Making {
  CommFacts facts;
  std::uint32_t name = 0;    // text
  std::uint32_t outer = 0;   // group
  std::uint32_t parent = 0;  // group
  int color = 0, key = 0;
  int device = -1;
};

// Communicators that calls inside a group make: they are there when the group ends.
struct Promise {
  Comm* comm = nullptr;
  Making making;
  const Current* thread = nullptr;  // nullptr: free
};
constexpr std::size_t kPromises = 1024;

// Makers of communicators that the profiler plugin has not met yet.
struct Expected {
  int size, position;
  bool open;
};
constexpr std::size_t kExpected = 1024;

// All of the process. The lock is held for a few stores, never over a call of NCCL.
pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
Promise g_promises[kPromises] = {};
Expected g_expected[kExpected] = {};

class Locked {
 public:
  Locked() { pthread_mutex_lock(&g_lock); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  ~Locked() { pthread_mutex_unlock(&g_lock); }
};

std::uint32_t name_in(const Config* config) {
  if (config == nullptr || config->magic != kConfigMagic || config->size < sizeof(Config)) return 0;
  const char* name = config->comm_name;
  return name == nullptr ? 0 : ddx_text(name, strnlen(name, 256));
}

void make_group(Making& making) {
  DdxGroupInfo info{};
  info.size_of = sizeof(info);
  info.layer = kLayer;
  info.name = making.name;
  info.backend = ddx_text("nccl", 4);
  info.parent = making.parent;
  info.outer = making.outer;
  info.size = making.facts.size;
  info.position = making.facts.position;
  info.hash = making.facts.hash;
  info.color = making.color;
  info.key = making.key;
  info.device = making.device;
  making.facts.group = ddx_group(&info);
}

// The communicator is there: what was not known of a split is asked for.
void made(Comm comm, Making& making) {
  if (comm == nullptr) return;
  if (making.facts.group == 0) {
    if (real<Function::CommCount>(making.facts.library, comm, &making.facts.size) != kSuccess) making.facts.size = -1;
    if (real<Function::CommUserRank>(making.facts.library, comm, &making.facts.position) != kSuccess) {
      making.facts.position = -1;
    }
    make_group(making);
  }
  add_comm(comm, making.facts);
}

// After the call that makes it: now, or when its group ends.
void settle(Result result, Comm* comm, Making& making) {
  if ((result != kSuccess && result != kInProgress) || comm == nullptr) return;
  if (t_current.groups == 0) {
    made(*comm, making);
    return;
  }
  const Locked locked;
  for (Promise& promise : g_promises) {
    if (promise.thread != nullptr) continue;
    promise = {comm, making, &t_current};
    return;
  }
}

// ncclCommInitRank and its kin: all is known before the call, so that one that never returns is seen.
template <Function kFunction, class... Arguments>
Result init(const void* caller, Comm* comm, int size, int position, std::uint64_t hash, const Config* config,
            Arguments... arguments) {
  if (!records()) return real<kFunction>(site_of(caller, false).library, arguments...);
  const Site site = site_of(caller, true);
  Making making;
  making.facts = {site.library, 0, size, position, hash};
  making.name = name_in(config);
  making.outer = ddx_current_group();
  make_group(making);
  expect_comm(size, position);
  Call call(CallKind::new_group, making.facts.group, site.library, site.frame);
  const Result result = call.pass<kFunction>(arguments...);
  settle(result, comm, making);
  return result;
}

// What ends a communicator: told before, since the pointer means nothing after, and since it may never return.
template <Function kFunction, class... Arguments>
Result leave(const void* caller, Comm comm, EventCode code, const char* name, bool forget, Arguments... arguments) {
  const bool recorded = records();
  const Site site = site_of(caller, recorded);
  KnownComm* known = find_comm(comm);
  Library* library = known != nullptr && known->facts.library != nullptr ? known->facts.library : site.library;
  if (recorded && known != nullptr) {
    ddx_event(static_cast<std::uint8_t>(code), kLayer, known->facts.group, ddx_text(name, std::strlen(name)),
              site.frame, 0);
  }
  if (forget) remove_comm(comm);
  return real<kFunction>(library, arguments...);
}

}  // namespace

namespace ddx::preload {

void expect_comm(int size, int position) {
  const Locked locked;
  for (Expected& expected : g_expected) {
    if (expected.open) continue;
    expected = {size, position, true};
    return;
  }
}

bool was_expected(int size, int position) {
  const Locked locked;
  Expected* unknown = nullptr;
  for (Expected& expected : g_expected) {
    if (!expected.open) continue;
    if (expected.size < 0 || size < 0) unknown = &expected;
    if (expected.size != size || expected.position != position) continue;
    expected.open = false;
    return true;
  }
  if (unknown != nullptr) unknown->open = false;
  return unknown != nullptr;
}

void close_group(bool there) {
  for (Promise& promise : g_promises) {
    Promise kept;
    {
      const Locked locked;
      if (promise.thread != &t_current) continue;
      kept = promise;
      promise.thread = nullptr;
    }
    if (there) made(*kept.comm, kept.making);
  }
}

}  // namespace ddx::preload

DDX_NCCL_EXPORT Result ncclCommInitRank(Comm* comm, int size, UniqueId id, int position) {
  return init<Function::CommInitRank>(DDX_CALLER, comm, size, position, hash_of(id), nullptr, comm, size, id, position);
}

DDX_NCCL_EXPORT Result ncclCommInitRankConfig(Comm* comm, int size, UniqueId id, int position, Config* config) {
  return init<Function::CommInitRankConfig>(DDX_CALLER, comm, size, position, hash_of(id), config, comm, size, id,
                                            position, config);
}

DDX_NCCL_EXPORT Result ncclCommInitRankScalable(Comm* comm, int size, int position, int count, UniqueId* ids,
                                                Config* config) {
  const std::uint64_t hash = count > 0 && ids != nullptr ? hash_of(ids[0]) : 0;
  return init<Function::CommInitRankScalable>(DDX_CALLER, comm, size, position, hash, config, comm, size, position,
                                              count, ids, config);
}

DDX_NCCL_EXPORT Result ncclCommGrow(Comm comm, int size, const UniqueId* id, int position, Comm* grown,
                                    Config* config) {
  // Members of the old communicator keep their place; not all of them are given the id.
  const KnownComm* known = find_comm(comm);
  const int place = position < 0 && known != nullptr ? known->facts.position : position;
  return init<Function::CommGrow>(DDX_CALLER, grown, size, place, 0, config, comm, size, id, position, grown, config);
}

DDX_NCCL_EXPORT Result ncclCommInitAll(Comm* comms, int count, const int* devices) {
  const Site site = site_of(DDX_CALLER, records());
  if (!records()) return real<Function::CommInitAll>(site.library, comms, count, devices);
  for (int i = 0; i < count; ++i) expect_comm(count, i);
  Making first;
  first.facts = {site.library, 0, count, 0, 0};
  first.outer = ddx_current_group();
  first.device = devices == nullptr ? 0 : devices[0];
  make_group(first);
  // One call makes them all: that of the first stands for it.
  Call call(CallKind::new_group, first.facts.group, site.library, site.frame);
  const Result result = call.pass<Function::CommInitAll>(comms, count, devices);
  for (int i = 0; result == kSuccess && i < count; ++i) {
    Making one = first;
    one.facts.position = i;
    one.device = devices == nullptr ? i : devices[i];
    if (i > 0) make_group(one);
    add_comm(comms[i], one.facts);
  }
  return result;
}

DDX_NCCL_EXPORT Result ncclCommSplit(Comm comm, int color, int key, Comm* child, Config* config) {
  const bool recorded = records();
  const Site site = site_of(DDX_CALLER, recorded);
  KnownComm* known = recorded ? known_comm(comm, site.library) : find_comm(comm);
  Library* library = known != nullptr && known->facts.library != nullptr ? known->facts.library : site.library;
  if (!recorded) return real<Function::CommSplit>(library, comm, color, key, child, config);
  Making making;
  making.facts.library = library;
  making.name = name_in(config);
  making.outer = ddx_current_group();
  making.color = color;
  making.key = key;
  if (known != nullptr) {
    making.parent = known->facts.group;
    making.facts.hash = hash_of_child(known->facts.hash, known->children.fetch_add(1),
                                      static_cast<std::uint64_t>(static_cast<std::int64_t>(color)));
  }
  if (color != kNoColor) expect_comm(-1, -1);
  Call call(CallKind::split_group, making.parent, library, site.frame);
  const Result result = call.pass<Function::CommSplit>(comm, color, key, child, config);
  if (color != kNoColor) settle(result, child, making);
  return result;
}

DDX_NCCL_EXPORT Result ncclCommShrink(Comm comm, int* excluded, int count, Comm* child, Config* config, int flags) {
  const bool recorded = records();
  const Site site = site_of(DDX_CALLER, recorded);
  KnownComm* known = recorded ? known_comm(comm, site.library) : find_comm(comm);
  Library* library = known != nullptr && known->facts.library != nullptr ? known->facts.library : site.library;
  if (!recorded || known == nullptr) {
    return real<Function::CommShrink>(library, comm, excluded, count, child, config, flags);
  }
  // Those that are left out do not call: the call is one of the new communicator.
  Making making;
  making.facts = {library, 0, known->facts.size < 0 ? -1 : known->facts.size - count, known->facts.position, 0};
  std::uint64_t choice = 1;
  for (int i = 0; i < count; ++i) {
    if (excluded[i] < known->facts.position) --making.facts.position;
    choice = choice * 31 + static_cast<std::uint64_t>(excluded[i]) + 1;
  }
  making.facts.hash = hash_of_child(known->facts.hash, known->children.fetch_add(1), choice);
  making.name = name_in(config);
  making.outer = ddx_current_group();
  making.parent = known->facts.group;
  make_group(making);
  expect_comm(making.facts.size, making.facts.position);
  Call call(CallKind::new_group, making.facts.group, library, site.frame);
  const Result result = call.pass<Function::CommShrink>(comm, excluded, count, child, config, flags);
  settle(result, child, making);
  return result;
}

DDX_NCCL_EXPORT Result ncclCommFinalize(Comm comm) {
  CallFacts facts;
  facts.name = "ncclCommFinalize";
  facts.comm = comm;
  Call call(facts, DDX_CALLER);
  return call.pass<Function::CommFinalize>(comm);
}

DDX_NCCL_EXPORT Result ncclCommDestroy(Comm comm) {
  return leave<Function::CommDestroy>(DDX_CALLER, comm, EventCode::group_destroyed, "ncclCommDestroy", true, comm);
}

DDX_NCCL_EXPORT Result ncclCommAbort(Comm comm) {
  return leave<Function::CommAbort>(DDX_CALLER, comm, EventCode::group_aborted, "ncclCommAbort", true, comm);
}

DDX_NCCL_EXPORT Result ncclCommRevoke(Comm comm, int flags) {
  return leave<Function::CommRevoke>(DDX_CALLER, comm, EventCode::group_aborted, "ncclCommRevoke", false, comm, flags);
}

DDX_NCCL_EXPORT Result ncclCommSuspend(Comm comm, int flags) {
  CallFacts facts;
  facts.name = "ncclCommSuspend";
  facts.comm = comm;
  Call call(facts, DDX_CALLER);
  return call.pass<Function::CommSuspend>(comm, flags);
}

DDX_NCCL_EXPORT Result ncclCommResume(Comm comm) {
  CallFacts facts;
  facts.name = "ncclCommResume";
  facts.comm = comm;
  Call call(facts, DDX_CALLER);
  return call.pass<Function::CommResume>(comm);
}

DDX_NCCL_EXPORT Result ncclCommGetAsyncError(Comm comm, Result* error) {
  const Site site = site_of(DDX_CALLER, false);
  KnownComm* known = find_comm(comm);
  Library* library = known != nullptr && known->facts.library != nullptr ? known->facts.library : site.library;
  const Result result = real<Function::CommGetAsyncError>(library, comm, error);
  if (result != kSuccess || error == nullptr || known == nullptr) return result;
  const int found = *error;
  // Polled by the watchdogs of frameworks: told once.
  if (found == kSuccess || found == kInProgress || known->error.exchange(found) == found || !records()) return result;
  const auto words = reinterpret_cast<const char* (*)(Result)>(real_function(library, Function::GetErrorString));
  const char* text = words == nullptr ? nullptr : words(found);
  ddx_event(static_cast<std::uint8_t>(EventCode::async_error), kLayer, known->facts.group,
            text == nullptr ? 0 : ddx_text(text, std::strlen(text)), 0, found);
  return result;
}
