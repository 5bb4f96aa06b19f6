// Meeting places in shared memory, and the thread of each communicator that runs what was launched.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/support/nccl_double/nccl_double.h"

namespace ddx::nccl_double {

namespace {

std::shared_ptr<Shared> map_shared(const std::string& name) {
  const int file = shm_open(name.c_str(), O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, sizeof(Shared)) != 0) return nullptr;
  void* at = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (at == MAP_FAILED) return nullptr;
  return {static_cast<Shared*>(at), [](Shared* shared) { munmap(shared, sizeof(Shared)); }};
}

// All of a group is posted before any of it is waited for.
bool run(Member& comm, const std::vector<Task>& tasks) {
  Shared& shared = *comm.shared;
  std::vector<std::function<bool()>> waits;
  for (const Task& task : tasks) {
    const int me = comm.rank;
    const int peer = task.root;
    if (task.kind == Kind::send) {
      const auto number = ++shared.sends[me][peer];
      waits.emplace_back([&shared, me, peer, number] { return shared.receives[peer][me] >= number; });
    } else if (task.kind == Kind::recv) {
      const auto number = ++shared.receives[me][peer];
      waits.emplace_back([&shared, me, peer, number] { return shared.sends[peer][me] >= number; });
    } else {
      const auto number = ++comm.collectives;
      shared.collectives[me] = number;
      waits.emplace_back([&shared, &comm, number] {
        for (int rank = 0; rank < comm.size; ++rank) {
          if (shared.collectives[rank] < number) return false;
        }
        return true;
      });
    }
  }
  for (const auto& wait : waits) {
    if (!wait_until(comm, wait)) return false;
  }
  return true;
}

void run_all(Member& comm) {
  std::unique_lock guard(comm.lock);
  while (true) {
    comm.changed.wait(guard, [&] { return comm.stop || !comm.work.empty(); });
    if (comm.work.empty()) return;
    std::vector<Task> tasks = std::move(comm.work.front());
    comm.work.pop_front();
    comm.busy = true;
    guard.unlock();
    profiling::kernels(tasks, true);
    const bool done = run(comm, tasks);
    if (done) {
      profiling::kernels(tasks, false);
    } else {
      comm.error = nccl::kRemoteError;
    }
    guard.lock();
    comm.busy = false;
    comm.changed.notify_all();
  }
}

std::uint64_t hash_of_name(const std::string& name) {
  char bytes[128] = {};
  std::memcpy(bytes, name.data(), std::min(name.size(), sizeof(bytes)));
  std::uint64_t hash = 5381;
  for (const char byte : bytes) hash = (hash * 33) ^ static_cast<std::uint64_t>(byte);
  return hash;
}

}  // namespace

const char* name_of(Kind kind) {
  constexpr const char* kNames[] = {"all_reduce", "broadcast", "reduce",  "all_gather", "reduce_scatter",
                                    "all_to_all", "gather",    "scatter", "send",       "recv"};
  return kNames[static_cast<int>(kind)];
}

bool wait_until(Member& comm, const std::function<bool()>& reached) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(timeout_seconds());
  for (int turn = 0; !reached(); ++turn) {
    if (comm.aborted || comm.shared->aborted != 0 || std::chrono::steady_clock::now() > limit) return false;
    if (turn < 100) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }
  return true;
}

Member* join(const std::string& name, int size, int rank, const std::string& config_name) {
  if (size > kMostRanks || rank < 0 || rank >= size) return nullptr;
  auto comm = std::make_unique<Member>();
  comm->library = this_library();
  comm->shared = map_shared(name);
  if (comm->shared == nullptr) return nullptr;
  comm->name = name;
  comm->hash = hash_of_name(name);
  comm->size = size;
  comm->rank = rank;
  comm->config_name = config_name;
  profiling::init(*comm);
  ++comm->shared->joined;
  Member& made = *comm;
  if (!wait_until(made, [&made] { return made.shared->joined >= made.size; })) {
    shm_unlink(name.c_str());
    return nullptr;
  }
  made.runner = std::thread([&made] { run_all(made); });
  return comm.release();
}

void launch(Member& comm, std::vector<Task> tasks) {
  const std::lock_guard guard(comm.lock);
  comm.work.push_back(std::move(tasks));
  comm.changed.notify_all();
}

void flush(Member& comm) {
  std::unique_lock guard(comm.lock);
  comm.changed.wait(guard, [&] { return comm.work.empty() && !comm.busy; });
}

void end(Member* comm, bool abort) {
  if (abort) {
    comm->aborted = true;
    comm->shared->aborted = 1;
  }
  flush(*comm);
  {
    const std::lock_guard guard(comm->lock);
    comm->stop = true;
    comm->changed.notify_all();
  }
  comm->runner.join();
  profiling::finalize(*comm);
  if (++comm->shared->left == comm->size || abort) shm_unlink(comm->name.c_str());
  delete comm;
}

}  // namespace ddx::nccl_double
