#include "analyzers/breakdown/breakdown.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

#include "analyzers/match/channels.h"
#include "analyzers/match/job_view.h"
#include "analyzers/match/record_choice.h"

namespace ddx::analyzers {
namespace {

enum class Lane : std::uint8_t { work, communication, bubble, unknown, delay };
constexpr std::size_t kLanes = 5;

// What a record says of the time in which none of its operations is under way.
struct Gaps {
  bool with_work = false;  // it tells work
  bool whole = false;      // it is a program that does nothing else
};

// Of one record, by row: how long a send or receive waits before its partner is there.
using Waits = std::unordered_map<std::uint32_t, Nanos>;

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
  if (!takes_length(kind) && !is_communication(kind)) return std::nullopt;
  const auto end = plausible(program.end(row));
  const auto start = plausible(program.start(row)), issue = plausible(program.issue(row));
  if (!end || (!start && !issue)) return std::nullopt;
  const Piece piece{start ? *start : *issue, *end,
                    !start                    ? Lane::unknown
                    : kind == OpKind::compute ? Lane::work
                    : kind == OpKind::delay   ? Lane::delay
                                              : Lane::communication};
  return piece.begin <= piece.end ? std::optional(piece) : std::nullopt;
}

struct Edge {
  Nanos at = 0;
  Lane lane = Lane::work;
  int change = 0;
};

TimeParts parts_of(const std::vector<Piece>& pieces, Nanos begin, Nanos end, Gaps gaps) {
  std::vector<Edge> edges;
  edges.reserve(pieces.size() * 2);
  for (const Piece& piece : pieces) {
    edges.push_back({piece.begin, piece.lane, 1});
    edges.push_back({piece.end, piece.lane, -1});
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.at < b.at; });
  TimeParts parts;
  std::array<std::int64_t, kLanes> open{};  // how many are under way
  Nanos at = begin;
  const auto on = [&](Lane lane) { return open[static_cast<std::size_t>(lane)] > 0; };
  const auto name = [&]() -> Nanos& {
    if (on(Lane::work) && on(Lane::communication)) return parts.overlapped;
    if (on(Lane::work)) return parts.compute;
    if (on(Lane::communication)) return parts.exposed;
    if (on(Lane::bubble)) return parts.bubble;
    if (on(Lane::unknown)) return parts.unattributed;
    if (gaps.with_work) return parts.idle;
    return on(Lane::delay) || !gaps.whole ? parts.unattributed : parts.idle;
  };
  for (const Edge& edge : edges) {
    name() += edge.at - at;
    at = edge.at;
    open[static_cast<std::size_t>(edge.lane)] += edge.change;
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

struct Pieces {
  std::vector<Piece> all;
  std::map<std::optional<std::uint32_t>, std::vector<Piece>> by_stream;
  bool with_work = false, timed = false, p2p = false;
};

Pieces pieces_of(const Trace& trace, const Program& program, const Waits& waits) {
  Pieces pieces;
  for (std::size_t row = 0; row < program.size(); ++row) {
    const auto piece = piece_of(trace, program, row);
    if (!piece) continue;
    const Signature& signature = trace.signature(program.signature(row));
    const auto add = [&](const Piece& part) {
      if (part.begin == part.end && piece->begin != piece->end) return;
      pieces.all.push_back(part);
      pieces.by_stream[signature.stream].push_back(part);
    };
    const auto waits_for = waits.find(static_cast<std::uint32_t>(row));
    const Nanos met = waits_for == waits.end() ? piece->begin : piece->begin + waits_for->second;
    if (met > piece->begin) add({piece->begin, met, Lane::bubble});
    add({met, piece->end, piece->lane});
    pieces.with_work = pieces.with_work || piece->lane == Lane::work;
    pieces.timed = pieces.timed || piece->lane != Lane::unknown;
    pieces.p2p = pieces.p2p || is_p2p(signature.kind);
  }
  return pieces;
}

std::optional<RankTime> time_of(const Trace& trace, std::uint32_t index, const Waits& waits,
                                std::optional<TimeSpan> span) {
  const RankRecord& record = trace.ranks[index];
  const Program& program = trace.program(record);
  if (!program.loops.empty() || !any_start(program)) return std::nullopt;
  Pieces pieces = pieces_of(trace, program, waits);
  if (!pieces.timed) return std::nullopt;
  RankTime time;
  time.rank = record.rank;
  time.record = index;
  time.begin = pieces.all.front().begin;
  for (const Piece& piece : pieces.all) {
    time.begin = std::min(time.begin, piece.begin);
    time.end = std::max(time.end, piece.end);
  }
  if (span) {
    if (pieces.p2p && time.end < span->end) pieces.all.push_back({time.end, span->end, Lane::bubble});
    time.begin = std::min(time.begin, span->begin);
    time.end = std::max(time.end, span->end);
  }
  // Streams of a record that tells work are known to run nothing else.
  const Gaps gaps{pieces.with_work, record.whole_program};
  time.parts = parts_of(pieces.all, time.begin, time.end, gaps);
  for (const auto& [stream, own] : pieces.by_stream) {
    time.streams.push_back({stream, parts_of(own, time.begin, time.end, gaps)});
  }
  return time;
}

// How long a call takes; nullopt where its times say nothing.
std::optional<Nanos> length_of(const JobView& job, const MemberView& member, std::uint32_t row) {
  const auto piece = piece_of(*job.trace, *member.program, row);
  if (!piece || piece->lane != Lane::communication) return std::nullopt;
  return piece->end - piece->begin;
}

void add_waits(const JobView& job, std::vector<Waits>& waits) {
  for (const GroupView& group : job.groups) {
    for (const auto& [ends, channel] : channels_of(job, group)) {
      if (!channel.sure) continue;
      for (std::size_t i = 0; i < channel.sends.size(); ++i) {
        const std::ptrdiff_t other = recv_of(channel, i);
        if (other < 0 || other >= static_cast<std::ptrdiff_t>(channel.recvs.size())) continue;
        const Posted calls[] = {channel.sends[i], channel.recvs[static_cast<std::size_t>(other)]};
        const auto sent = length_of(job, group.members[calls[0].member], calls[0].row);
        const auto received = length_of(job, group.members[calls[1].member], calls[1].row);
        if (!sent || !received || *sent == *received) continue;
        const Posted& waiting = *sent > *received ? calls[0] : calls[1];
        const auto record = group.members[waiting.member].record - job.trace->ranks.data();
        waits[static_cast<std::size_t>(record)][waiting.row] = std::abs(*sent - *received);
      }
    }
  }
}

std::vector<RankTime> times_of(const Trace& trace, const std::vector<Waits>& waits, std::optional<TimeSpan> span) {
  std::vector<RankTime> times;
  for (std::uint32_t i = 0; i < trace.ranks.size(); ++i) {
    if (auto time = time_of(trace, i, waits[i], span)) times.push_back(std::move(*time));
  }
  return times;
}

}  // namespace

std::vector<RankTime> break_down(const Trace& trace) {
  return times_of(trace, std::vector<Waits>(trace.ranks.size()), std::nullopt);
}

std::vector<RankTime> break_down(const Evidence& evidence, std::optional<TimeSpan> span) {
  const Trace& trace = evidence.trace;
  std::vector<Waits> waits(trace.ranks.size());
  const bool timed = std::any_of(trace.programs.begin(), trace.programs.end(), any_start);
  const bool p2p = std::any_of(trace.signatures().begin(), trace.signatures().end(),
                               [](const Signature& signature) { return is_p2p(signature.kind); });
  if (timed && p2p) {
    for (const RecordChoice& choice : record_choices(evidence)) add_waits(build_job_view(evidence, choice), waits);
  }
  return times_of(trace, waits, span);
}

}  // namespace ddx::analyzers
