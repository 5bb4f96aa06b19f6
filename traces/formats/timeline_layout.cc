#include "traces/formats/timeline_layout.h"

#include <fmt/format.h>

#include <algorithm>

namespace ddx::formats {
namespace {

constexpr Nanos kStep = 10 * kMicrosecond;  // of an operation without a time
constexpr std::size_t kMostLanes = 32;

std::uint64_t channel_of(std::uint16_t slot, std::uint32_t peer_slot, OpKind kind) {
  const std::uint64_t direction = kind == OpKind::send ? 1 : kind == OpKind::recv ? 2 : 0;
  return std::uint64_t{slot} << 48 | direction << 40 |
         (direction == 0 ? 0 : std::uint64_t{peer_slot} & 0xFFFFFFFFFFULL);
}

}  // namespace

bool has_times(const Program& program) {
  for (std::size_t row = 0; row < program.size(); ++row) {
    if (program.issue(row) || program.start(row) || program.end(row)) return true;
  }
  return false;
}

TimelineSpan span_of(const Trace& trace) {
  TimelineSpan span;
  const auto take = [&](std::optional<Nanos> time) {
    if (!time) return;
    span.first = span.known ? std::min(span.first, *time) : *time;
    span.last = span.known ? std::max(span.last, *time) : *time;
    span.known = true;
  };
  for (const Program& program : trace.programs) {
    for (std::size_t row = 0; row < program.size(); ++row) {
      take(program.issue(row));
      take(program.start(row));
      take(program.end(row));
    }
  }
  return span;
}

TimelineLayout::TimelineLayout(const Trace& trace, const RankRecord& record, const TimelineSpan& span)
    : trace_(trace), record_(record), span_(span), timed_(has_times(trace.program(record))) {}

std::string TimelineLayout::track_name(const Op& op, const Signature& signature) const {
  if (signature.stream) return fmt::format("stream {}", *signature.stream);
  if (op.comm_slot && *op.comm_slot < record_.comms.size()) {
    const std::string_view name = trace_.text(trace_.communicator(record_.comms[*op.comm_slot]).name);
    return fmt::format("group {}", name);
  }
  return "host";
}

// The start on the device where it is known, else the issue; what has no end goes on to the last time of the trace.
void TimelineLayout::set_times(TimelineSlice& slice, const Op& op, const Signature& signature) {
  const auto begin = op.start ? op.start : op.issue ? op.issue : op.end;
  if (begin) {
    const Nanos end = op.end.value_or(span_.last);
    slice.open = !op.end;
    slice.begin = *begin - span_.first;
    slice.length = std::max<Nanos>(end - *begin, 0);
    now_ = std::max(now_, slice.begin + (op.end ? slice.length : 0));
    return;
  }
  slice.placed_by_order = true;
  slice.begin = now_;
  if (timed_) return;  // a point between its neighbours
  slice.length = std::clamp<Nanos>(signature.compute_time.value_or(kStep), 1, 3600 * kSecond);
  if (now_ < INT64_MAX / 4) now_ += slice.length;
}

void TimelineLayout::place(TimelineSlice& slice, std::uint32_t row, const Signature& signature) {
  const Op op = trace_.program(record_).at(OpId(row));
  const std::string name = track_name(op, signature);
  Track& track = by_name_.try_emplace(name, Track{name, {}, {}}).first->second;
  std::size_t lane = 0;
  while (lane < track.ends.size() && track.ends[lane] > slice.begin) ++lane;
  if (lane == track.ends.size() && lane == kMostLanes) {
    --lane;  // so many at once cannot be shown: what overlaps is cut
    const Nanos late = track.ends[lane] - slice.begin;
    slice.begin = track.ends[lane];
    slice.length = std::max<Nanos>(slice.length - late, 0);
  } else if (lane == track.ends.size()) {
    track.lanes.push_back(static_cast<std::uint32_t>(names_.size()));
    track.ends.push_back(0);
    names_.push_back(lane == 0 ? name : fmt::format("{} ({})", name, lane + 1));
  }
  slice.track = track.lanes[lane];
  track.ends[lane] = slice.begin + slice.length;
}

std::uint64_t TimelineLayout::number_call(const Op& op, const Signature& signature) {
  if (!op.comm_slot || (!is_collective(signature.kind) && !is_p2p(signature.kind))) return 0;
  std::uint64_t& number = calls_[channel_of(*op.comm_slot, signature.peer_slot.value_or(0), signature.kind)];
  ++number;
  if (op.seq && is_collective(signature.kind)) return std::uint64_t{*op.seq} + 1;
  return record_.head_lost ? 0 : number;  // counts from an unknown number do not compare
}

void TimelineLayout::run(const std::function<bool(const TimelineSlice&)>& visit) {
  const Program& program = trace_.program(record_);
  for (OpCursor cursor(program); !cursor.done(); cursor.next()) {
    TimelineSlice slice;
    slice.row = cursor.op().value;
    const Op op = program.at(cursor.op());
    const Signature& signature = trace_.signature(op.signature);
    slice.call = number_call(op, signature);
    set_times(slice, op, signature);
    place(slice, slice.row, signature);
    if (!visit(slice)) return;
  }
}

}  // namespace ddx::formats
