#include "traces/formats/exit_log.h"

#include <array>

#include "traces/formats/log_scan.h"

namespace ddx::formats {
namespace {

constexpr std::size_t kMaxWhat = 300;
// What one "tasks 0-1023: Killed" may name.
constexpr std::size_t kMaxTasks = 65'536;

struct SignalName {
  std::string_view name;
  std::int64_t number;
};
constexpr std::array kSignals{
    SignalName{"Segmentation fault", 11},
    SignalName{"Segmentation Violation", 11},
    SignalName{"SIGSEGV", 11},
    SignalName{"Bus error", 7},
    SignalName{"SIGBUS", 7},
    SignalName{"Aborted", 6},
    SignalName{"SIGABRT", 6},
    SignalName{"Floating point exception", 8},
    SignalName{"Illegal instruction", 4},
    SignalName{"Killed", 9},
    SignalName{"SIGKILL", 9},
    SignalName{"Terminated", 15},
    SignalName{"SIGTERM", 15},
};

ProcessEnd signal_end(std::int64_t signal, std::string_view what) {
  ProcessEnd end;
  end.kind = signal == 6 ? ProcessEnd::Kind::abort : ProcessEnd::Kind::signal;
  end.what = printable(trimmed(what), kMaxWhat);
  end.signal = signal;
  // Launchers send SIGTERM to the others when one has failed.
  end.secondary = signal == 15;
  return end;
}

ProcessEnd code_end(std::int64_t code) {
  ProcessEnd end;
  end.kind = ProcessEnd::Kind::exit_code;
  end.what = "exit code " + std::to_string(code);
  end.exit_code = code;
  // A shell's way to say "killed by signal code - 128".
  if (code > 128 && code < 128 + 65) end.signal = code - 128;
  if (code < 0 && code > -65) end.signal = -code;
  return end;
}

// How srun words an end: "Killed", "Exited with exit code 1", "Out Of Memory", "Segmentation fault (core dumped)".
std::optional<ProcessEnd> srun_end(std::string_view text) {
  if (const auto code = number_after(text, "Exited with exit code ")) {
    return *code == 0 ? std::nullopt : std::optional(code_end(*code));
  }
  if (contains(text, "Out Of Memory")) {
    ProcessEnd end;
    end.kind = ProcessEnd::Kind::oom_kill;
    end.what = "Out Of Memory";
    end.signal = 9;
    return end;
  }
  const auto signal = signal_of(text);
  return signal ? std::optional(signal_end(*signal, until(text, "("))) : std::nullopt;
}

// "srun: error: node-a: task 3: Killed", "srun: error: node-a: tasks 1-3: Out Of Memory"
bool read_srun(const LogLine& line, LogEventWriter& events) {
  const auto text = rest_after(line.body, "srun: error: ");
  if (!text) return false;
  const std::size_t colon = text->find(": task");
  if (colon == std::string_view::npos) return false;
  const std::string_view host = text->substr(0, colon);
  std::string_view rest = text->substr(colon + 6);
  if (rest.starts_with("s")) rest.remove_prefix(1);
  rest = trimmed(rest);
  const std::string_view list = until(rest, ":");
  const auto tasks = RankSet::parse(list, kMaxTasks);
  if (!tasks || list.size() >= rest.size()) return false;
  const auto end = srun_end(rest.substr(list.size() + 1));
  if (!end) return true;
  LogLine told = line;
  told.host = host;
  for (RankId task : *tasks) {
    LogEvent* event = events.add(told, *end);
    if (event == nullptr) break;
    event->rank = task;
  }
  return true;
}

// "mpirun noticed that process rank 2 with PID 812 on node node-a exited on signal 9 (Killed)."
bool read_mpirun(const LogLine& line, ProcessSource& source, LogEventWriter& events) {
  const std::string_view body = line.body;
  if (const auto name = rest_after(body, "Process name: [[")) {
    const std::size_t close = name->find("],");
    if (close == std::string_view::npos) return false;
    source.mpi_rank = rank_from(number_at(name->substr(close + 2)));
    source.traceback_lines = 0;
    return true;
  }
  const auto signal = number_after(body, "exited on signal ");
  const auto rank = rank_from(number_after(body, "process rank "));
  if (!signal || !rank) return false;
  const auto name = rest_after(body.substr(body.find("exited on signal ")), "(");
  LogLine told = line;
  if (const auto host = rest_after(body, " on node ")) told.host = word_at(*host);
  told.pid = number_after(body, "with PID ");
  if (told.pid == 0) told.pid.reset();
  const std::string what = name ? std::string(until(*name, ")")) : "signal " + std::to_string(*signal);
  if (LogEvent* event = events.add(told, signal_end(*signal, what))) event->rank = rank;
  return true;
}

// "[node-a:07215] Signal: Segmentation fault (11)" of Open MPI, "Caught signal 11 (Segmentation fault: ...)" of UCX,
// "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)" of MPICH.
bool read_caught_signal(const LogLine& line, LogEventWriter& events) {
  const std::string_view body = line.body;
  LogLine told = line;
  std::optional<std::int64_t> signal;
  std::string_view what;
  if (const auto text = rest_after(body, "] Signal: ")) {
    what = until(*text, "(");
    signal = number_after(*text, "(");
  } else if (const auto caught = rest_after(body, "aught signal ")) {
    signal = number_at(*caught);
    if (const auto name = rest_after(*caught, "(")) what = until(*name, ":)");
  } else if (const auto exit = rest_after(body, "EXIT STRING: ")) {
    signal = number_after(*exit, "(signal ");
    what = until(*exit, "(");
  }
  if (!signal || *signal < 1 || *signal > 64) return false;
  // Both begin with "[host:pid" and, in UCX's case, more.
  if (body.starts_with("[")) {
    const std::string_view inside = until(body.substr(1), "]");
    const std::size_t colon = inside.find(':');
    if (colon != std::string_view::npos) {
      told.host = inside.substr(0, colon);
      told.pid = number_at(inside.substr(colon + 1));
    }
  }
  if (what.empty()) what = "killed by a signal";
  events.add(told, signal_end(*signal, what));
  return true;
}

// "Out of memory: Killed process 4711 (python)", "oom-kill:...,task=python,pid=4711,uid=0", "Detected 1 oom_kill
// event".
bool read_oom(const LogLine& line, ProcessState& state, LogEventWriter& events) {
  const std::string_view body = line.body;
  const bool kernel = contains(body, "ut of memory: Kill") || contains(body, "oom-kill:constraint");
  const bool slurm = contains(body, "oom_kill event") || contains(body, "oom-kill event");
  const bool kubernetes = contains(body, "OOMKilled");
  if (!kernel && !slurm && !kubernetes) return false;
  LogLine told = line;
  auto pid = number_after(body, "illed process ");
  if (!pid) pid = number_after(body, "Kill process ");
  if (!pid) pid = number_after(body, ",pid=");
  if (pid) {
    if (!state.oom_killed.emplace(*pid, line.number).second) return true;
    told.pid = pid;
  }
  ProcessEnd end;
  end.kind = ProcessEnd::Kind::oom_kill;
  end.signal = 9;
  end.what = kernel  ? "Out of memory: killed by the kernel"
             : slurm ? "Out of memory: killed in the job step's cgroup"
                     : "OOMKilled";
  events.add(told, std::move(end));
  return true;
}

// A shell's word: "Killed", "Segmentation fault (core dumped)", "run.sh: line 28:  8156 Killed    python train.py".
bool read_shell(const LogLine& line, ProcessSource& source, LogEventWriter& events) {
  std::string_view text = trimmed(line.body);
  LogLine told = line;
  if (const auto numbered = rest_after(text, ": line ")) {
    const std::size_t colon = numbered->find(':');
    if (colon == std::string_view::npos || colon > 8) return false;
    text = trimmed(numbered->substr(colon + 1));
    if (const auto pid = number_at(text)) {
      told.pid = pid;
      next_word(text);
      text = trimmed(text);
    }
  } else {
    std::string_view whole = text;
    if (whole.ends_with("(core dumped)")) whole = trimmed(whole.substr(0, whole.size() - 13));
    bool known = false;
    for (const SignalName& signal : kSignals) known = known || signal.name == whole;
    if (!known) return false;
  }
  for (const SignalName& signal : kSignals) {
    if (!text.starts_with(signal.name)) continue;
    ProcessEnd end = signal_end(signal.number, signal.name);
    end.secondary = end.secondary || (signal.number == 6 && source.collective_failed);
    events.add(told, std::move(end));
    return true;
  }
  return false;
}

// "Process 3 exit with status code 137."
bool read_status_code(const LogLine& line, LogEventWriter& events) {
  const auto code = number_after(line.body, "exit with status code ");
  const auto rank = rank_from(number_after(line.body, "Process "));
  if (!code || !rank) return false;
  if (*code == 0) return true;
  if (LogEvent* event = events.add(line, code_end(*code))) event->rank = rank;
  return true;
}

}  // namespace

std::optional<std::int64_t> signal_of(std::string_view text) {
  std::optional<std::int64_t> signal;
  std::size_t first = std::string_view::npos;
  for (const SignalName& known : kSignals) {
    const std::size_t at = text.find(known.name);
    if (at >= first) continue;
    first = at;
    signal = known.number;
  }
  return signal;
}

void continue_mpi_exit(const LogLine& line, ProcessSource& source, LogEventWriter& events) {
  const auto code = number_after(line.body, "Exit code:");
  if (code && *code != 0) {
    if (LogEvent* event = events.add(line, code_end(*code))) event->rank = source.mpi_rank;
  }
  if (code || ++source.traceback_lines > 4) source.mpi_rank.reset();
}

bool read_exit_line(const LogLine& line, ProcessSource& source, ProcessState& state, LogEventWriter& events) {
  return read_srun(line, events) || read_mpirun(line, source, events) || read_oom(line, state, events) ||
         read_caught_signal(line, events) || read_status_code(line, events) || read_shell(line, source, events);
}

}  // namespace ddx::formats
