#include "traces/formats/elastic_log.h"

#include "traces/formats/log_scan.h"

namespace ddx::formats {
namespace {

void flush_failure(ProcessSource& source, LogEventWriter& events) {
  if (!source.failure) return;
  ElasticFailure failure = std::move(*source.failure);
  source.failure.reset();
  if (!failure.rank && !failure.local_rank && !failure.exit_code) return;
  LogLine line;
  line.number = source.failure_line;
  line.body = failure.text;
  line.host = source.failure_host;
  line.pid = source.failure_pid;
  line.time = source.failure_time;
  const auto rank = failure.rank;
  std::string text = "rank " + (rank ? std::to_string(rank->value) : std::string("?"));
  if (failure.exit_code) text += ", exitcode " + std::to_string(*failure.exit_code);
  if (!failure.text.empty()) text += ": " + failure.text;
  LogEvent* event = events.add(line, std::move(failure));
  if (event == nullptr) return;
  event->text = printable(text, LogEventWriter::kMaxText);
  // The table names its rank; the log's own writer is the launcher.
  event->rank = rank;
}

// "  rank      : 2 (local_rank: 2)": the value behind the colon.
std::optional<std::string_view> field(std::string_view body, std::string_view name) {
  const std::string_view text = trimmed(body);
  if (!text.starts_with(name)) return std::nullopt;
  const std::string_view rest = trimmed(text.substr(name.size()));
  if (!rest.starts_with(":")) return std::nullopt;
  return trimmed(rest.substr(1));
}

// "failed (exitcode: -9) local_rank: 3 (pid: 812917) of binary: /usr/bin/python": the first failure of a node.
bool read_first_failure(const LogLine& line, LogEventWriter& events) {
  if (!contains(line.body, "failed (exitcode: ")) return false;
  ElasticFailure failure;
  failure.exit_code = number_after(line.body, "(exitcode: ");
  failure.local_rank = number_after(line.body, "local_rank: ");
  failure.root_cause = true;
  failure.text = printable(trimmed(line.body), LogEventWriter::kMaxText);
  if (LogEvent* event = events.add(line, std::move(failure))) {
    event->pid = number_after(line.body, "(pid: ");
    event->rank.reset();
  }
  return true;
}

// "2/3 attempts left; will restart worker group", "restart_count=1".
bool read_restart(const LogLine& line, LogEventWriter& events) {
  std::optional<std::int64_t> attempt;
  if (const std::size_t at = line.body.find(" attempts left; will restart worker group");
      at != std::string_view::npos) {
    const std::string_view before = line.body.substr(0, at);
    const std::size_t blank = before.rfind(' ');
    const std::string_view ratio = blank == std::string_view::npos ? before : before.substr(blank + 1);
    const auto left = number_at(ratio);
    const auto all = number_after(ratio, "/");
    // The count is printed before it goes down: with 3/3 left the first restart begins.
    if (left && all && *all >= *left) attempt = *all - *left + 1;
  } else if (contains(line.body, "will restart worker group")) {
    attempt = std::int64_t{events.attempt().value_or(0)} + 1;
  } else {
    attempt = number_after(line.body, "restart_count=");
    if (attempt && *attempt == 0 && !events.attempt()) return true;
  }
  if (!attempt || *attempt < 0 || *attempt > 1'000'000) return false;
  const auto number = static_cast<std::uint32_t>(*attempt);
  if (events.attempt() == number) return true;
  events.set_attempt(number);
  events.add(line, AttemptStart{number});
  return true;
}

}  // namespace

bool read_elastic_line(const LogLine& line, ProcessSource& source, LogEventWriter& events) {
  const std::string_view text = trimmed(line.body);
  if (text == "Failures:" || text.starts_with("Root Cause (first observed failure)")) {
    flush_failure(source, events);
    source.table = text.front() == 'R' ? ProcessSource::Table::root : ProcessSource::Table::others;
    source.traceback_lines = 0;
    return true;
  }
  return read_first_failure(line, events) || read_restart(line, events);
}

void continue_elastic_table(const LogLine& line, ProcessSource& source, LogEventWriter& events) {
  const std::string_view text = trimmed(line.body);
  if (text.starts_with("[") && text.ends_with("]:")) {
    flush_failure(source, events);
    source.failure.emplace();
    source.failure->root_cause = source.table == ProcessSource::Table::root;
    source.failure_line = line.number;
    source.failure_host.clear();
    source.failure_pid.reset();
    source.failure_time.reset();
    return;
  }
  // A table is a few lines an entry; what goes on without one is something else.
  if (text.starts_with("=====") || ++source.traceback_lines > 100'000) return finish_elastic_table(source, events);
  if (!source.failure) return;
  ElasticFailure& failure = *source.failure;
  if (const auto host = field(text, "host")) source.failure_host = printable(*host, 255);
  if (const auto time = field(text, "time")) {
    std::size_t used = 0;
    source.failure_time = parse_date_time(*time, used);
  }
  if (const auto rank = field(text, "rank")) {
    failure.rank = rank_from(number_at(*rank));
    failure.local_rank = number_after(*rank, "(local_rank: ");
  }
  if (const auto code = field(text, "exitcode")) {
    failure.exit_code = number_at(*code);
    source.failure_pid = number_after(*code, "(pid: ");
  }
  if (const auto what = field(text, "traceback")) failure.text = printable(*what, LogEventWriter::kMaxText);
}

void finish_elastic_table(ProcessSource& source, LogEventWriter& events) {
  flush_failure(source, events);
  source.table = ProcessSource::Table::none;
}

}  // namespace ddx::formats
