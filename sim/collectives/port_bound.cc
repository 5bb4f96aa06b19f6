#include "sim/collectives/port_bound.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace ddx::sim {

namespace {

__extension__ using Wide = unsigned __int128;

// Rounded down.
Picos time_of(Wide bytes, Wide bytes_per_second) {
  constexpr Wide kMost = Wide{1} << 87;  // times kPicosPerSecond still 128 bits
  const Wide time = std::min(bytes, kMost) * kPicosPerSecond / std::max(bytes_per_second, Wide{1});
  return static_cast<Picos>(std::min(time, Wide{static_cast<std::uint64_t>(kForever)}));
}

// parts / of x S / B.
Picos time_of(std::uint64_t bytes, std::uint64_t parts, std::uint64_t of, std::uint64_t bytes_per_second) {
  // Bytes are indivisible, and a part of them may be what someone keeps.
  return time_of(Wide{bytes} * parts / of, bytes_per_second);
}

std::string text_of(Picos time) {
  if (time < kPicosPerNano * 1000) return fmt::format("{} ps", time);
  return fmt::format("{:.6g} us", static_cast<double>(time) / 1e6);
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

namespace {

// Of `bytes`, what a party's ranks must get from the others, or give them.
Picos share_of_others(std::uint64_t bytes, const Party& party, std::uint64_t all) {
  return time_of(Wide{bytes} * (all - party.ranks) / all, party.bytes_per_second);
}

Picos all_reduce_bound(std::uint64_t bytes, std::span<const Party> parties, Picos slowest, bool switches) {
  if (switches) return slowest;
  Wide rates = 0;
  for (const Party& party : parties) rates += party.bytes_per_second;
  return std::max(slowest, time_of(Wide{bytes} * 2 * (parties.size() - 1), rates));
}

}  // namespace

Picos port_bound(const Work& work, std::span<const Party> parties, bool switches) {
  if (parties.size() < 2) return 0;
  std::uint64_t all = 0;
  for (const Party& party : parties) all += party.ranks;
  Picos most = 0, least = kForever, slowest = 0;
  for (const Party& party : parties) {
    const Picos time = share_of_others(work.bytes, party, all);
    least = std::min(least, time);
    most = std::max(most,
                    work.kind != OpKind::all_to_all
                        ? time
                        : time_of(Wide{work.bytes} * (all - party.ranks) / all * party.ranks, party.bytes_per_second));
    slowest = std::max(slowest, time_of(Wide{work.bytes}, party.bytes_per_second));
  }
  switch (work.kind) {
    case OpKind::all_reduce: return all_reduce_bound(work.bytes, parties, slowest, switches);
    case OpKind::reduce_scatter:
    case OpKind::all_gather:
    case OpKind::all_to_all: return most;
    case OpKind::gather:
    case OpKind::scatter: return least;
    case OpKind::broadcast:
    case OpKind::reduce:
    case OpKind::send:
    case OpKind::recv: return slowest;
    default: return 0;
  }
}

Reduction reduction_of(std::string_view algorithm, const Cluster& cluster) {
  if (algorithm == "NVLSTree") return {true, false};
  if (algorithm == "NVLS") return {true, cluster.sharp};
  if (algorithm.starts_with("CollNet")) return {cluster.nvls, true};
  const Algorithm* known = find_algorithm(algorithm);
  const bool reduces = known != nullptr && known->reduces_in.has_value();
  return {reduces, reduces};
}

Picos port_bound(const Work& work, const Network& network, std::span<const std::uint32_t> places,
                 const Reduction& reduction) {
  return std::max(port_bound(work, network.ranks_apart(places), reduction.in_nodes || reduction.between_nodes),
                  port_bound(work, network.domains_apart(places), reduction.between_nodes));
}

bool is_below_bound(Picos time, Picos bound, Picos rounding) { return time < bound - std::min(bound, rounding); }

void refuse_below_bound(const Work& work, std::uint64_t ranks, std::string_view algorithm, Picos time, Picos bound,
                        Picos rounding) {
  if (!is_below_bound(time, bound, rounding)) return;
  throw Error(fmt::format(
      "{} of {} bytes among {} ranks{}{} would take {}, less than the {} in which the busiest port can carry what it "
      "must: no time is told. What prices it is at fault, not the trace",
      name_of(work.kind), work.bytes, ranks, algorithm.empty() ? "" : " by ", algorithm, text_of(time),
      text_of(bound)));
}

}  // namespace ddx::sim
