#include "traces/formats/process_log.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "traces/formats/elastic_log.h"
#include "traces/formats/exit_log.h"
#include "traces/formats/log_scan.h"

namespace ddx::formats {
namespace {

// Beyond this a traceback without an end is given up.
constexpr unsigned kMaxTracebackLines = 600;
constexpr std::size_t kMaxSources = 1U << 16;
constexpr std::size_t kMaxWhat = 300;
constexpr std::size_t kMaxCallSite = 200;

ProcessSource& source_of(const LogLine& line, ProcessState& state) {
  // A hostile file has as many prefixes as lines; then they share one.
  const bool full = state.sources.size() >= kMaxSources && !state.sources.contains(line.source);
  return state.sources[full ? 0 : line.source];
}

bool is_indented(std::string_view body) { return !body.empty() && (body.front() == ' ' || body.front() == '\t'); }

// `File "train.py", line 565, in load_state_dict` -> "train.py:565 in load_state_dict"; faulthandler writes no comma
// before "in". Empty: no frame, or not the user's.
std::string user_frame(std::string_view text) {
  const auto file_text = rest_after(text, "File \"");
  if (!file_text) return {};
  const std::string_view file = until(*file_text, "\"");
  const auto number = number_after(*file_text, "\", line ");
  if (!number || *number < 0 || file.empty() || is_library(file)) return {};
  std::string frame = std::string(file) + ":" + std::to_string(*number);
  const auto function = rest_after(file_text->substr(file.size()), " in ");
  if (function) frame += " in " + std::string(trimmed(*function));
  return printable(frame, kMaxCallSite);
}

bool is_name_character(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '.'; }

// The name of an exception at the beginning of a line that ends a traceback: "torch.OutOfMemoryError: CUDA ...",
// "KeyboardInterrupt". Empty: the line is none.
std::string_view exception_name(std::string_view body) {
  std::size_t end = 0;
  while (end < body.size() && is_name_character(body[end])) ++end;
  if (end == 0 || is_digit(body.front()) || (end < body.size() && body[end] != ':')) return {};
  if (end + 1 < body.size() && body[end + 1] != ' ') return {};
  return body.substr(0, end);
}

bool names_an_error(std::string_view exception) {
  static constexpr std::string_view kEndings[] = {"Error",   "Exception", "Interrupt", "Exit",   "Timeout",
                                                  "timeout", "gaierror",  "herror",    "Failure"};
  // The bare words are what loggers print, not classes.
  if (exception == "Error" || exception == "Failure" || exception == "Timeout" || exception == "timeout") return false;
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](std::string_view ending) { return exception.ends_with(ending); });
}

void close_traceback(ProcessSource& source) {
  source.in_traceback = false;
  source.traceback_lines = 0;
  source.ignore_traceback = false;
  source.call_site.clear();
  source.foreign_prefix.clear();
  source.writer.reset();
}

ProcessEnd exception_end(std::string_view text, std::string call_site) {
  ProcessEnd end;
  end.kind = ProcessEnd::Kind::exception;
  end.what = printable(trimmed(text), kMaxWhat);
  while (!end.what.empty() && (end.what.back() == ':' || end.what.back() == ' ')) end.what.pop_back();
  end.call_site = std::move(call_site);
  end.secondary = is_secondary(text);
  return end;
}

// torch.distributed.checkpoint raises one rank's exception on all: "CheckpointException ranks:dict_keys([5])".
std::optional<RankId> rank_of_checkpoint(std::string_view text) {
  const auto ranks = rest_after(text, "CheckpointException ranks:dict_keys([");
  const std::string_view list = ranks ? until(*ranks, "]") : std::string_view();
  return all_digits(list) ? rank_at(list) : std::nullopt;
}

void add_exception(const LogLine& line, ProcessSource& source, LogEventWriter& events) {
  ProcessEnd end = exception_end(line.body, std::move(source.call_site));
  const auto child = std::exchange(source.child, std::nullopt);
  if (source.chained && source.exception) {
    // Raised while another was handled: one end, whose outcome is the last; that of a consequence is one.
    LogEvent& earlier = events.at(*source.exception);
    const auto& first = std::get<ProcessEnd>(earlier.fact);
    end.secondary = end.secondary || first.secondary;
    if (end.call_site.empty()) end.call_site = first.call_site;
    earlier.fact = std::move(end);
    earlier.text = printable(trimmed(line.body), LogEventWriter::kMaxText);
    earlier.line = line.number;
  } else {
    LogLine writer = line;
    if (child && !writer.local_rank) writer.local_rank = child;
    if (!writer.rank) writer.rank = source.writer;
    auto told = std::exchange(source.told_rank, std::nullopt);
    if (!told) told = rank_of_checkpoint(line.body);
    if (told) {
      writer.rank = told;
      writer.rank_is_task = false;
    }
    source.exception = events.size();
    if (events.add(writer, std::move(end)) == nullptr) source.exception.reset();
  }
  source.chained = false;
}

// A line while a traceback is open. True where it belongs to it.
bool continue_traceback(const LogLine& given, ProcessSource& source, LogEventWriter& events) {
  LogLine line = given;
  if (!source.foreign_prefix.empty()) {
    if (line.body.starts_with(source.foreign_prefix)) {
      line.body.remove_prefix(source.foreign_prefix.size());
    } else if (source.traceback_lines == 0 && is_indented(line.body)) {
      source.foreign_prefix.clear();  // a logger's, who writes it once
    } else {
      return false;
    }
  }
  if (++source.traceback_lines > kMaxTracebackLines) {
    close_traceback(source);
    return false;
  }
  if (trimmed(line.body).empty()) return true;
  if (is_indented(line.body)) {
    source.last_was_indented = true;
    if (auto frame = user_frame(line.body); !frame.empty()) source.call_site = std::move(frame);
    return true;
  }
  const std::string_view exception = exception_name(line.body);
  const bool dotted = contains(exception, ".") && !exception.ends_with(".");
  const bool upper = !exception.empty() && exception.front() >= 'A' && exception.front() <= 'Z';
  const bool ends = names_an_error(exception) || (source.last_was_indented && (dotted || upper));
  if (exception.empty() || !ends) return false;
  if (!source.ignore_traceback) add_exception(line, source, events);
  close_traceback(source);
  return true;
}

void open_traceback(const LogLine& line, std::size_t at, ProcessSource& source) {
  const bool ignored = source.ignore_traceback;
  close_traceback(source);
  source.ignore_traceback = ignored;
  std::string_view before = line.body.substr(0, at);
  if (before.ends_with("Original ")) {
    // A worker's exception, quoted in that of its parent: the same end, seen closer.
    source.chained = source.exception.has_value();
    before.remove_suffix(9);
  }
  // "Exception in thread Thread-3: Traceback", "| Traceback": what is before it only matters where lines repeat it.
  if (before.size() <= 80 && !trimmed(before).empty()) source.foreign_prefix = before;
  if (const auto told = rest_after(line.body.substr(at), "(RANK ")) source.told_rank = rank_at(*told);
  if (!line.rank_is_task) source.writer = line.rank;
  source.in_traceback = true;
  source.last_was_indented = false;
}

// True where the line opens a traceback, or says how the next belongs to the last.
bool read_traceback_start(const LogLine& line, ProcessSource& source) {
  const std::string_view body = line.body;
  if (contains(body, "During handling of the above") || contains(body, "direct cause of the following")) {
    source.chained = source.exception.has_value();
    return true;
  }
  if (contains(body, "xception ignored in")) {
    source.ignore_traceback = true;
    return true;
  }
  const std::size_t at = body.find("Traceback (most recent call last)");
  if (at == std::string_view::npos) return false;
  open_traceback(line, at, source);
  return true;
}

// An exception's line without its traceback (cut off, or printed by a launcher).
bool read_bare_exception(const LogLine& line, ProcessSource& source, LogEventWriter& events) {
  const std::string_view exception = exception_name(line.body);
  if (exception.empty() || exception.size() == line.body.size() || exception.starts_with("nccl")) return false;
  if (!exception.ends_with("Error") && !exception.ends_with("Exception")) return false;
  if (!names_an_error(exception)) return false;
  add_exception(line, source, events);
  return true;
}

// ---- aborts and fatal errors ----------------------------------------------------------------------------------------

// "terminate called after throwing an instance of 'c10::DistBackendError'", then "  what():  ...".
bool read_terminate(const LogLine& line, ProcessSource& source, LogEventWriter& events) {
  const std::string_view body = line.body;
  if (const auto what = rest_after(body, "what():")) {
    if (!source.abort) return false;
    auto& end = std::get<ProcessEnd>(events.at(*source.abort).fact);
    if (!trimmed(*what).empty()) end.what = printable(end.what + ": " + std::string(trimmed(*what)), kMaxWhat);
    end.secondary = end.secondary || is_secondary(*what);
    source.collective_failed = source.collective_failed || end.secondary;
    source.abort.reset();
    return true;
  }
  if (!contains(body, "terminate called")) return false;
  ProcessEnd end;
  end.kind = ProcessEnd::Kind::abort;
  end.signal = 6;
  end.what = "terminate called";
  if (const auto type = rest_after(body, "instance of '")) end.what = printable(until(*type, "'"), kMaxWhat);
  end.secondary = source.collective_failed || is_secondary(end.what);
  source.collective_failed = source.collective_failed || end.secondary;
  source.abort = events.size();
  if (events.add(line, std::move(end)) == nullptr) source.abort.reset();
  return true;
}

// "Fatal Python error: Segmentation fault", then "Current thread 0x.. (most recent call first):" and its frames.
bool read_fatal(const LogLine& line, ProcessSource& source, LogEventWriter& events) {
  const auto text = rest_after(line.body, "Fatal Python error: ");
  if (!text) return false;
  ProcessEnd end;
  end.what = printable(trimmed(*text), kMaxWhat);
  end.signal = signal_of(*text);
  end.kind = end.signal && *end.signal != 6 ? ProcessEnd::Kind::signal : ProcessEnd::Kind::abort;
  end.secondary = end.kind == ProcessEnd::Kind::abort && source.collective_failed;
  source.fatal = events.size();
  source.traceback_lines = 0;
  if (events.add(line, std::move(end)) == nullptr) source.fatal.reset();
  return true;
}

// The frames behind a fatal error, innermost first: the first of the user's is the place.
void continue_fatal(const LogLine& line, ProcessSource& source, LogEventWriter& events) {
  if (++source.traceback_lines > kMaxTracebackLines || contains(line.body, "Extension modules:")) {
    source.fatal.reset();
    return;
  }
  std::string frame = user_frame(line.body);
  if (frame.empty()) return;
  std::get<ProcessEnd>(events.at(*source.fatal).fact).call_site = std::move(frame);
  source.fatal.reset();
}

bool read_new(const LogLine& line, ProcessSource& source, ProcessState& state, LogEventWriter& events) {
  if (const auto child = number_after(line.body, "-- Process ");
      child && contains(line.body, "terminated with the following error")) {
    source.child = child;
    return true;
  }
  return read_traceback_start(line, source) || read_terminate(line, source, events) ||
         read_fatal(line, source, events) || read_elastic_line(line, source, events) ||
         read_exit_line(line, source, state, events) || read_bare_exception(line, source, events);
}

}  // namespace

bool is_secondary(std::string_view exception) {
  // A port that is taken is this process's own trouble, whatever the class of the exception.
  if (contains(exception, "ddress already in use") || contains(exception, "EADDRINUSE")) return false;
  // NCCL passes on an error of this rank's own device.
  if (contains(exception, "unhandled cuda error")) return false;
  static constexpr std::string_view kFragments[] = {"DistBackendError",
                                                    "DistNetworkError",
                                                    "DistStoreError",
                                                    "ChildFailedError",
                                                    "SignalException",
                                                    "ActorDiedError",
                                                    "RayActorError",
                                                    "EngineDeadError",
                                                    "ProcessExitedException",
                                                    "KeyboardInterrupt",
                                                    "gloo::",
                                                    "Connection closed by",
                                                    "onnection reset by peer",
                                                    "onnection refused",
                                                    "ConnectionResetError",
                                                    "ConnectionRefusedError",
                                                    "ConnectionAbortedError",
                                                    "BrokenPipeError",
                                                    "Broken pipe",
                                                    "Timed out waiting",
                                                    "Timed out initializing process group",
                                                    "NCCL error",
                                                    "NCCL Error",
                                                    "ncclRemoteError",
                                                    "ncclInternalError",
                                                    "ncclSystemError",
                                                    "Socket Timeout",
                                                    "wait timeout after",
                                                    "pair closure",
                                                    "collective operation timeout",
                                                    "watchdog",
                                                    "monitoredBarrier",
                                                    "mismatch between collectives",
                                                    "RendezvousTimeoutError",
                                                    "RendezvousClosedError",
                                                    "RendezvousConnectionError",
                                                    "host not found",
                                                    "failure in name resolution"};
  return std::any_of(std::begin(kFragments), std::end(kFragments),
                     [&](std::string_view fragment) { return contains(exception, fragment); });
}

bool is_library(std::string_view file) {
  static constexpr std::string_view kFragments[] = {"site-packages/", "dist-packages/", "/torch/",
                                                    "/lib/python3",   "lib64/python3",  "bin/torchrun",
                                                    "bin/accelerate", "bin/deepspeed",  "<frozen "};
  if (file.starts_with("torch/") || file.starts_with("<")) return true;
  return std::any_of(std::begin(kFragments), std::end(kFragments),
                     [&](std::string_view fragment) { return contains(file, fragment); });
}

void note_collective_failure(const LogLine& line, ProcessState& state) {
  source_of(line, state).collective_failed = true;
}

void read_process_line(const LogLine& line, bool interesting, ProcessState& state, LogEventWriter& events) {
  if (!interesting && !state.sources.contains(line.source)) return;
  ProcessSource& source = source_of(line, state);
  const bool was_open = source.open();
  const bool starts = interesting && contains(line.body, "Traceback (most recent call last)");
  const bool done = source.in_traceback && !starts && continue_traceback(line, source, events);
  if (!done && source.table != ProcessSource::Table::none) continue_elastic_table(line, source, events);
  if (!done && source.mpi_rank) continue_mpi_exit(line, source, events);
  if (!done && source.fatal) continue_fatal(line, source, events);
  if (!done && interesting) read_new(line, source, state, events);
  if (was_open && !source.open()) --state.open;
  if (!was_open && source.open()) ++state.open;
}

void finish_processes(ProcessState& state, LogEventWriter& events) {
  for (auto& [key, source] : state.sources) finish_elastic_table(source, events);
}

}  // namespace ddx::formats
