// What recording a call costs in the user's process: through the C interface alone, and of an NCCL call that is
// interposed beside the same one that is not. The double's operations return at once (DDX_DOUBLE_EMPTY), so that what
// is measured is what stands before them.
#include <cstdio>
#include <cstdlib>

#include <benchmark/benchmark.h>

#include "live/capture/ddx_trace.h"
#include "live/preload/nccl_abi.h"
#include "tests/support/scratch_folder.h"
#include "traces/capture/record.h"

extern "C" {
ddx::nccl::Result ncclAllReduce(const void*, void*, std::size_t, int, int, ddx::nccl::Comm, ddx::nccl::Stream);
ddx::nccl::Result pncclAllReduce(const void*, void*, std::size_t, int, int, ddx::nccl::Comm, ddx::nccl::Stream);
ddx::nccl::Result ncclCommInitRank(ddx::nccl::Comm*, int, ddx::nccl::UniqueId, int);
ddx::nccl::Result ncclGetUniqueId(ddx::nccl::UniqueId*);
ddx::nccl::Result ncclCommDestroy(ddx::nccl::Comm);
}

namespace {

void record(benchmark::State& state) {
  DdxGroupInfo group{};
  group.size_of = sizeof(group);
  group.size = 8;
  group.device = -1;
  DdxCallInfo call{};
  call.size_of = sizeof(call);
  call.kind = static_cast<std::uint8_t>(ddx::capture::CallKind::all_reduce);
  call.group = ddx_group(&group);
  call.peer = -1;
  call.count = 1 << 20;
  call.stream = 1;
  for (auto _ : state) {
    const std::uint64_t id = ddx_begin(&call);
    ddx_returned(id, 0);
    if (id == 0) state.SkipWithError("not recorded");
  }
}

ddx::nccl::Comm one_rank() {
  ddx::nccl::UniqueId id{};
  ddx::nccl::Comm comm = nullptr;
  if (ncclGetUniqueId(&id) != 0 || ncclCommInitRank(&comm, 1, id, 0) != 0) std::abort();
  return comm;
}

template <auto kFunction>
void all_reduce(benchmark::State& state) {
  const ddx::nccl::Comm comm = one_rank();
  int data = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(kFunction(&data, &data, 1024, ddx::nccl::kFloat32, ddx::nccl::kSum, comm, &data));
  }
  ncclCommDestroy(comm);
}

BENCHMARK(record);
BENCHMARK(all_reduce<pncclAllReduce>)->Name("plain_all_reduce");
BENCHMARK(all_reduce<ncclAllReduce>)->Name("interposed_all_reduce");

}  // namespace

int main(int argc, char** argv) {
  const ddx::testing::ScratchFolder folder;
  setenv("DDX_TRACE_DIR", folder.path().c_str(), 1);
  setenv("DDX_DOUBLE_EMPTY", "1", 1);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
