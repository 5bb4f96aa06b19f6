// What the hooks (live/hooks) ask: the interposer's function for a name of NCCL's.
#include <cstring>

#include "live/preload/call.h"

namespace ddx::nccl {
extern "C" {
#define DDX_DECLARE(name, parameters) __attribute__((visibility("default"))) Result nccl##name parameters;
DDX_NCCL_INTERPOSED(DDX_DECLARE)
#undef DDX_DECLARE
}
}  // namespace ddx::nccl

namespace {

struct Interposed {
  const char* name;
  void* function;
};

}  // namespace

// `wanted`: what the program would be given. nullptr: it is to have that.
DDX_NCCL_EXPORT void* ddx_nccl_function(const char* name, void* wanted) {
  using namespace ddx::nccl;  // NOLINT(google-build-using-namespace): the words of the functions
  const Interposed functions[] = {
#define DDX_ENTRY(function, parameters) {"nccl" #function, reinterpret_cast<void*>(&nccl##function)},
      DDX_NCCL_INTERPOSED(DDX_ENTRY)
#undef DDX_ENTRY
  };
  for (const Interposed& candidate : functions) {
    if (candidate.function == wanted || std::strcmp(candidate.name, name) != 0) continue;
    __atomic_store_n(&ddx_nccl_asked, wanted, __ATOMIC_RELEASE);
    return candidate.function;
  }
  return nullptr;
}
