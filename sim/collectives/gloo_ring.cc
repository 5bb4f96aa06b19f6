// gloo's rings: the buffer in segments, two of them under way (gloo/allreduce.cc and gloo/allreduce_ring_chunked.h,
// github.com/facebookincubator/gloo). A rank begins a segment's turn when its last send has left and the segment of two
// turns ago has come; the all_gather begins when the reduce_scatter is over.
#include "sim/collectives/exchange.h"
#include "sim/collectives/flat_time.h"
#include "sim/collectives/registry.h"

namespace ddx::sim {

namespace {

constexpr OpKind kKinds[] = {OpKind::all_reduce};
constexpr std::uint64_t kSegment = 1024 * 1024;

struct Segments {
  std::uint32_t turns = 0;  // of one phase: all segments but one rank's
  std::uint64_t bytes = 0;
};

// Twice as many as ranks at least, and a multiple of them.
Segments segments_of(const Work& work, std::uint32_t ranks, std::uint64_t most_bytes) {
  constexpr std::uint64_t kMostARank = 65'536;
  const std::uint64_t a_rank = std::clamp<std::uint64_t>(block(block(work.bytes, most_bytes), ranks), 2, kMostARank);
  const std::uint64_t turns = times(a_rank, ranks - 1);
  return {static_cast<std::uint32_t>(std::min<std::uint64_t>(turns, kNobody / 4)), block(work.bytes, a_rank * ranks)};
}

// Turn t of a phase is step t: it sends segment t, and what it waits for is segment t - 1 (so that turn t + 1 has t -
// 1, and with the last segment a step more).
std::unique_ptr<Schedule> steps_of(const Segments& segments, std::uint32_t ranks) {
  const std::uint32_t phase = segments.turns + 1;
  if (ranks == 1) return exchanges(1, 0, [](std::uint32_t, std::uint32_t) { return Exchange{}; });
  return exchanges(ranks, 2 * phase, [segments, phase, ranks](std::uint32_t rank, std::uint32_t step) {
    const std::uint32_t turn = step % phase;
    Exchange now{.receives = turn > 0};
    if (turn == segments.turns) return now;
    now.to = ahead(rank, 1, ranks);
    now.bytes = segments.bytes;
    now.to_step = step + 1;
    return now;
  });
}

// With t = bytes / B, segment i of a phase leaves at floor(i / 2) max(2t, t + L) + (i mod 2) t: where L is longer than
// t, every second segment waits for L - t.
Price price_of(std::string_view name, const Segments& segments, std::uint32_t ranks, const LinkSpec& port) {
  FlatTime time(name, port);
  if (ranks == 1) return time.price();
  const Picos transfer = transfer_time(segments.bytes, port.bytes_per_second);
  if (port.latency > transfer) time.waits(2 * ((segments.turns - 1) / 2), port.latency - transfer);
  return time.transfers(2 * std::uint64_t{segments.turns}, segments.bytes).hops(2).price();
}

std::uint64_t bytes_of(const Segments& segments, std::uint32_t ranks) {
  return ranks == 1 ? 0 : times(2 * std::uint64_t{segments.turns}, segments.bytes);
}

Segments segmented(const Work& work, const Members& members) { return segments_of(work, members.ranks, kSegment); }
Segments chunked(const Work& work, const Members& members) {
  return segments_of(work, members.ranks, std::max<std::uint64_t>(1, work.bytes));
}

}  // namespace

Algorithm gloo_ring() {
  return {"gloo-ring",
          kKinds,
          nullptr,
          [](const Work& work, const Members& members) { return steps_of(segmented(work, members), members.ranks); },
          [](const Work& work, const Members& members, const LinkSpec& port) {
            return price_of("gloo-ring", segmented(work, members), members.ranks, port);
          },
          [](const Work& work, const Members& members) { return bytes_of(segmented(work, members), members.ranks); },
          {}};
}

Algorithm gloo_ring_chunked() {
  return {"gloo-ring-chunked",
          kKinds,
          nullptr,
          [](const Work& work, const Members& members) { return steps_of(chunked(work, members), members.ranks); },
          [](const Work& work, const Members& members, const LinkSpec& port) {
            return price_of("gloo-ring-chunked", chunked(work, members), members.ranks, port);
          },
          [](const Work& work, const Members& members) { return bytes_of(chunked(work, members), members.ranks); },
          {}};
}

}  // namespace ddx::sim
