// The binary interface of NCCL's profiler plugins, versions 1 to 6, declared by ourselves: what NCCL hands to a plugin
// and what a plugin exports as ncclProfiler_v1 to _v6. Each version serves one or two releases (profiler_v*.cc).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace ddx::profiler {

using Result = int;
using LogFunction = void (*)(int level, unsigned long flags, const char* file, int line, const char* format, ...);

// Types of events; also bits of the mask by which a plugin asks for them.
using EventType = std::uint32_t;
inline constexpr EventType kGroup = 1U << 0;
inline constexpr EventType kColl = 1U << 1;
inline constexpr EventType kP2p = 1U << 2;
inline constexpr EventType kProxyOp = 1U << 3;
inline constexpr EventType kProxyStep = 1U << 4;
inline constexpr EventType kProxyCtrl = 1U << 5;
inline constexpr EventType kKernelCh = 1U << 6;
inline constexpr EventType kNetPlugin = 1U << 7;
inline constexpr EventType kGroupApi = 1U << 8;
inline constexpr EventType kCollApi = 1U << 9;
inline constexpr EventType kP2pApi = 1U << 10;
inline constexpr EventType kKernelLaunch = 1U << 11;
inline constexpr EventType kCeColl = 1U << 12;
inline constexpr EventType kCeSync = 1U << 13;
inline constexpr EventType kCeBatch = 1U << 14;

// Two states of many: the others only pass through.
inline constexpr int kProxyInProgress = 19;
inline constexpr int kKernelChStop = 22;

// Version 1 numbers functions, and counts its data types as ncclDataType_t does.
enum class FunctionNumber : std::uint8_t {
  broadcast,
  reduce,
  all_gather,
  reduce_scatter,
  all_reduce,
  send_recv,
  send,
  recv
};

struct ProxyOp {
  pid_t pid;
  std::uint8_t channel;
  int peer, steps, chunk_bytes, is_send;
};
struct ProxyStep {
  int step;
};
struct NetPlugin {
  std::int64_t id;
  void* data;
};

struct EventV1 {
  struct Coll {
    const char* comm_name;
    std::uint64_t comm_hash;
    std::uint64_t seq;
    std::uint8_t function;
    const void* send;
    void* recv;
    std::size_t count;
    int root;
    std::uint8_t type;
    std::uint32_t reduction;
    std::size_t traffic_bytes;
    std::uint8_t channels, warps, algorithm, protocol;
    int is_collnet, is_nvls;
  };
  struct P2p {
    const char* comm_name;
    std::uint64_t comm_hash;
    std::uint8_t function;
    void* buffer;
    std::uint8_t type;
    std::size_t count;
    int peer;
  };
  std::uint8_t type;
  void* parent;
  int rank;
  union {
    Coll coll;
    P2p p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
  };
};

struct P2pV3 {
  const char* comm_name;
  std::uint64_t comm_hash;
  const char* function;
  void* buffer;
  const char* type;
  std::size_t count;
  int peer;
};

struct EventV2 {
  struct Coll {
    const char* comm_name;
    std::uint64_t comm_hash;
    std::uint64_t seq;
    const char* function;
    const void* send;
    void* recv;
    std::size_t count;
    int root;
    const char* type;
    std::size_t traffic_bytes;
    std::uint8_t channels, warps;
    const char* algorithm;
    const char* protocol;
  };
  std::uint8_t type;
  void* parent;
  int rank;
  union {
    Coll coll;
    P2pV3 p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
  };
};

struct EventV3 {
  struct Coll {
    const char* comm_name;
    std::uint64_t comm_hash;
    std::uint64_t seq;
    const char* function;
    const void* send;
    void* recv;
    std::size_t count;
    int root;
    const char* type;
    std::uint8_t channels, warps;
    const char* algorithm;
    const char* protocol;
  };
  struct Kernel {
    std::uint8_t channel;
  };
  std::uint8_t type;
  void* parent;
  int rank;
  union {
    Coll coll;
    P2pV3 p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
    Kernel kernel;
    NetPlugin net;
  };
};

struct KernelCh {
  std::uint8_t channel;
  std::uint64_t timer;  // the GPU's clock
};

struct EventV4 {
  struct Coll {
    std::uint64_t seq;
    const char* function;
    const void* send;
    void* recv;
    std::size_t count;
    int root;
    const char* type;
    std::uint8_t channels, warps;
    const char* algorithm;
    const char* protocol;
  };
  struct P2p {
    const char* function;
    void* buffer;
    const char* type;
    std::size_t count;
    int peer;
    std::uint8_t channels;
  };
  std::uint8_t type;
  void* parent;
  int rank;
  union {
    Coll coll;
    P2p p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
    KernelCh kernel;
    NetPlugin net;
  };
};

// Version 6 only adds types to version 5: the copy engine's collectives, of which only the size matters here.
struct EventV5 {
  struct GroupApi {
    bool graph_captured;
    int depth;
  };
  struct CollApi {
    const char* function;
    std::size_t count;
    const char* type;
    int root;
    void* stream;
    bool graph_captured;
  };
  struct P2pApi {
    const char* function;
    std::size_t count;
    const char* type;
    void* stream;
    bool graph_captured;
  };
  struct KernelLaunch {
    void* stream;
  };
  struct Coll {
    std::uint64_t seq;
    const char* function;
    const void* send;
    void* recv;
    std::size_t count;
    int root;
    const char* type;
    std::uint8_t channels, warps;
    const char* algorithm;
    const char* protocol;
    void* parent_group;
  };
  struct P2p {
    const char* function;
    void* buffer;
    const char* type;
    std::size_t count;
    int peer;
    std::uint8_t channels;
    void* parent_group;
  };
  std::uint64_t type;
  void* parent;
  int rank;
  union {
    GroupApi group_api;
    CollApi coll_api;
    P2pApi p2p_api;
    KernelLaunch kernel_launch;
    Coll coll;
    P2p p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
    KernelCh kernel;
    NetPlugin net;
    std::uint64_t copy_engine[13];
  };
};

// Calls of a plugin differ between versions only in init and in what they point to.
template <class Event>
struct OldPlugin {  // versions 1 to 3
  const char* name;
  Result (*init)(void** context, int* mask);
  Result (*start_event)(void* context, void** handle, Event* event);
  Result (*stop_event)(void* handle);
  Result (*record_state)(void* handle, int state, void* arguments);
  Result (*finalize)(void* context);
};
using PluginV1 = OldPlugin<EventV1>;
using PluginV2 = OldPlugin<EventV2>;
using PluginV3 = OldPlugin<EventV3>;

struct PluginV4 {
  const char* name;
  Result (*init)(void** context, int* mask, const char* comm_name, std::uint64_t comm_hash, int nodes, int ranks,
                 int rank, LogFunction log);
  Result (*start_event)(void* context, void** handle, EventV4* event);
  Result (*stop_event)(void* handle);
  Result (*record_state)(void* handle, int state, void* arguments);
  Result (*finalize)(void* context);
};

struct PluginV5 {  // and 6
  const char* name;
  Result (*init)(void** context, std::uint64_t comm_id, int* mask, const char* comm_name, int nodes, int ranks,
                 int rank, LogFunction log);
  Result (*start_event)(void* context, void** handle, EventV5* event);
  Result (*stop_event)(void* handle);
  Result (*record_state)(void* handle, int state, void* arguments);
  Result (*finalize)(void* context);
};

}  // namespace ddx::profiler
