// What is known of each communicator of the process.
#pragma once

#include <atomic>
#include <cstdint>

#include "live/preload/libraries.h"

namespace ddx::preload {

struct CommFacts {
  Library* library = nullptr;
  std::uint32_t group = 0;  // of the recorder; 0: not recorded
  int size = -1;            // -1: not known
  int position = -1;
  std::uint64_t hash = 0;  // the same on all members; 0: not known
};

struct KnownComm {
  std::atomic<std::uintptr_t> comm;  // 0: free, 1: was taken once, 2: being written
  CommFacts facts;
  std::atomic<std::uint32_t> children;
  std::atomic<int> error;  // the last one that was told of it
};

// nullptr: not known.
KnownComm* find_comm(nccl::Comm comm);
// nullptr: the table is full, or comm is none.
KnownComm* add_comm(nccl::Comm comm, const CommFacts& facts);
void remove_comm(nccl::Comm comm);

// NCCL's own of a communicator made with this id.
std::uint64_t hash_of(const nccl::UniqueId& id);
// Of a communicator made out of another: the same on all members, who make the same calls on the parent in one order.
std::uint64_t hash_of_child(std::uint64_t parent, std::uint64_t number, std::uint64_t choice);

// In a forked child: groups were numbered in the parent's file.
void forget_comms();

}  // namespace ddx::preload
