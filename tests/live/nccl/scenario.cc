#include "tests/live/nccl/scenario.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "live/capture/ddx_trace.h"
#include "traces/capture/record.h"

namespace ddx::nccl_test {

namespace {

constexpr auto kPatience = std::chrono::seconds(120);

int number_of(const char* variable) { return std::atoi(std::getenv(variable)); }

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "driver: %s\n", what);
  std::_Exit(99);
}

void must(Result result, const char* what) {
  if (result != kSuccess) fail(what);
}
#define MUST(call) must(call, #call)  // NOLINT(cppcoreguidelines-macro-usage): names the call

struct Job {
  const Nccl& nccl;
  int rank, size;
  std::array<char, 1 << 12> data{};
  Stream stream_a, stream_b;

  explicit Job(const Nccl& functions)
      : nccl(functions),
        rank(number_of("RANK")),
        size(number_of("WORLD_SIZE")),
        stream_a(data.data()),
        stream_b(data.data() + 1) {}
  char* at(int place) { return data.data() + place * 64; }
};

// Rank 0 makes the id, the others read it from a file.
UniqueId meet(const Job& job, const std::string& name) {
  const std::string path = std::string(std::getenv("MEET")) + "/" + name;
  UniqueId id{};
  if (job.rank == 0) {
    MUST(job.nccl.GetUniqueId(&id));
    std::FILE* file = std::fopen((path + ".part").c_str(), "wb");
    if (file == nullptr || std::fwrite(&id, sizeof(id), 1, file) != 1 || std::fclose(file) != 0) fail("no id written");
    if (std::rename((path + ".part").c_str(), path.c_str()) != 0) fail("no id named");
    return id;
  }
  const auto limit = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < limit) {
    if (std::FILE* file = std::fopen(path.c_str(), "rb")) {
      const bool read = std::fread(&id, sizeof(id), 1, file) == 1;
      std::fclose(file);
      if (read) return id;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  fail("no id from rank 0");
}

Comm world(const Job& job, const std::string& name = "id") {
  Comm comm = nullptr;
  MUST(job.nccl.CommInitRank(&comm, job.size, meet(job, name), job.rank));
  return comm;
}

void leave(const Job& job, Comm comm) {
  MUST(job.nccl.CommFinalize(comm));
  MUST(job.nccl.CommDestroy(comm));
}

// Each collective once, alone and in groups.
void collectives(Job& job, Comm comm) {
  const Nccl& n = job.nccl;
  MUST(n.AllReduce(job.at(0), job.at(1), 100, kFloat32, kSum, comm, job.stream_a));
  MUST(n.Broadcast(job.at(2), job.at(3), 30, kBfloat16, 1, comm, job.stream_a));
  MUST(n.Bcast(job.at(4), 7, kInt32, 0, comm, job.stream_b));
  MUST(n.Reduce(job.at(5), job.at(6), 12, kInt64, kMax, 0, comm, nullptr));
  MUST(n.AllGather(job.at(7), job.at(8), 9, kFloat16, comm, job.stream_b));
  MUST(n.ReduceScatter(job.at(9), job.at(10), 11, kFloat64, kAvg, comm, job.stream_a));
  MUST(n.GroupStart());
  MUST(n.AllReduce(job.at(11), job.at(11), 3, kUint8, kMin, comm, job.stream_a));
  MUST(n.GroupStart());
  MUST(n.AllReduce(job.at(12), job.at(12), 3000, kFloat8e4m3, kProd, comm, job.stream_a));
  MUST(n.GroupEnd());
  MUST(n.AllGather(job.at(13), job.at(14), 40, kUint64, comm, job.stream_a));
  MUST(n.GroupEnd());
  ReduceOp scaled = 0;
  float scalar = 0.5F;
  MUST(n.RedOpCreatePreMulSum(&scaled, &scalar, kFloat32, 1, comm));
  MUST(n.AllReduce(job.at(15), job.at(15), 8, kFloat32, scaled, comm, job.stream_a));
  MUST(n.RedOpDestroy(scaled, comm));
  MUST(n.AllReduce(job.at(16), job.at(16), 0, kFloat32, kSum, comm, job.stream_a));
  if (n.AllReduce(job.at(16), job.at(16), 5, 99, kSum, comm, job.stream_a) != kInvalidArgument)
    fail("type 99 was taken");
}

void transfers(Job& job, Comm comm) {
  const Nccl& n = job.nccl;
  const int next = (job.rank + 1) % job.size;
  const int before = (job.rank + job.size - 1) % job.size;
  MUST(n.GroupStart());
  MUST(n.Send(job.at(20), 21, kFloat32, next, comm, job.stream_a));
  MUST(n.Recv(job.at(21), 21, kFloat32, before, comm, job.stream_a));
  MUST(n.GroupEnd());
  if (job.rank == 0) MUST(n.Send(job.at(22), 5, kInt32, 1, comm, job.stream_b));
  if (job.rank == 1) MUST(n.Recv(job.at(23), 5, kInt32, 0, comm, job.stream_b));
  const char* version = std::getenv("DDX_DOUBLE_NCCL_VERSION");
  if (version == nullptr || std::strcmp(version, "2.28") < 0) return;
  MUST(n.AlltoAll(job.at(24), job.at(25), 6, kFloat32, comm, job.stream_a));
  MUST(n.Gather(job.at(26), job.at(27), 4, kFloat16, 1, comm, job.stream_a));
  MUST(n.Scatter(job.at(28), job.at(29), 13, kInt8, 0, comm, job.stream_a));
}

void children(Job& job, Comm comm) {
  const Nccl& n = job.nccl;
  Comm half = nullptr;
  MUST(n.CommSplit(comm, job.rank % 2, -job.rank, &half, nullptr));
  MUST(n.AllReduce(job.at(30), job.at(30), 17, kFloat32, kSum, half, job.stream_a));
  Comm some = nullptr;
  MUST(n.CommSplit(comm, job.rank == 0 ? kNoColor : 5, job.rank, &some, nullptr));
  if (some != nullptr) MUST(n.AllReduce(job.at(31), job.at(31), 18, kFloat32, kSum, some, job.stream_a));
  Comm alone = nullptr;
  MUST(n.GroupStart());
  MUST(n.CommSplit(comm, job.rank, 0, &alone, nullptr));
  MUST(n.GroupEnd());
  MUST(n.AllReduce(job.at(32), job.at(32), 19, kFloat32, kSum, alone, job.stream_a));
  const char* version = std::getenv("DDX_DOUBLE_NCCL_VERSION");
  if (version != nullptr && std::strcmp(version, "2.27") >= 0 && job.rank != 0) {
    int excluded[] = {0};
    Comm rest = nullptr;
    MUST(n.CommShrink(comm, excluded, 1, &rest, nullptr, 0));
    MUST(n.AllReduce(job.at(33), job.at(33), 20, kFloat32, kSum, rest, job.stream_a));
    leave(job, rest);
  }
  leave(job, alone);
  if (some != nullptr) leave(job, some);
  leave(job, half);
}

int all(Job& job) {
  const Comm comm = world(job);
  collectives(job, comm);
  transfers(job, comm);
  children(job, comm);
  for (int i = 0; i < 300; ++i) {
    MUST(job.nccl.AllReduce(job.at(1), job.at(1), static_cast<std::size_t>(1 + i), kFloat32, kSum, comm, job.stream_a));
  }
  leave(job, comm);
  // A named one, and one of several ids.
  Config config{};
  config.size = sizeof(config);
  config.magic = kConfigMagic;
  config.comm_name = "tensor-parallel";
  Comm named = nullptr;
  MUST(job.nccl.CommInitRankConfig(&named, job.size, meet(job, "named"), job.rank, &config));
  MUST(job.nccl.AllReduce(job.at(2), job.at(2), 64, kFloat32, kSum, named, nullptr));
  leave(job, named);
  UniqueId id = meet(job, "scalable");
  Comm scalable = nullptr;
  MUST(job.nccl.GroupStart());
  MUST(job.nccl.CommInitRankScalable(&scalable, job.size, job.rank, 1, &id, nullptr));
  MUST(job.nccl.GroupEnd());
  MUST(job.nccl.AllReduce(job.at(3), job.at(3), 65, kFloat32, kSum, scalable, nullptr));
  leave(job, scalable);
  std::printf("rank %d: done\n", job.rank);
  std::fprintf(stderr, "rank %d: a word on stderr\n", job.rank);
  return 7;
}

// Rank 1 leaves; the others see an error, as a framework's watchdog would, and abort.
int lost_peer(Job& job) {
  const Comm comm = world(job);
  MUST(job.nccl.AllReduce(job.at(0), job.at(0), 10, kFloat32, kSum, comm, job.stream_a));
  if (job.rank == 1) {
    MUST(job.nccl.CommFinalize(comm));  // the first one is over
    MUST(job.nccl.CommAbort(comm));     // so that the others need not wait for a time limit
    std::_Exit(0);
  }
  MUST(job.nccl.AllReduce(job.at(0), job.at(0), 11, kFloat32, kSum, comm, job.stream_a));
  Result error = kSuccess;
  const auto limit = std::chrono::steady_clock::now() + kPatience;
  while (error == kSuccess && std::chrono::steady_clock::now() < limit) {
    MUST(job.nccl.CommGetAsyncError(comm, &error));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (int i = 0; i < 10; ++i) MUST(job.nccl.CommGetAsyncError(comm, &error));
  MUST(job.nccl.CommAbort(comm));
  return error == kRemoteError ? 0 : 1;
}

// A framework's layer above, which says what it does through the recorder's C interface.
int framework(Job& job) {
  const auto group_of = reinterpret_cast<decltype(&ddx_group)>(dlsym(RTLD_DEFAULT, "ddx_group"));
  const auto text_of = reinterpret_cast<decltype(&ddx_text)>(dlsym(RTLD_DEFAULT, "ddx_text"));
  const auto begin = reinterpret_cast<decltype(&ddx_begin)>(dlsym(RTLD_DEFAULT, "ddx_begin"));
  const auto returned = reinterpret_cast<decltype(&ddx_returned)>(dlsym(RTLD_DEFAULT, "ddx_returned"));
  if (group_of == nullptr || text_of == nullptr || begin == nullptr || returned == nullptr) fail("no recorder");
  DdxGroupInfo group{};
  group.size_of = sizeof(group);
  group.layer = static_cast<std::uint8_t>(capture::Layer::torch);
  group.name = text_of("default_pg", 10);
  group.size = job.size;
  group.position = job.rank;
  group.device = -1;
  DdxCallInfo call{};
  call.size_of = sizeof(call);
  call.layer = group.layer;
  call.kind = static_cast<std::uint8_t>(capture::CallKind::all_reduce);
  call.group = group_of(&group);
  call.peer = -1;
  call.count = 10;
  const std::uint64_t number = begin(&call);
  const Comm comm = world(job);  // made by the first call, as frameworks do
  MUST(job.nccl.AllReduce(job.at(0), job.at(0), 10, kFloat32, kSum, comm, job.stream_a));
  returned(number, 0);
  leave(job, comm);
  return 0;
}

// Threads with a communicator each, at once.
int threads(Job& job) {
  std::vector<Comm> comms;
  for (const char* name : {"a", "b", "c", "d"}) comms.push_back(world(job, name));
  std::vector<std::thread> running;
  for (std::size_t i = 0; i < comms.size(); ++i) {
    running.emplace_back([&job, comm = comms[i], rounds = 500 + 10 * static_cast<int>(i)] {
      for (int round = 0; round < rounds; ++round) {
        MUST(job.nccl.AllReduce(job.at(0), job.at(0), 10, kFloat32, kSum, comm, job.stream_a));
        if (round % 10 != 0) continue;
        MUST(job.nccl.GroupStart());
        for (int part = 0; part < 3; ++part)
          MUST(job.nccl.AllReduce(job.at(0), job.at(0), 10, kFloat32, kSum, comm, job.stream_a));
        MUST(job.nccl.GroupEnd());
      }
    });
  }
  for (std::thread& thread : running) thread.join();
  for (const Comm comm : comms) leave(job, comm);
  return 0;
}

// A process that forks workers: one that never calls NCCL, and one that has a communicator of its own.
int forking(Job& job) {
  const Comm comm = world(job);
  MUST(job.nccl.AllReduce(job.at(0), job.at(0), 10, kFloat32, kSum, comm, job.stream_a));
  for (const bool calls : {false, true}) {
    const pid_t child = fork();
    if (child == 0) {
      if (calls) {
        UniqueId id{};
        Comm own = nullptr;
        MUST(job.nccl.GetUniqueId(&id));
        MUST(job.nccl.CommInitRank(&own, 1, id, 0));
        MUST(job.nccl.AllReduce(job.at(0), job.at(0), 11, kFloat32, kSum, own, job.stream_b));
        leave(job, own);
      }
      std::_Exit(0);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) fail("a worker failed");
  }
  MUST(job.nccl.AllReduce(job.at(0), job.at(0), 12, kFloat32, kSum, comm, job.stream_a));
  leave(job, comm);
  return 0;
}

// A function that an older library lacks.
int missing(Job& job) {
  const Comm comm = world(job);
  const Result result = job.nccl.AlltoAll(job.at(0), job.at(1), 6, kFloat32, comm, job.stream_a);
  MUST(job.nccl.AllReduce(job.at(0), job.at(0), 10, kFloat32, kSum, comm, job.stream_a));
  leave(job, comm);
  return result == kInvalidUsage ? 0 : 1;
}

}  // namespace

Nccl look_up(void* library) {
  Nccl nccl;
#define DDX_LOOK_UP(name, parameters) nccl.name = reinterpret_cast<decltype(nccl.name)>(dlsym(library, "nccl" #name));
  DDX_NCCL_FUNCTIONS(DDX_LOOK_UP)
#undef DDX_LOOK_UP
  nccl.GetUniqueId = reinterpret_cast<decltype(nccl.GetUniqueId)>(dlsym(library, "ncclGetUniqueId"));
  return nccl;
}

int run(const Nccl& nccl, const std::string& scenario) {
  if (scenario == "nothing") return 3;
  Job job(nccl);
  if (scenario == "all") return all(job);
  if (scenario == "lost_peer") return lost_peer(job);
  if (scenario == "framework") return framework(job);
  if (scenario == "threads") return threads(job);
  if (scenario == "forking") return forking(job);
  if (scenario == "missing") return missing(job);
  fail("no such scenario");
}

}  // namespace ddx::nccl_test
