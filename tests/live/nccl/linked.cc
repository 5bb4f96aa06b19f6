// The scenarios of code that was linked with NCCL. Weak: an older library need not have all of it.
#include "tests/live/nccl/scenario.h"

using namespace ddx::nccl;  // NOLINT(google-build-using-namespace): the words of the functions

extern "C" {
#define DDX_DECLARE(name, parameters) __attribute__((weak)) Result nccl##name parameters;
DDX_NCCL_FUNCTIONS(DDX_DECLARE)
#undef DDX_DECLARE
__attribute__((weak)) Result ncclGetUniqueId(UniqueId* id);
}

namespace {

// A call as compilers make it, through the procedure linkage table: an address that was taken is bound otherwise.
template <auto kFunction>
struct Through;
template <class... Arguments, Result (*kFunction)(Arguments...)>
struct Through<kFunction> {
  static Result call(Arguments... arguments) { return kFunction(arguments...); }
};

}  // namespace

extern "C" __attribute__((visibility("default"))) int run_linked(const char* scenario) {
  ddx::nccl_test::Nccl nccl;
#define DDX_FIND(name, parameters) \
  if (nccl##name != nullptr) nccl.name = Through<nccl##name>::call;
  DDX_NCCL_FUNCTIONS(DDX_FIND)
#undef DDX_FIND
  nccl.GetUniqueId = ncclGetUniqueId;
  return ddx::nccl_test::run(nccl, scenario);
}
