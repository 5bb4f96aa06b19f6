#include "sim/replay/timing.h"

#include <limits>

namespace ddx::sim {
namespace {

std::optional<std::uint64_t> product(std::optional<std::uint64_t> count, std::optional<std::uint64_t> factor) {
  if (!count || !factor) return std::nullopt;
  if (*factor != 0 && *count > std::numeric_limits<std::uint64_t>::max() / *factor) return std::nullopt;
  return *count * *factor;
}

std::optional<std::uint64_t> bytes_in(const Signature& signature) {
  return product(signature.count_in, element_bytes(signature.type_in));
}

std::optional<std::uint64_t> bytes_out(const Signature& signature) {
  const DataType type = signature.type_out == DataType::unknown ? signature.type_in : signature.type_out;
  return product(signature.count_out, element_bytes(type));
}

bool moves_nothing(OpKind kind) {
  return kind == OpKind::barrier || kind == OpKind::new_group || kind == OpKind::split_group;
}

std::optional<std::uint64_t> work_bytes(const Signature& signature, std::uint32_t members) {
  if (moves_nothing(signature.kind)) return 0;
  switch (signature.kind) {
    case OpKind::all_gather:
    case OpKind::gather:
      if (const auto total = bytes_out(signature); total && signature.kind == OpKind::all_gather) return total;
      return product(bytes_in(signature), members);
    case OpKind::scatter: return product(bytes_out(signature), members);
    default: break;
  }
  const auto input = bytes_in(signature);
  return input ? input : bytes_out(signature);
}

}  // namespace

std::optional<Work> work_of(const Signature& signature, std::uint32_t members) {
  const auto bytes = work_bytes(signature, members);
  if (!bytes) return std::nullopt;
  return Work{signature.kind, *bytes, signature.type_in, signature.redop};
}

std::optional<std::uint64_t> bytes_of(const Signature& signature) {
  const auto input = bytes_in(signature);
  return input ? input : bytes_out(signature);
}

}  // namespace ddx::sim
