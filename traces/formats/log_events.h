// Writes LogEvents: fills in what every event has (line, text, rank, time, host), and keeps the bound.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/formats/importer.h"
#include "traces/formats/log_prefix.h"
#include "traces/model/evidence.h"

namespace ddx::formats {

// What a log's path says of its writer.
struct PathFacts {
  std::optional<RankId> rank;              // stated: "rank2.log"
  std::optional<std::int64_t> local_rank;  // torchelastic's "<attempt>/<local rank>/stderr.log"
  std::optional<std::uint32_t> attempt;    // the same, "attempt_1"
  bool one_of_many_nodes = false;          // "node3.log": local ranks in it are not the job's
};
PathFacts facts_of_path(const std::string& path, const ImportOptions& options);

class LogEventWriter {
 public:
  static constexpr std::size_t kMaxText = 400;

  // `file_size`: in bytes, as a short line may say something of many ranks.
  LogEventWriter(Evidence& out, const ImportOptions& options, PathFacts path, std::size_t file_size);

  // The new event, until the next is added; nullptr where the file's bound is reached (which is counted).
  LogEvent* add(const LogLine& line, LogFact fact);
  // By index, for facts that later lines complete. Indices stay valid until finish().
  std::size_t size() const { return out_.events.size(); }
  LogEvent& at(std::size_t index) { return out_.events[index]; }

  // The rank of a line's writer, as far as it is known before the end of the file.
  std::optional<RankId> rank_of(const LogLine& line) const;

  void set_attempt(std::uint32_t attempt) { attempt_ = attempt; }
  std::optional<std::uint32_t> attempt() const { return attempt_; }
  const PathFacts& path() const { return path_; }
  Evidence& out() { return out_; }

  // Resolves what only the whole file can tell, and puts the events in order of line.
  void finish();

 private:
  bool local_ranks_are_ranks() const;

  Evidence& out_;
  PathFacts path_;
  std::uint64_t max_events_;
  std::uint64_t bytes_left_;  // that the events may yet take
  std::optional<std::uint32_t> attempt_;
  std::vector<std::int32_t> local_ranks_;  // by event; -1: none
  bool local_contradicted_ = false;        // a line gave a rank that is not its local rank
};

}  // namespace ddx::formats
