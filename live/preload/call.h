// One interposed call: where it goes, and what is recorded of it.
#pragma once

#include <cstdint>

#include "live/preload/comms.h"
#include "live/preload/current.h"
#include "live/preload/libraries.h"
#include "live/preload/nccl_abi.h"
#include "traces/capture/record.h"

#define DDX_NCCL_EXPORT extern "C" __attribute__((visibility("default")))
#define DDX_CALLER __builtin_return_address(0)

namespace ddx::preload {

// What a function says of its call.
struct CallFacts {
  capture::CallKind kind = capture::CallKind::unknown;
  const char* name = nullptr;  // of a call that no kind stands for
  nccl::Comm comm = nullptr;
  nccl::Stream stream = nullptr;
  std::size_t count = 0;  // as the user gave it
  nccl::DataType type = -1;
  nccl::ReduceOp reduction = -1;
  int peer = -1;  // or root
  const void* send = nullptr;
  const void* recv = nullptr;
};

// The recorder's numbers for NCCL's.
std::uint8_t element_of(nccl::DataType type);
std::uint8_t reduction_of(nccl::ReduceOp op);

// The real function by its type: `result = real<Function::CommCount>(library, comm, &count)`.
template <Function kFunction, class... Arguments>
nccl::Result real(Library* library, Arguments... arguments) {
  using Real = nccl::Result (*)(Arguments...);
  const auto function = reinterpret_cast<Real>(real_function(library, kFunction));
  if (function == nullptr) return nccl::kInvalidUsage;
  ++t_current.inside;  // what NCCL calls of its own is not the program's
  const nccl::Result result = function(arguments...);
  --t_current.inside;
  return result;
}

// A call from here to the return of NCCL's function. Where nothing is recorded, or the call was made by NCCL itself
// inside another one, it only finds the function.
class Call {
 public:
  Call(const CallFacts& facts, const void* caller);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // In the group of its own instead of the communicator's: of calls that make one.
  Call(capture::CallKind kind, std::uint32_t group, Library* library, std::uint32_t site);

  template <Function kFunction, class... Arguments>
  nccl::Result pass(Arguments... arguments) {
    const nccl::Result result = real<kFunction>(library_, arguments...);
    returned(result);
    return result;
  }

 private:
  void begin(const CallFacts& facts, std::uint32_t group, int size, std::uint32_t site);
  void returned(nccl::Result result);

  Library* library_ = nullptr;
  bool recorded_ = false;
  std::uint64_t call_ = 0;
};

// Whether this call is a program's own, and is recorded.
bool records();
// What is known of the communicator; one that was made unseen is asked for now. nullptr: nothing.
KnownComm* known_comm(nccl::Comm comm, Library* library);
// Communicators that the calls of the thread's open group made are there now (`made`), or were not made.
void close_group(bool made);

}  // namespace ddx::preload
