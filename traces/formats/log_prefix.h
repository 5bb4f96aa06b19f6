// What launchers, log collectors and loggers put in front of a line: rank, host, time. They nest in any order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/units.h"

namespace ddx::formats {

// A line with its prefixes off. Views point into the text that was given.
struct LogLine {
  std::uint64_t number = 0;  // from 1
  std::string_view body;     // what is left; its indentation is kept
  std::optional<RankId> rank;
  bool rank_is_task = false;               // the rank is a label's number: a process, perhaps not a rank
  std::optional<std::int64_t> local_rank;  // torchrun's "[default3]:" counts on one node only
  std::optional<RankId> weak_rank;         // "[Rank 3]" of a library: the rank within some process group
  std::optional<Nanos> time;
  bool time_of_day = false;  // `time` has no date
  std::string_view host;
  std::optional<std::int64_t> pid;
  std::uint64_t source = 0;  // equal for lines with the same launcher prefix: one stream of lines
};

// What launchers that label every line write, where only the whole file can tell that it is a label.
enum class LineLabel {
  none,
  task,     // "3: " of `srun -l`: a task's number
  bracket,  // "[3] " of Hydra and Intel MPI: a rank
  host,     // "node-c: " of pdsh
};
// The label that most lines of a log begin with.
LineLabel label_of_lines(std::string_view bytes);

LogLine strip_prefixes(std::string_view line, LineLabel label);

// Copies `line` to `scratch` without terminal escape sequences.
std::string_view without_escapes(std::string_view line, std::string& scratch);

// "2026-11-29T10:00:00.123Z", "2026-11-29 10:00:00,123+01:00" at the beginning: wall clock, UTC where no zone is
// given. `used`: the bytes it took.
std::optional<Nanos> parse_date_time(std::string_view text, std::size_t& used);
// "10:00:07.412" since midnight.
std::optional<Nanos> parse_time_of_day(std::string_view text, std::size_t& used);

}  // namespace ddx::formats
