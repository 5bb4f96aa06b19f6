// What the names of NCCL's and RCCL's kernels say.
#pragma once

#include <string_view>

#include "traces/model/op.h"

namespace ddx::formats {

struct NcclKernelName {
  // SendRecv: coalesced, for it carries sends and receives that are posted together, of which there may be one, or an
  // all_to_all. Generic kernels serve any kind: unknown.
  OpKind kind = OpKind::unknown;
  RedOp redop = RedOp::unknown;
  DataType type = DataType::unknown;  // of reductions; others move bytes whatever they hold
};

// "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)", before 2.19 "ncclKernel_AllReduce_RING_LL_Sum_float(...)".
NcclKernelName parse_nccl_kernel(std::string_view name);

}  // namespace ddx::formats
