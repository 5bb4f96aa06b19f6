// What the plugin does of events, whatever the version they came in: times for calls that the interposer recorded, and
// records of calls that it did not see.
#pragma once

#include <cstdint>

#include "live/preload/nccl_abi.h"
#include "live/profiler/profiler_abi.h"
#include "traces/capture/record.h"

namespace ddx::profiler {

// A communicator, as NCCL tells a plugin of it. Older releases tell some of it with each event.
struct CommFacts {
  const char* name = nullptr;
  std::uint64_t hash = 0;  // 0: not known
  int size = -1, position = -1;
};

// An event in words that all versions share.
struct Event {
  EventType type = kGroup;
  void* parent = nullptr;
  capture::CallKind kind = capture::CallKind::unknown;
  const void* send = nullptr;
  const void* recv = nullptr;
  std::uint64_t count = 0;
  nccl::DataType element = -1;
  nccl::ReduceOp reduction = -1;
  int peer = -1;  // or root
  void* stream = nullptr;
  std::uint8_t channels = 0;  // that have a kernel event each
  CommFacts comm;             // versions 1 to 3
};

// Never freed, so that a late event of NCCL's finds it.
struct Context;

// The events that we want of this version; those of the user's plugin are added by chain.h.
std::uint32_t wanted_mask(int version, const void* nccl_code);
// nullptr where there is no room: NCCL then goes on without events.
Context* open_context(int version, const CommFacts& comm);
void close_context(Context* context);
// The user's own plugin's of this communicator.
void*& user_context(Context* context);

// A handle of the event: a number, never an address, so that a stale one is told from a good one. nullptr: no room.
void* start(Context* context, const Event& event, void* user_handle);
// The user's plugin's handle of the event; nullptr: none, or it is long gone.
void* user_handle(const void* handle);
void stop(const void* handle);

// By the names that NCCL gives: "AllReduce", "ncclFloat32".
capture::CallKind kind_of(const char* function);
capture::CallKind kind_of(std::uint8_t number);
nccl::DataType type_of(const char* name);
nccl::DataType type_of(std::uint8_t number);

}  // namespace ddx::profiler
