#include "traces/formats/log_events.h"

#include <algorithm>
#include <filesystem>

#include "traces/formats/log_scan.h"
#include "traces/formats/rank_of_path.h"

namespace ddx::formats {
namespace {

bool is_short_number(std::string_view text) { return text.size() <= 6 && all_digits(text); }

// Whether `word` stands in `name` as a word of its own with a number behind it: "rank3", "node-7".
bool numbered(std::string_view name, std::string_view word) {
  for (std::size_t at = name.find(word); at != std::string_view::npos; at = name.find(word, at + 1)) {
    if (at > 0 && is_letter(name[at - 1])) continue;
    std::size_t end = at + word.size();
    if (end < name.size() && !is_digit(name[end]) && !is_letter(name[end])) ++end;
    if (end < name.size() && is_digit(name[end])) return true;
  }
  return false;
}

}  // namespace

PathFacts facts_of_path(const std::string& path, const ImportOptions& options) {
  PathFacts facts;
  std::vector<std::string> parts;
  for (const auto& part : std::filesystem::path(path)) parts.push_back(lower(part.string()));
  if (parts.empty()) return facts;
  const std::size_t n = parts.size();
  const std::string tail = n > 1 ? parts[n - 2] + "/" + parts[n - 1] : parts[n - 1];
  if (options.rank_from) {
    facts.rank = rank_of_path(path, options);
  } else {
    facts.rank = stated_rank(parts[n - 1]);
    // A folder's counts where the file's own name holds no other number.
    const auto of_folder = n > 1 && !facts.rank ? stated_rank(parts[n - 2]) : std::nullopt;
    if (of_folder && rank_of_path(tail, options) == of_folder) facts.rank = of_folder;
  }
  for (std::string_view word : {"node", "host", "worker", "pod"}) {
    facts.one_of_many_nodes = facts.one_of_many_nodes || numbered(tail, word);
  }
  const bool elastic_name = parts[n - 1] == "stderr.log" || parts[n - 1] == "stdout.log";
  if (n < 3 || !elastic_name || !is_short_number(parts[n - 2])) return facts;
  std::string_view attempt = parts[n - 3];
  if (attempt.starts_with("attempt_")) attempt.remove_prefix(8);
  if (!is_short_number(attempt)) return facts;
  facts.local_rank = number_at(parts[n - 2]);
  facts.attempt = static_cast<std::uint32_t>(*number_at(attempt));
  return facts;
}

// No real log comes near: lines of interest are long, and far between.
LogEventWriter::LogEventWriter(Evidence& out, const ImportOptions& options, PathFacts path, std::size_t file_size)
    : out_(out),
      path_(path),
      max_events_(options.max_events_per_file),
      bytes_left_(std::uint64_t{file_size} * 64 + (64U << 20)),
      attempt_(path.attempt) {}

std::optional<RankId> LogEventWriter::rank_of(const LogLine& line) const {
  if (line.rank && !line.rank_is_task) return line.rank;
  if (path_.rank) return path_.rank;
  if (line.rank) return line.rank;
  return line.weak_rank;
}

LogEvent* LogEventWriter::add(const LogLine& line, LogFact fact) {
  // What an event takes, about.
  const std::uint64_t size = sizeof(LogEvent) + std::min(line.body.size(), kMaxText) + 64;
  if (out_.events.size() >= max_events_ || bytes_left_ < size) {
    out_.diagnostics.count("log.too_many_events", DiagnosticSeverity::data_loss,
                           out_.inputs.front().path + ":" + std::to_string(line.number) +
                               ": more events than ddx keeps of one file; the rest of it is not read");
    return nullptr;
  }
  bytes_left_ -= size;
  LogEvent event;
  event.line = line.number;
  event.text = printable(trimmed(line.body), kMaxText);
  event.rank = rank_of(line);
  event.time = line.time;
  event.time_of_day = line.time && line.time_of_day;
  event.attempt = attempt_;
  event.host = printable(line.host, 255);
  event.pid = line.pid;
  event.fact = std::move(fact);
  std::int32_t local = -1;
  const auto stated = line.local_rank ? line.local_rank : path_.local_rank;
  if (stated && *stated >= 0 && *stated <= INT32_MAX) local = static_cast<std::int32_t>(*stated);
  if (local >= 0 && event.rank && event.rank->value != local) local_contradicted_ = true;
  local_ranks_.push_back(event.rank ? -1 : local);
  out_.events.push_back(std::move(event));
  return &out_.events.back();
}

// One node, as far as this file shows: then the local rank is the rank.
bool LogEventWriter::local_ranks_are_ranks() const { return !local_contradicted_ && !path_.one_of_many_nodes; }

void LogEventWriter::finish() {
  std::vector<LogEvent>& events = out_.events;
  if (local_ranks_are_ranks()) {
    for (std::size_t i = 0; i < local_ranks_.size(); ++i) {
      if (local_ranks_[i] >= 0 && !events[i].rank) events[i].rank = RankId(std::int64_t{local_ranks_[i]});
    }
  }
  local_ranks_.clear();
  const auto by_line = [](const LogEvent& a, const LogEvent& b) { return a.line < b.line; };
  if (!std::is_sorted(events.begin(), events.end(), by_line)) std::stable_sort(events.begin(), events.end(), by_line);
  std::vector<RankId> ranks;
  for (const LogEvent& event : events) {
    if (event.rank && (ranks.empty() || ranks.back() != *event.rank)) ranks.push_back(*event.rank);
  }
  out_.inputs.front().ranks.insert(RankSet(std::move(ranks)));
}

}  // namespace ddx::formats
