#include "traces/formats/nccl_kernel_name.h"

#include <array>
#include <utility>

namespace ddx::formats {
namespace {

template <class Value>
using Words = std::pair<std::string_view, Value>;

constexpr std::array<Words<OpKind>, 6> kKinds{{{"AllReduce", OpKind::all_reduce},
                                               {"SendRecv", OpKind::coalesced},
                                               {"AllGather", OpKind::all_gather},
                                               {"ReduceScatter", OpKind::reduce_scatter},
                                               {"Broadcast", OpKind::broadcast},
                                               {"Reduce", OpKind::reduce}}};
constexpr std::array<Words<RedOp>, 6> kRedOps{{{"Sum", RedOp::sum},
                                               {"Prod", RedOp::prod},
                                               {"Min", RedOp::min},
                                               {"Max", RedOp::max},
                                               {"PreMulSum", RedOp::premul_sum},
                                               {"SumPostDiv", RedOp::avg}}};
constexpr std::array<Words<DataType>, 20> kTypes{
    {{"f16", DataType::f16},  {"f32", DataType::f32},   {"f64", DataType::f64},       {"bf16", DataType::bf16},
     {"i8", DataType::i8},    {"u8", DataType::u8},     {"i32", DataType::i32},       {"u32", DataType::u32},
     {"i64", DataType::i64},  {"u64", DataType::u64},   {"f8e4m3", DataType::f8e4m3}, {"f8e5m2", DataType::f8e5m2},
     {"half", DataType::f16}, {"float", DataType::f32}, {"double", DataType::f64},    {"bfloat16", DataType::bf16},
     {"int8", DataType::i8},  {"uint8", DataType::u8},  {"int32", DataType::i32},     {"int64", DataType::i64}}};

template <class Value, std::size_t kSize>
void take_word(std::string_view word, const std::array<Words<Value>, kSize>& words, Value& out) {
  for (const auto& [text, value] : words) {
    if (text == word && out == Value::unknown) out = value;
  }
}

}  // namespace

NcclKernelName parse_nccl_kernel(std::string_view name) {
  NcclKernelName out;
  name = name.substr(0, name.find_first_of("(<"));
  const std::size_t begin = name.find("Kernel_");
  if (begin == std::string_view::npos) return out;
  name.remove_prefix(begin + 7);
  while (!name.empty()) {
    const std::size_t end = name.find('_');
    const std::string_view word = name.substr(0, end);
    name.remove_prefix(end == std::string_view::npos ? name.size() : end + 1);
    take_word(word, kKinds, out.kind);
    take_word(word, kRedOps, out.redop);
    take_word(word, kTypes, out.type);
  }
  const bool reduces =
      out.kind == OpKind::all_reduce || out.kind == OpKind::reduce_scatter || out.kind == OpKind::reduce;
  if (!reduces) {  // "Broadcast_RING_LL_Sum_int8_t": bytes
    out.redop = RedOp::unknown;
    out.type = DataType::unknown;
  }
  return out;
}

}  // namespace ddx::formats
