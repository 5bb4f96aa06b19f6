// What of NCCL's binary interface is needed to stand between a program and the library: declared by ourselves, so that
// no NCCL or CUDA header is needed to build, and one build serves NCCL 2.23 to 2.30.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ddx::nccl {

using Comm = void*;
using Stream = void*;
using Result = int;
using DataType = int;
using ReduceOp = int;

inline constexpr Result kSuccess = 0;
inline constexpr Result kInvalidArgument = 4;
inline constexpr Result kInvalidUsage = 5;
inline constexpr Result kRemoteError = 6;
inline constexpr Result kInProgress = 7;

inline constexpr DataType kInt8 = 0;
inline constexpr DataType kUint8 = 1;
inline constexpr DataType kInt32 = 2;
inline constexpr DataType kUint32 = 3;
inline constexpr DataType kInt64 = 4;
inline constexpr DataType kUint64 = 5;
inline constexpr DataType kFloat16 = 6;
inline constexpr DataType kFloat32 = 7;
inline constexpr DataType kFloat64 = 8;
inline constexpr DataType kBfloat16 = 9;
inline constexpr DataType kFloat8e4m3 = 10;
inline constexpr DataType kFloat8e5m2 = 11;
inline constexpr DataType kTypes = 12;

inline constexpr ReduceOp kSum = 0;
inline constexpr ReduceOp kProd = 1;
inline constexpr ReduceOp kMax = 2;
inline constexpr ReduceOp kMin = 3;
inline constexpr ReduceOp kAvg = 4;
inline constexpr ReduceOp kBuiltInOps = 5;  // operations made at run time have numbers from here on

inline constexpr int kNoColor = -1;

// Passed by value.
struct UniqueId {
  char bytes[128];
};

// The head of ncclConfig_t, which grows at its end: `size` tells how much of it the caller has.
struct Config {
  std::size_t size;
  unsigned magic;
  unsigned version;
  int blocking;
  int cga_cluster_size;
  int min_ctas, max_ctas;
  const char* net_name;
  int split_share;
  int traffic_class;
  const char* comm_name;  // from 2.27 on
};
inline constexpr unsigned kConfigMagic = 0xcafebeef;

struct WaitSignal {
  int count, peer, signal, context;
};

// Bytes of one element; 0 of a type that is not known.
constexpr std::size_t bytes_of(DataType type) {
  constexpr std::size_t kBytes[kTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return type >= 0 && type < kTypes ? kBytes[type] : 0;
}

}  // namespace ddx::nccl

// The functions that the interposer stands before: the name after "nccl", and the parameters.
#define DDX_NCCL_INTERPOSED(X)                                                                                  \
  X(CommInitRank, (Comm*, int, UniqueId, int))                                                                  \
  X(CommInitRankConfig, (Comm*, int, UniqueId, int, Config*))                                                   \
  X(CommInitRankScalable, (Comm*, int, int, int, UniqueId*, Config*))                                           \
  X(CommInitAll, (Comm*, int, const int*))                                                                      \
  X(CommSplit, (Comm, int, int, Comm*, Config*))                                                                \
  X(CommShrink, (Comm, int*, int, Comm*, Config*, int))                                                         \
  X(CommGrow, (Comm, int, const UniqueId*, int, Comm*, Config*))                                                \
  X(CommRevoke, (Comm, int))                                                                                    \
  X(CommSuspend, (Comm, int))                                                                                   \
  X(CommResume, (Comm))                                                                                         \
  X(CommFinalize, (Comm))                                                                                       \
  X(CommDestroy, (Comm))                                                                                        \
  X(CommAbort, (Comm))                                                                                          \
  X(CommGetAsyncError, (Comm, Result*))                                                                         \
  X(GroupStart, ())                                                                                             \
  X(GroupEnd, ())                                                                                               \
  X(GroupSimulateEnd, (void*))                                                                                  \
  X(AllReduce, (const void*, void*, std::size_t, DataType, ReduceOp, Comm, Stream))                             \
  X(Broadcast, (const void*, void*, std::size_t, DataType, int, Comm, Stream))                                  \
  X(Bcast, (void*, std::size_t, DataType, int, Comm, Stream))                                                   \
  X(Reduce, (const void*, void*, std::size_t, DataType, ReduceOp, int, Comm, Stream))                           \
  X(AllGather, (const void*, void*, std::size_t, DataType, Comm, Stream))                                       \
  X(ReduceScatter, (const void*, void*, std::size_t, DataType, ReduceOp, Comm, Stream))                         \
  X(AlltoAll, (const void*, void*, std::size_t, DataType, Comm, Stream))                                        \
  X(Gather, (const void*, void*, std::size_t, DataType, int, Comm, Stream))                                     \
  X(Scatter, (const void*, void*, std::size_t, DataType, int, Comm, Stream))                                    \
  X(Send, (const void*, std::size_t, DataType, int, Comm, Stream))                                              \
  X(Recv, (void*, std::size_t, DataType, int, Comm, Stream))                                                    \
  X(PutSignal, (const void*, std::size_t, DataType, int, void*, std::size_t, int, int, unsigned, Comm, Stream)) \
  X(Signal, (int, int, int, unsigned, Comm, Stream))                                                            \
  X(WaitSignal, (int, WaitSignal*, Comm, Stream))                                                               \
  X(CommRegister, (Comm, void*, std::size_t, void**))                                                           \
  X(CommWindowRegister, (Comm, void*, std::size_t, void**, int))                                                \
  X(RedOpCreatePreMulSum, (ReduceOp*, void*, DataType, int, Comm))                                              \
  X(RedOpDestroy, (ReduceOp, Comm))

// Those that it only asks.
#define DDX_NCCL_ASKED(X)       \
  X(GetVersion, (int*))         \
  X(CommCount, (Comm, int*))    \
  X(CommUserRank, (Comm, int*)) \
  X(GetErrorString, (Result))

#define DDX_NCCL_FUNCTIONS(X) \
  DDX_NCCL_INTERPOSED(X)      \
  DDX_NCCL_ASKED(X)
