// The parts of the test double of libnccl.so.2: no data moves and there is no GPU, but every operation waits for its
// peers, which are other processes, through a file in shared memory.
//
// Environment:
//   DDX_DOUBLE_NCCL_VERSION  2.23 to 2.30 (2.28): which profiler structure it asks for, and which quirks it shows
//   DDX_DOUBLE_LEDGER        folder for ledger-PID.txt: one line for each call that reached the library
//   DDX_DOUBLE_TIMEOUT_S     after so long a wait the communicator has an asynchronous error (60)
//   DDX_DOUBLE_STALE         every second collective carries the handle of an API event that was stopped long ago
//   DDX_DOUBLE_EMPTY         operations return at once: to measure what is before them
//   NCCL_PROFILER_PLUGIN     a path
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "live/preload/nccl_abi.h"
#include "live/profiler/profiler_abi.h"

namespace ddx::nccl_double {

using nccl::Result;

int minor_version();  // 23 to 30
int timeout_seconds();
// One line; the process's own file.
void ledger(const std::string& line);

// The members' meeting place, mapped by all of them.
constexpr int kMostRanks = 16;
struct Shared {
  std::atomic<int> joined, left;
  std::atomic<int> aborted;
  std::atomic<std::uint64_t> collectives[kMostRanks];           // that a rank has reached
  std::atomic<std::uint64_t> sends[kMostRanks][kMostRanks];     // posted by [source] to [destination]
  std::atomic<std::uint64_t> receives[kMostRanks][kMostRanks];  // posted by [destination] from [source]
  std::atomic<std::uint64_t> splits[kMostRanks];                // that a rank has reached
  std::atomic<int> colors[kMostRanks], keys[kMostRanks];
};

enum class Kind { all_reduce, broadcast, reduce, all_gather, reduce_scatter, all_to_all, gather, scatter, send, recv };

struct Member;
struct Task {
  Kind kind;
  const void* send;
  void* recv;
  std::size_t count;
  nccl::DataType type;
  int op, root;  // or peer
  void* stream;
  Member* comm;
  std::uint64_t number = 0;             // in the ledger
  void* api_event = nullptr;            // of the profiler
  void* group_event = nullptr;          // the API's
  std::vector<void*> p2p_api_events{};  // of operations that are made of sends and receives
  std::vector<void*> events{};          // Coll or P2p
};

// A communicator of this process.
struct Member {
  const void* library = nullptr;  // the copy of this library that made it: another must not be given it
  std::shared_ptr<Shared> shared;
  std::string name;  // of the shared file
  std::uint64_t hash = 0;
  int size = 0, rank = 0;
  std::string config_name;
  std::uint64_t splits = 0, collectives = 0, shrinks = 0;
  std::uint64_t seq[8] = {};  // of the profiler, by function
  void* profiler_context = nullptr;
  std::atomic<int> error{0};
  std::atomic<bool> aborted{false};

  // What was launched and has not ended runs here, in order: the stream.
  std::mutex lock;
  std::condition_variable changed;
  std::deque<std::vector<Task>> work;
  bool busy = false, stop = false;
  std::thread runner;
};

const char* name_of(Kind kind);
// An address that tells the copies of this library apart.
const void* this_library();
// Maps the meeting place, and waits until all `size` members are there; nullptr after the time limit.
Member* join(const std::string& name, int size, int rank, const std::string& config_name);
// Waits until `reached` says so; false after the time limit or an abort.
bool wait_until(Member& comm, const std::function<bool()>& reached);
void launch(Member& comm, std::vector<Task> tasks);
void flush(Member& comm);
void end(Member* comm, bool abort);

// The profiler plugin, as NCCL drives it.
namespace profiling {
void init(Member& comm);
void finalize(Member& comm);
void call_begins(Task& task, int group_depth);  // API events, in the user's thread
void group_ends();
void launched(std::vector<Task>& tasks);             // Group, Coll and P2p events
void kernels(std::vector<Task>& tasks, bool start);  // KernelCh events, in the runner's thread
}  // namespace profiling

}  // namespace ddx::nccl_double
