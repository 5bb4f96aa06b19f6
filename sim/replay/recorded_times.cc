#include "sim/replay/recorded_times.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/hash.h"

namespace ddx::sim {
namespace {

// What is known of an operation's neighbours.
struct Place {
  std::optional<Nanos> before;  // end of the one before it on its stream
  std::optional<Nanos> behind;  // start of the next one that has times
};

// Calls of one communicator run on one stream: where a call's own is not recorded it is that of the call before it, or
// else behind it.
void find_streams(const Trace& trace, std::vector<RecordedOp>& ops) {
  std::map<std::uint16_t, std::uint32_t> of_comm;
  const auto note = [&](const RecordedOp& row) {
    const auto& stream = trace.signature(row.op.signature).stream;
    if (row.op.comm_slot && stream) of_comm[*row.op.comm_slot] = *stream;
    return stream;
  };
  for (auto row = ops.rbegin(); row != ops.rend(); ++row) note(*row);
  for (RecordedOp& row : ops) {
    if (const auto stream = note(row)) {
      row.stream = *stream;
    } else if (!row.op.comm_slot) {
      row.stream = kStreamOfHost;
    } else if (const auto at = of_comm.find(*row.op.comm_slot); at != of_comm.end()) {
      row.stream = at->second;
    } else {
      row.stream = kStreamOfComms + *row.op.comm_slot;
    }
  }
}

void fill(RecordedOp& row, const Place& place, Nanos otherwise, std::optional<Nanos> length) {
  const Op& op = row.op;
  row.start = otherwise;
  if (op.start) {
    row.start = *op.start;
  } else if (place.before || op.issue) {
    row.start = std::max(place.before.value_or(INT64_MIN), op.issue.value_or(INT64_MIN));
  } else if (place.behind) {
    row.start = *place.behind;
  }
  if (place.behind) row.start = std::min(row.start, *place.behind);
  row.end = row.start;
  if (__builtin_add_overflow(row.start, std::max<Nanos>(0, length.value_or(0)), &row.end)) row.end = row.start;
  if (place.behind) row.end = std::min(row.end, *place.behind);
}

}  // namespace

bool is_of_host(OpKind kind) { return kind == OpKind::wait || kind == OpKind::host_sync || kind == OpKind::stop; }

bool has_times(const Op& op) { return op.start && op.end && *op.end >= *op.start; }

void place(const Trace& trace, std::vector<RecordedOp>& ops) {
  find_streams(trace, ops);
  std::unordered_map<std::uint32_t, Nanos, KeyedHash> next, length;  // starts by stream; lengths by signature
  std::vector<Place> places(ops.size());
  std::vector<std::optional<Nanos>> lengths(ops.size());
  for (std::size_t i = ops.size(); i-- > 0;) {
    const Op& op = ops[i].op;
    if (is_of_host(trace.signature(op.signature).kind)) continue;
    if (has_times(op)) {
      next[ops[i].stream] = *op.start;
      length[op.signature.value] = *op.end - *op.start;
      continue;
    }
    if (const auto at = next.find(ops[i].stream); at != next.end()) places[i].behind = at->second;
    if (const auto at = length.find(op.signature.value); at != length.end()) lengths[i] = at->second;
  }
  std::unordered_map<std::uint32_t, Nanos, KeyedHash> last;  // ends by stream
  Nanos latest = 0;                                          // start of the one before, whatever its stream
  bool any = false;
  for (const RecordedOp& row : ops) {
    if (has_times(row.op) && (!any || *row.op.start < latest)) latest = *row.op.start;
    any = any || has_times(row.op);
  }
  for (std::size_t i = 0; i < ops.size(); ++i) {
    RecordedOp& row = ops[i];
    const Signature& signature = trace.signature(row.op.signature);
    if (is_of_host(signature.kind)) {
      row.start = row.op.start.value_or(latest);
      row.end = std::max(row.start, row.op.end.value_or(row.start));
      latest = row.start;
      continue;
    }
    if (has_times(row.op)) {
      row.start = *row.op.start;
      row.end = *row.op.end;
    } else {
      if (const auto at = last.find(row.stream); at != last.end()) places[i].before = at->second;
      if (takes_length(signature.kind) && signature.compute_time) lengths[i] = signature.compute_time;
      if (const auto at = length.find(row.op.signature.value); !lengths[i] && at != length.end())
        lengths[i] = at->second;
      fill(row, places[i], latest, lengths[i]);
    }
    const auto [at, fresh] = last.try_emplace(row.stream, row.end);
    if (!fresh) at->second = std::max(at->second, row.end);
    latest = row.start;
  }
}

}  // namespace ddx::sim
