#include "sim/collectives/port_bound.h"

#include <algorithm>

namespace ddx::sim {

namespace {

__extension__ using Wide = unsigned __int128;

// parts / of x S / B, rounded down.
Picos time_of(std::uint64_t bytes, std::uint64_t parts, std::uint64_t of, std::uint64_t bytes_per_second) {
  // Bytes are indivisible, and a part of them may be what someone keeps.
  const Wide moved = Wide{bytes} * parts / of;
  const Wide time = moved * kPicosPerSecond / bytes_per_second;
  return static_cast<Picos>(std::min(time, Wide{static_cast<std::uint64_t>(kForever)}));
}

}  // namespace

Picos port_bound(const Work& work, std::uint32_t ranks, std::uint64_t bytes_per_second) {
  if (ranks <= 1) return 0;
  switch (work.kind) {
    case OpKind::all_reduce: return time_of(work.bytes, 2 * (std::uint64_t{ranks} - 1), ranks, bytes_per_second);
    case OpKind::reduce_scatter:
    case OpKind::all_gather:
    case OpKind::all_to_all:
    case OpKind::gather:
    case OpKind::scatter: return time_of(work.bytes, ranks - 1, ranks, bytes_per_second);
    case OpKind::broadcast:
    case OpKind::reduce:
    case OpKind::send:
    case OpKind::recv: return time_of(work.bytes, 1, 1, bytes_per_second);
    default: return 0;
  }
}

Picos port_bound_with_switches(const Work& work, std::uint32_t ranks, std::uint64_t bytes_per_second) {
  if (work.kind == OpKind::all_reduce && ranks > 1) return time_of(work.bytes, 1, 1, bytes_per_second);
  return port_bound(work, ranks, bytes_per_second);
}

Picos port_bound(const Work& work, std::uint32_t ranks, std::uint64_t bytes_per_second, const Algorithm& algorithm) {
  return algorithm.reduces_in ? port_bound_with_switches(work, ranks, bytes_per_second)
                              : port_bound(work, ranks, bytes_per_second);
}

}  // namespace ddx::sim
