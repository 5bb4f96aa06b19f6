// What the driver programs do with NCCL, by whatever way they came to its functions.
#pragma once

#include <string>

#include "live/preload/nccl_abi.h"

namespace ddx::nccl_test {

using namespace ddx::nccl;  // NOLINT(google-build-using-namespace): the words of the functions

// The functions, as this program found them; nullptr: that release has none.
struct Nccl {
#define DDX_MEMBER(name, parameters) Result(*name) parameters = nullptr;
  DDX_NCCL_FUNCTIONS(DDX_MEMBER)
#undef DDX_MEMBER
  Result (*GetUniqueId)(UniqueId*) = nullptr;
};

// From a handle of dlopen.
Nccl look_up(void* library);

// Runs one of the scenarios in scenario.cc as rank RANK of WORLD_SIZE; the ranks meet in the folder MEET. Returns the
// program's exit status.
int run(const Nccl& nccl, const std::string& scenario);

}  // namespace ddx::nccl_test
