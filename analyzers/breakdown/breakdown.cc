#include "analyzers/breakdown/breakdown.h"

#include <algorithm>
#include <map>

namespace ddx::analyzers {
namespace {

enum class Lane : std::uint8_t { work, communication, unknown };

struct Piece {
  Nanos begin = 0, end = 0;
  Lane lane = Lane::work;
};

bool is_communication(OpKind kind) {
  // Of a kind that ddx does not know, but recorded by a recorder of communication.
  return is_collective(kind) || is_p2p(kind) || kind == OpKind::unknown || kind == OpKind::coalesced;
}

std::optional<Nanos> plausible(std::optional<Nanos> time) { return time && *time >= 0 ? time : std::nullopt; }

// What one row covers; nullopt where its times say nothing.
std::optional<Piece> piece_of(const Trace& trace, const Program& program, std::size_t row) {
  const OpKind kind = trace.signature(program.signature(row)).kind;
  if (kind != OpKind::compute && !is_communication(kind)) return std::nullopt;
  const auto end = plausible(program.end(row));
  const auto start = plausible(program.start(row)), issue = plausible(program.issue(row));
  if (!end || (!start && !issue)) return std::nullopt;
  const Piece piece{start ? *start : *issue, *end,
                    !start                    ? Lane::unknown
                    : kind == OpKind::compute ? Lane::work
                                              : Lane::communication};
  return piece.begin <= piece.end ? std::optional(piece) : std::nullopt;
}

struct Edge {
  Nanos at = 0;
  Lane lane = Lane::work;
  int change = 0;
};

// `with_work`: the record tells work, so that a gap is idle.
TimeParts parts_of(const std::vector<Piece>& pieces, Nanos begin, Nanos end, bool with_work) {
  std::vector<Edge> edges;
  edges.reserve(pieces.size() * 2);
  for (const Piece& piece : pieces) {
    edges.push_back({piece.begin, piece.lane, 1});
    edges.push_back({piece.end, piece.lane, -1});
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.at < b.at; });
  TimeParts parts;
  std::int64_t work = 0, calls = 0, unknown = 0;  // how many are under way
  Nanos at = begin;
  const auto name = [&]() -> Nanos& {
    if (work > 0 && calls > 0) return parts.overlapped;
    if (work > 0) return parts.compute;
    if (calls > 0) return parts.exposed;
    return unknown > 0 || !with_work ? parts.unattributed : parts.idle;
  };
  for (const Edge& edge : edges) {
    name() += edge.at - at;
    at = edge.at;
    (edge.lane == Lane::work ? work : edge.lane == Lane::communication ? calls : unknown) += edge.change;
  }
  name() += end - at;
  return parts;
}

// Records without any are many and long.
bool any_start(const Program& program) {
  for (std::size_t row = 0; row < program.size(); ++row) {
    if (program.start(row)) return true;
  }
  return false;
}

std::optional<RankTime> time_of(const Trace& trace, std::uint32_t index) {
  const RankRecord& record = trace.ranks[index];
  const Program& program = trace.program(record);
  if (!program.loops.empty() || !any_start(program)) return std::nullopt;
  std::vector<Piece> all;
  std::map<std::optional<std::uint32_t>, std::vector<Piece>> by_stream;
  bool with_work = false, timed = false;
  for (std::size_t row = 0; row < program.size(); ++row) {
    const auto piece = piece_of(trace, program, row);
    if (!piece) continue;
    all.push_back(*piece);
    by_stream[trace.signature(program.signature(row)).stream].push_back(*piece);
    with_work = with_work || piece->lane == Lane::work;
    timed = timed || piece->lane != Lane::unknown;
  }
  if (!timed) return std::nullopt;
  RankTime time;
  time.rank = record.rank;
  time.record = index;
  time.begin = all.front().begin;
  for (const Piece& piece : all) {
    time.begin = std::min(time.begin, piece.begin);
    time.end = std::max(time.end, piece.end);
  }
  time.parts = parts_of(all, time.begin, time.end, with_work);
  for (const auto& [stream, pieces] : by_stream) {
    // Streams of a record that tells work are known to run nothing else.
    time.streams.push_back({stream, parts_of(pieces, time.begin, time.end, with_work)});
  }
  return time;
}

}  // namespace

std::vector<RankTime> break_down(const Trace& trace) {
  std::vector<RankTime> times;
  for (std::uint32_t i = 0; i < trace.ranks.size(); ++i) {
    if (auto time = time_of(trace, i)) times.push_back(std::move(*time));
  }
  return times;
}

}  // namespace ddx::analyzers
