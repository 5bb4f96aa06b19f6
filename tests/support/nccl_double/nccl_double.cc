// The functions of libnccl.so.2, under both of their names: "nccl" is weak and an alias of "pnccl", as in NCCL.
#include "tests/support/nccl_double/nccl_double.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ddx::nccl_double {

int minor_version() {
  static const int version = [] {
    const char* text = std::getenv("DDX_DOUBLE_NCCL_VERSION");
    int major = 0;
    int minor = 0;
    return text != nullptr && std::sscanf(text, "%d.%d", &major, &minor) == 2 ? minor : 28;
  }();
  return version;
}

int timeout_seconds() {
  static const int seconds = [] {
    const char* text = std::getenv("DDX_DOUBLE_TIMEOUT_S");
    return text == nullptr ? 60 : std::atoi(text);
  }();
  return seconds;
}

const void* this_library() {
  static const int here = 0;
  return &here;
}

void ledger(const std::string& line) {
  static std::mutex lock;
  const char* folder = std::getenv("DDX_DOUBLE_LEDGER");
  if (folder == nullptr) return;
  const std::lock_guard guard(lock);
  if (std::FILE* file = std::fopen(fmt::format("{}/ledger-{}.txt", folder, getpid()).c_str(), "a")) {
    fmt::print(file, "{}\n", line);
    std::fclose(file);
  }
}

namespace {

thread_local int t_depth = 0;
thread_local std::uint64_t t_group = 0;  // a number for each outermost group of the thread; 0: none
thread_local std::uint64_t t_groups = 0;
thread_local std::vector<Task> t_tasks;
thread_local std::vector<std::function<Result()>> t_jobs;  // makers of communicators

Result run_group() {
  Result result = nccl::kSuccess;
  std::vector<std::thread> threads;
  std::vector<Result> results(t_jobs.size());
  for (std::size_t i = 0; i < t_jobs.size(); ++i) {
    threads.emplace_back([&results, job = t_jobs[i], i] { results[i] = job(); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Result one : results) result = one == nccl::kSuccess ? result : one;
  t_jobs.clear();
  std::vector<Task> tasks = std::move(t_tasks);
  t_tasks.clear();
  while (!tasks.empty()) {
    Member* comm = tasks.front().comm;
    const auto rest =
        std::stable_partition(tasks.begin(), tasks.end(), [&](const Task& task) { return task.comm == comm; });
    std::vector<Task> own(std::make_move_iterator(tasks.begin()), std::make_move_iterator(rest));
    tasks.erase(tasks.begin(), rest);
    std::vector<Task> events = own;
    // What NCCL launches, and tells the profiler of, is ordered by size; the members agree on that.
    std::stable_sort(events.begin(), events.end(), [](const Task& a, const Task& b) {
      return a.count * nccl::bytes_of(a.type) > b.count * nccl::bytes_of(b.type);
    });
    profiling::launched(events);
    launch(*comm, std::move(events));
  }
  profiling::group_ends();
  return result;
}

Result make(std::function<Result()> job) {
  t_jobs.push_back(std::move(job));
  return t_depth > 0 ? nccl::kSuccess : run_group();
}

Result enqueue(Task task) {
  static const bool is_empty = std::getenv("DDX_DOUBLE_EMPTY") != nullptr;
  if (is_empty) return nccl::kSuccess;
  static std::atomic<std::uint64_t> numbers{0};
  task.number = ++numbers;
  auto* comm = task.comm;
  const bool valid = comm != nullptr && comm->library == this_library() && task.type >= 0 && task.type < nccl::kTypes &&
                     task.root < comm->size;
  ledger(fmt::format("{} comm={} rank={} size={} count={} type={} op={} root={} stream={} group={} result={} number={}",
                     name_of(task.kind), comm == nullptr ? "-" : comm->name, comm == nullptr ? -1 : comm->rank,
                     comm == nullptr ? -1 : comm->size, task.count, task.type, task.op, task.root,
                     reinterpret_cast<std::uintptr_t>(task.stream), t_group, valid ? 0 : nccl::kInvalidArgument,
                     task.number));
  if (!valid) return nccl::kInvalidArgument;
  profiling::call_begins(task, t_depth);
  t_tasks.push_back(std::move(task));
  return t_depth > 0 ? nccl::kSuccess : run_group();
}

std::string text_of(const nccl::UniqueId& id) { return std::string(id.bytes, strnlen(id.bytes, sizeof(id.bytes))); }

std::string name_of_config(const nccl::Config* config) {
  return config != nullptr && config->comm_name != nullptr ? config->comm_name : "";
}

Result init(nccl::Comm* comm, int size, const std::string& id, int rank, const std::string& config_name) {
  ledger(fmt::format("init comm={} rank={} size={} name={} group={}", id, rank, size, config_name, t_group));
  return make([comm, size, id, rank, config_name] {
    Member* made = join(id, size, rank, config_name);
    if (made != nullptr) *comm = made;
    return made == nullptr ? nccl::kRemoteError : nccl::kSuccess;
  });
}

Result split(Member* parent, int color, int key, nccl::Comm* child, const std::string& config_name) {
  Shared& shared = *parent->shared;
  const std::uint64_t number = ++parent->splits;
  shared.colors[parent->rank] = color;
  shared.keys[parent->rank] = key;
  // Nobody writes over these before all have read them: two meetings for each split.
  const auto meet = [&](std::uint64_t step) {
    shared.splits[parent->rank] = step;
    return wait_until(*parent, [&] {
      for (int rank = 0; rank < parent->size; ++rank) {
        if (shared.splits[rank] < step) return false;
      }
      return true;
    });
  };
  if (!meet(number * 2 - 1)) return nccl::kRemoteError;
  std::vector<std::pair<int, int>> members;  // key, rank
  for (int rank = 0; rank < parent->size; ++rank) {
    if (shared.colors[rank] == color) members.emplace_back(shared.keys[rank], rank);
  }
  if (!meet(number * 2)) return nccl::kRemoteError;
  *child = nullptr;
  if (color == nccl::kNoColor) return nccl::kSuccess;
  std::sort(members.begin(), members.end());
  int position = 0;
  while (members[static_cast<std::size_t>(position)].second != parent->rank) ++position;
  Member* made = join(fmt::format("{}.s{}.{}", parent->name, number, color), static_cast<int>(members.size()), position,
                      config_name);
  *child = made;
  return made == nullptr ? nccl::kRemoteError : nccl::kSuccess;
}

Member* of(nccl::Comm comm) { return static_cast<Member*>(comm); }

}  // namespace

}  // namespace ddx::nccl_double

using namespace ddx::nccl;         // NOLINT(google-build-using-namespace): the words of the functions below
using namespace ddx::nccl_double;  // NOLINT(google-build-using-namespace)

using Handle = ddx::nccl::Comm;
using ddx::nccl_double::Result;

// DOUBLE(Name, (parameters)) { body }
#define DOUBLE(name, parameters)                                                       \
  extern "C" Result pnccl##name parameters;                                            \
  extern "C" __attribute__((weak, alias("pnccl" #name))) Result nccl##name parameters; \
  extern "C" Result pnccl##name parameters

DOUBLE(GetVersion, (int* version)) {
  *version = 20000 + minor_version() * 100 + 3;
  return kSuccess;
}

DOUBLE(GetUniqueId, (UniqueId * id)) {
  static std::atomic<int> number{0};
  *id = UniqueId{};
  std::snprintf(id->bytes, sizeof(id->bytes), "/ddx_double.%d.%d.%lx", getpid(), ++number,
                static_cast<unsigned long>(std::chrono::steady_clock::now().time_since_epoch().count()));
  return kSuccess;
}

DOUBLE(CommInitRank, (Handle * comm, int size, UniqueId id, int rank)) {
  return init(comm, size, text_of(id), rank, "");
}
DOUBLE(CommInitRankConfig, (Handle * comm, int size, UniqueId id, int rank, Config* config)) {
  return init(comm, size, text_of(id), rank, name_of_config(config));
}
DOUBLE(CommInitRankScalable, (Handle * comm, int size, int rank, int /*ids*/, UniqueId* id, Config* config)) {
  return init(comm, size, text_of(*id), rank, name_of_config(config));
}
DOUBLE(CommInitAll, (Handle * comms, int size, const int* /*devices*/)) {
  UniqueId id{};
  pncclGetUniqueId(&id);
  ++t_depth;
  for (int rank = 0; rank < size; ++rank) init(&comms[rank], size, text_of(id), rank, "");
  --t_depth;
  return run_group();
}
DOUBLE(CommSplit, (Handle comm, int color, int key, Handle* child, Config* config)) {
  Member* parent = of(comm);
  ledger(
      fmt::format("split comm={} rank={} color={} key={} group={}", parent->name, parent->rank, color, key, t_group));
  return make([=, name = name_of_config(config)] { return split(parent, color, key, child, name); });
}
#ifndef DDX_DOUBLE_OLD
DOUBLE(CommShrink, (Handle comm, int* excluded, int count, Handle* child, Config* config, int /*flags*/)) {
  Member* parent = of(comm);
  int rank = parent->rank;
  for (int i = 0; i < count; ++i) rank -= excluded[i] < parent->rank ? 1 : 0;
  const std::string name = fmt::format("{}.k{}", parent->name, ++parent->shrinks);
  ledger(fmt::format("shrink comm={} rank={} size={}", name, rank, parent->size - count));
  return make([=, size = parent->size - count, config_name = name_of_config(config)] {
    *child = join(name, size, rank, config_name);
    return *child == nullptr ? kRemoteError : kSuccess;
  });
}
#endif

DOUBLE(CommFinalize, (Handle comm)) {
  flush(*of(comm));
  return kSuccess;
}
DOUBLE(CommDestroy, (Handle comm)) {
  ledger(fmt::format("destroy comm={}", of(comm)->name));
  end(of(comm), false);
  return kSuccess;
}
DOUBLE(CommAbort, (Handle comm)) {
  ledger(fmt::format("abort comm={}", of(comm)->name));
  end(of(comm), true);
  return kSuccess;
}
DOUBLE(CommGetAsyncError, (Handle comm, Result* error)) {
  *error = of(comm)->error;
  return kSuccess;
}
DOUBLE(CommCount, (Handle comm, int* count)) {
  *count = of(comm)->size;
  return kSuccess;
}
DOUBLE(CommCuDevice, (Handle comm, int* device)) {
  *device = of(comm)->rank;
  return kSuccess;
}
DOUBLE(CommUserRank, (Handle comm, int* rank)) {
  *rank = of(comm)->rank;
  return kSuccess;
}

extern "C" const char* pncclGetErrorString(Result result) {
  return result == kSuccess       ? "no error"
         : result == kRemoteError ? "remote process exited or there was a network error"
                                  : "an error";
}
extern "C" __attribute__((weak, alias("pncclGetErrorString"))) const char* ncclGetErrorString(Result);
extern "C" const char* pncclGetLastError(Handle /*comm*/) { return ""; }
extern "C" __attribute__((weak, alias("pncclGetLastError"))) const char* ncclGetLastError(Handle);

DOUBLE(GroupStart, ()) {
  // Copies of this library in one process count apart.
  if (t_depth++ == 0) t_group = reinterpret_cast<std::uintptr_t>(this_library()) + ++t_groups;
  return kSuccess;
}
DOUBLE(GroupEnd, ()) {
  if (t_depth == 0) return kInvalidUsage;
  if (--t_depth > 0) return kSuccess;
  t_group = 0;
  return run_group();
}

DOUBLE(AllReduce,
       (const void* send, void* recv, std::size_t count, DataType type, ReduceOp op, Handle comm, Stream stream)) {
  return enqueue({Kind::all_reduce, send, recv, count, type, op, -1, stream, of(comm)});
}
DOUBLE(Broadcast,
       (const void* send, void* recv, std::size_t count, DataType type, int root, Handle comm, Stream stream)) {
  return enqueue({Kind::broadcast, send, recv, count, type, -1, root, stream, of(comm)});
}
// Through the procedure linkage table, as in NCCL: an interposer meets this call, too.
DOUBLE(Bcast, (void* buffer, std::size_t count, DataType type, int root, Handle comm, Stream stream)) {
  return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}
DOUBLE(Reduce, (const void* send, void* recv, std::size_t count, DataType type, ReduceOp op, int root, Handle comm,
                Stream stream)) {
  return enqueue({Kind::reduce, send, recv, count, type, op, root, stream, of(comm)});
}
DOUBLE(AllGather, (const void* send, void* recv, std::size_t count, DataType type, Handle comm, Stream stream)) {
  return enqueue({Kind::all_gather, send, recv, count, type, -1, -1, stream, of(comm)});
}
DOUBLE(ReduceScatter,
       (const void* send, void* recv, std::size_t count, DataType type, ReduceOp op, Handle comm, Stream stream)) {
  return enqueue({Kind::reduce_scatter, send, recv, count, type, op, -1, stream, of(comm)});
}
#ifndef DDX_DOUBLE_OLD
DOUBLE(AlltoAll, (const void* send, void* recv, std::size_t count, DataType type, Handle comm, Stream stream)) {
  return enqueue({Kind::all_to_all, send, recv, count, type, -1, -1, stream, of(comm)});
}
DOUBLE(Gather, (const void* send, void* recv, std::size_t count, DataType type, int root, Handle comm, Stream stream)) {
  return enqueue({Kind::gather, send, recv, count, type, -1, root, stream, of(comm)});
}
DOUBLE(Scatter,
       (const void* send, void* recv, std::size_t count, DataType type, int root, Handle comm, Stream stream)) {
  return enqueue({Kind::scatter, send, recv, count, type, -1, root, stream, of(comm)});
}
#endif
DOUBLE(Send, (const void* buffer, std::size_t count, DataType type, int peer, Handle comm, Stream stream)) {
  return enqueue({Kind::send, buffer, nullptr, count, type, -1, peer, stream, of(comm)});
}
DOUBLE(Recv, (void* buffer, std::size_t count, DataType type, int peer, Handle comm, Stream stream)) {
  return enqueue({Kind::recv, nullptr, buffer, count, type, -1, peer, stream, of(comm)});
}

DOUBLE(RedOpCreatePreMulSum, (ReduceOp * op, void* /*scalar*/, DataType /*type*/, int /*residence*/, Handle /*comm*/)) {
  static std::atomic<int> next{kBuiltInOps};
  *op = next++;
  return kSuccess;
}
DOUBLE(RedOpDestroy, (ReduceOp /*op*/, Handle /*comm*/)) { return kSuccess; }
DOUBLE(CommRegister, (Handle /*comm*/, void* buffer, std::size_t /*size*/, void** handle)) {
  *handle = buffer;
  return kSuccess;
}
DOUBLE(CommDeregister, (Handle /*comm*/, void* /*handle*/)) { return kSuccess; }
DOUBLE(MemAlloc, (void** at, std::size_t size)) {
  *at = std::malloc(size);
  return kSuccess;
}
DOUBLE(MemFree, (void* at)) {
  std::free(at);
  return kSuccess;
}
