#include "traces/model/op.h"

#include <array>
#include <utility>

namespace ddx {
namespace {

template <class Enum, std::size_t kSize>
using Names = std::array<std::pair<Enum, std::string_view>, kSize>;

constexpr Names<OpKind, 22> kKinds{{
    {OpKind::unknown, "unknown"},
    {OpKind::all_reduce, "all_reduce"},
    {OpKind::reduce_scatter, "reduce_scatter"},
    {OpKind::all_gather, "all_gather"},
    {OpKind::broadcast, "broadcast"},
    {OpKind::reduce, "reduce"},
    {OpKind::gather, "gather"},
    {OpKind::scatter, "scatter"},
    {OpKind::all_to_all, "all_to_all"},
    {OpKind::barrier, "barrier"},
    {OpKind::send, "send"},
    {OpKind::recv, "recv"},
    {OpKind::new_group, "new_group"},
    {OpKind::split_group, "split_group"},
    {OpKind::compute, "compute"},
    {OpKind::delay, "delay"},
    {OpKind::wait, "wait"},
    {OpKind::host_sync, "host_sync"},
    {OpKind::group_begin, "group_begin"},
    {OpKind::group_end, "group_end"},
    {OpKind::coalesced, "coalesced"},
    {OpKind::stop, "stop"},
}};

constexpr Names<DataType, 18> kTypes{{
    {DataType::unknown, "unknown"},
    {DataType::i8, "i8"},
    {DataType::u8, "u8"},
    {DataType::i16, "i16"},
    {DataType::u16, "u16"},
    {DataType::i32, "i32"},
    {DataType::u32, "u32"},
    {DataType::i64, "i64"},
    {DataType::u64, "u64"},
    {DataType::f16, "f16"},
    {DataType::bf16, "bf16"},
    {DataType::f32, "f32"},
    {DataType::f64, "f64"},
    {DataType::f8e4m3, "f8e4m3"},
    {DataType::f8e5m2, "f8e5m2"},
    {DataType::boolean, "bool"},
    {DataType::complex64, "c64"},
    {DataType::complex128, "c128"},
}};

constexpr Names<RedOp, 11> kRedOps{{
    {RedOp::unknown, "unknown"},
    {RedOp::sum, "sum"},
    {RedOp::prod, "prod"},
    {RedOp::min, "min"},
    {RedOp::max, "max"},
    {RedOp::avg, "avg"},
    {RedOp::premul_sum, "premul_sum"},
    {RedOp::band, "band"},
    {RedOp::bor, "bor"},
    {RedOp::bxor, "bxor"},
    {RedOp::user, "user"},
}};

constexpr Names<OpState, 5> kStates{{
    {OpState::unknown, "unknown"},
    {OpState::planned, "planned"},
    {OpState::scheduled, "scheduled"},
    {OpState::started, "started"},
    {OpState::completed, "completed"},
}};

constexpr Names<StopReason, 4> kStops{{
    {StopReason::exit, "exit"},
    {StopReason::crash, "crash"},
    {StopReason::raise, "raise"},
    {StopReason::stuck, "stuck"},
}};

template <class Enum, std::size_t kSize>
std::string_view find_name(const Names<Enum, kSize>& names, Enum value) {
  for (const auto& [entry, name] : names) {
    if (entry == value) return name;
  }
  return "unknown";
}

template <class Enum, std::size_t kSize>
std::optional<Enum> find_value(const Names<Enum, kSize>& names, std::string_view text) {
  for (const auto& [entry, name] : names) {
    if (name == text) return entry;
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(OpKind kind) { return find_name(kKinds, kind); }
std::string_view name_of(DataType type) { return find_name(kTypes, type); }
std::string_view name_of(RedOp redop) { return find_name(kRedOps, redop); }
std::string_view name_of(OpState state) { return find_name(kStates, state); }
std::string_view name_of(StopReason reason) { return find_name(kStops, reason); }

std::optional<OpKind> op_kind_from(std::string_view name) { return find_value(kKinds, name); }
std::optional<DataType> data_type_from(std::string_view name) { return find_value(kTypes, name); }
std::optional<RedOp> redop_from(std::string_view name) { return find_value(kRedOps, name); }

bool is_collective(OpKind kind) {
  switch (kind) {
    case OpKind::all_reduce:
    case OpKind::reduce_scatter:
    case OpKind::all_gather:
    case OpKind::broadcast:
    case OpKind::reduce:
    case OpKind::gather:
    case OpKind::scatter:
    case OpKind::all_to_all:
    case OpKind::barrier:
    case OpKind::new_group:
    case OpKind::split_group: return true;
    default: return false;
  }
}

bool is_p2p(OpKind kind) { return kind == OpKind::send || kind == OpKind::recv; }

bool is_rooted(OpKind kind) {
  return kind == OpKind::broadcast || kind == OpKind::reduce || kind == OpKind::gather || kind == OpKind::scatter;
}

bool takes_length(OpKind kind) { return kind == OpKind::compute || kind == OpKind::delay; }

std::optional<std::uint32_t> element_bytes(DataType type) {
  switch (type) {
    case DataType::unknown: return std::nullopt;
    case DataType::i8:
    case DataType::u8:
    case DataType::f8e4m3:
    case DataType::f8e5m2:
    case DataType::boolean: return 1;
    case DataType::i16:
    case DataType::u16:
    case DataType::f16:
    case DataType::bf16: return 2;
    case DataType::i32:
    case DataType::u32:
    case DataType::f32: return 4;
    case DataType::i64:
    case DataType::u64:
    case DataType::f64:
    case DataType::complex64: return 8;
    case DataType::complex128: return 16;
  }
  return std::nullopt;
}

}  // namespace ddx
