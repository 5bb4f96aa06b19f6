// The numbers of a capture file for kinds, element types and reductions, and what they are in the model.
#pragma once

#include <cstdint>

#include "traces/capture/record.h"
#include "traces/model/op.h"

namespace ddx::formats {

// Numbers that are none give `unknown`.
OpKind op_kind_of(std::int64_t code);
DataType data_type_of(std::int64_t code);
RedOp redop_of(std::int64_t code);

// What has no number gives `unknown` or `none`.
capture::CallKind code_of(OpKind kind);
capture::ElementType code_of(DataType type);
capture::Reduction code_of(RedOp redop);

}  // namespace ddx::formats
