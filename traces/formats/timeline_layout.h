// Where the operations of a rank stand on a timeline: tracks, and slices that do not overlap on a track. Internal to
// the writer of timelines.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "traces/model/trace.h"

namespace ddx::formats {

struct TimelineSlice {
  std::uint32_t row = 0;    // of the program
  std::uint32_t track = 0;  // from 0 in each rank
  Nanos begin = 0;
  Nanos length = 0;
  bool placed_by_order = false;  // no time of it is recorded
  bool open = false;             // its end is not recorded
  std::uint64_t call = 0;        // number of its collective, or of its send or receive with this peer; from 1
};

struct TimelineSpan {
  Nanos first = 0;
  Nanos last = 0;
  bool known = false;
};
// Of all times that the trace holds.
TimelineSpan span_of(const Trace& trace);
bool has_times(const Program& program);

// Lays out one record; call run() once.
class TimelineLayout {
 public:
  TimelineLayout(const Trace& trace, const RankRecord& record, const TimelineSpan& span);

  // Calls `visit` for every operation in order of execution, loops run out; false from it ends the run.
  void run(const std::function<bool(const TimelineSlice&)>& visit);
  // Names of the tracks that run() met, by number.
  const std::vector<std::string>& tracks() const { return names_; }

 private:
  struct Track {
    std::string name;
    std::vector<std::uint32_t> lanes;  // track numbers
    std::vector<Nanos> ends;           // of the last slice in each lane
  };
  void place(TimelineSlice& slice, std::uint32_t row, const Signature& signature);
  void set_times(TimelineSlice& slice, const Op& op, const Signature& signature);
  std::uint64_t number_call(const Op& op, const Signature& signature);
  std::string track_name(const Op& op, const Signature& signature) const;

  const Trace& trace_;
  const RankRecord& record_;
  const TimelineSpan& span_;
  bool timed_ = false;
  Nanos now_ = 0;  // where the next operation without a time goes
  std::map<std::string, Track> by_name_;
  std::vector<std::string> names_;
  std::map<std::uint64_t, std::uint64_t> calls_;  // so far, by communicator, and kind and peer of p2p
};

}  // namespace ddx::formats
