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

// A call as compilers make it, through the procedure linkage table: the linker gives a function whose address is taken
// no entry there, and LD_AUDIT is asked about such entries only.
template <auto kFunction>
struct Through;
template <class... Arguments, Result (*kFunction)(Arguments...)>
struct Through<kFunction> {
  static Result call(Arguments... arguments) { return kFunction(arguments...); }
};

}  // namespace

extern "C" __attribute__((visibility("default"))) int run_linked(const char* scenario) {
  ddx::nccl_test::Nccl nccl;
#define DDX_FIND(name, parameters) nccl.name = Through<nccl##name>::call;
  DDX_NCCL_FUNCTIONS(DDX_FIND)
#undef DDX_FIND
  nccl.GetUniqueId = Through<ncclGetUniqueId>::call;
  return ddx::nccl_test::run(nccl, scenario);
}
