#include "traces/formats/ddx_codes.h"

#include <cstddef>
#include <utility>

namespace ddx::formats {
namespace {

using capture::CallKind;
using capture::ElementType;
using capture::Reduction;

constexpr std::pair<CallKind, OpKind> kKinds[] = {
    {CallKind::all_reduce, OpKind::all_reduce},
    {CallKind::reduce_scatter, OpKind::reduce_scatter},
    {CallKind::all_gather, OpKind::all_gather},
    {CallKind::broadcast, OpKind::broadcast},
    {CallKind::reduce, OpKind::reduce},
    {CallKind::gather, OpKind::gather},
    {CallKind::scatter, OpKind::scatter},
    {CallKind::all_to_all, OpKind::all_to_all},
    {CallKind::barrier, OpKind::barrier},
    {CallKind::send, OpKind::send},
    {CallKind::recv, OpKind::recv},
    {CallKind::new_group, OpKind::new_group},
    {CallKind::split_group, OpKind::split_group},
};

constexpr std::pair<ElementType, DataType> kTypes[] = {
    {ElementType::i8, DataType::i8},
    {ElementType::u8, DataType::u8},
    {ElementType::i16, DataType::i16},
    {ElementType::u16, DataType::u16},
    {ElementType::i32, DataType::i32},
    {ElementType::u32, DataType::u32},
    {ElementType::i64, DataType::i64},
    {ElementType::u64, DataType::u64},
    {ElementType::f16, DataType::f16},
    {ElementType::bf16, DataType::bf16},
    {ElementType::f32, DataType::f32},
    {ElementType::f64, DataType::f64},
    {ElementType::f8e4m3, DataType::f8e4m3},
    {ElementType::f8e5m2, DataType::f8e5m2},
    {ElementType::boolean, DataType::boolean},
    {ElementType::complex64, DataType::complex64},
    {ElementType::complex128, DataType::complex128},
};

constexpr std::pair<Reduction, RedOp> kReductions[] = {
    {Reduction::sum, RedOp::sum},   {Reduction::prod, RedOp::prod}, {Reduction::min, RedOp::min},
    {Reduction::max, RedOp::max},   {Reduction::avg, RedOp::avg},   {Reduction::premul_sum, RedOp::premul_sum},
    {Reduction::band, RedOp::band}, {Reduction::bor, RedOp::bor},   {Reduction::bxor, RedOp::bxor},
    {Reduction::user, RedOp::user},
};

template <class Code, class Value, std::size_t kSize>
Value value_of(const std::pair<Code, Value> (&table)[kSize], std::int64_t code) {
  for (const auto& [of, value] : table) {
    if (static_cast<std::int64_t>(of) == code) return value;
  }
  return Value{};
}

template <class Code, class Value, std::size_t kSize>
Code code_in(const std::pair<Code, Value> (&table)[kSize], Value value) {
  for (const auto& [code, of] : table) {
    if (of == value) return code;
  }
  return Code{};
}

}  // namespace

OpKind op_kind_of(std::int64_t code) { return value_of(kKinds, code); }
DataType data_type_of(std::int64_t code) { return value_of(kTypes, code); }
RedOp redop_of(std::int64_t code) { return value_of(kReductions, code); }

capture::CallKind code_of(OpKind kind) { return code_in(kKinds, kind); }
capture::ElementType code_of(DataType type) { return code_in(kTypes, type); }
capture::Reduction code_of(RedOp redop) { return code_in(kReductions, redop); }

}  // namespace ddx::formats
