#include "live/preload/comms.h"

namespace ddx::preload {

namespace {

constexpr std::size_t kComms = 1 << 12;
constexpr std::size_t kProbes = 64;
constexpr std::uintptr_t kFree = 0;
constexpr std::uintptr_t kTaken = 1;  // free again, but what is sought may stand behind it
constexpr std::uintptr_t kBusy = 2;

// All of the process: a communicator is a bare pointer, and any thread may use it.
KnownComm g_comms[kComms] = {};

KnownComm& place(std::uintptr_t key, std::size_t probe) {
  return g_comms[((key * 0x9e3779b97f4a7c15U >> 40) + probe) % kComms];
}

}  // namespace

KnownComm* find_comm(nccl::Comm comm) {
  const auto key = reinterpret_cast<std::uintptr_t>(comm);
  if (key <= kBusy) return nullptr;
  for (std::size_t probe = 0; probe < kProbes; ++probe) {
    KnownComm& known = place(key, probe);
    const std::uintptr_t found = known.comm.load(std::memory_order_acquire);
    if (found == key) return &known;
    if (found == kFree) return nullptr;
  }
  return nullptr;
}

KnownComm* add_comm(nccl::Comm comm, const CommFacts& facts) {
  const auto key = reinterpret_cast<std::uintptr_t>(comm);
  if (key <= kBusy) return nullptr;
  remove_comm(comm);  // an address that came again: its former owner went without a word
  for (std::size_t probe = 0; probe < kProbes; ++probe) {
    KnownComm& known = place(key, probe);
    std::uintptr_t found = known.comm.load(std::memory_order_acquire);
    if (found > kTaken || !known.comm.compare_exchange_strong(found, kBusy)) continue;
    known.facts = facts;
    known.children = 0;
    known.error = 0;
    known.comm.store(key, std::memory_order_release);
    return &known;
  }
  return nullptr;
}

void remove_comm(nccl::Comm comm) {
  if (KnownComm* known = find_comm(comm)) known->comm.store(kTaken, std::memory_order_release);
}

std::uint64_t hash_of(const nccl::UniqueId& id) {
  std::uint64_t hash = 5381;
  for (const char byte : id.bytes) {
    hash = (hash << 5) + hash;
    hash ^= static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<signed char>(byte)));
  }
  return hash;
}

std::uint64_t hash_of_child(std::uint64_t parent, std::uint64_t number, std::uint64_t choice) {
  if (parent == 0) return 0;
  std::uint64_t hash = parent;
  for (const std::uint64_t value : {number, choice}) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15U;
    hash ^= hash >> 29;
  }
  return hash | 1;
}

void forget_comms() {
  for (KnownComm& known : g_comms) {
    if (known.comm.load(std::memory_order_relaxed) != kFree) known.comm.store(kFree, std::memory_order_relaxed);
  }
}

}  // namespace ddx::preload
