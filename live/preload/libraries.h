// Where the real functions are. A process may hold several copies of NCCL; which one a caller means is what its own
// scope says: RTLD_NEXT does not find a library that was loaded with RTLD_LOCAL, as Python's extensions do.
#pragma once

#include <atomic>
#include <cstdint>

#include "live/preload/nccl_abi.h"

namespace ddx::preload {

enum class Function : std::uint8_t {
#define DDX_NAME(name, parameters) name,  // NOLINT(bugprone-macro-parentheses): the name of an enumerator
  DDX_NCCL_FUNCTIONS(DDX_NAME)
#undef DDX_NAME
      count
};

// One copy of NCCL.
struct Library {
  std::atomic<std::uintptr_t> base;  // 0: free
  std::atomic<void*> handle;
  std::atomic<void*> functions[static_cast<int>(Function::count)];
  std::atomic<bool> told;  // its layer_loaded event was written
};

struct Site {
  Library* library;     // nullptr: no NCCL was found
  std::uint32_t frame;  // of the recorder; 0: not recorded
  bool is_inner;        // NCCL's own code: ncclBcast calls ncclBroadcast by its public name
};

// Of a call that will return to this address. Costs a search of loaded objects the first time, then a look into a
// table. `with_frame`: the recorder is open, and wants to know the place.
Site site_of(const void* return_address, bool with_frame);

// The library's function, or nullptr where this release has none of that name.
void* real_function(Library* library, Function function);

// In a forked child: frames were numbered in the parent's file.
void forget_sites();

}  // namespace ddx::preload

// A function of the NCCL that a program looked up by name last, as the hooks (live/hooks) saw it: such calls come from
// code that names no NCCL. An address alone: the hooks are called in the middle of the loader's work.
extern "C" __attribute__((visibility("default"))) void* ddx_nccl_asked;
