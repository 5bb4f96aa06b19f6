#include "traces/formats/worker_log.h"

#include <optional>
#include <utility>

#include "traces/formats/exit_log.h"
#include "traces/formats/log_scan.h"
#include "traces/formats/process_log.h"

namespace ddx::formats {
namespace {

constexpr std::size_t kMaxWhat = 300;
constexpr std::size_t kMaxActors = 4'096;
constexpr unsigned kMaxActorLines = 12;

ProcessEnd end_by(ProcessEnd::Kind kind, std::string_view what) {
  ProcessEnd end;
  end.kind = kind;
  end.what = printable(trimmed(what), kMaxWhat);
  return end;
}

// Negative codes are signals, as Python's subprocess says.
ProcessEnd end_by_code(std::int64_t code) {
  if (code < 0 && code > -65) {
    ProcessEnd end = end_by(ProcessEnd::Kind::signal, "killed by signal " + std::to_string(-code));
    end.signal = -code;
    end.secondary = code == -15;
    return end;
  }
  ProcessEnd end = end_by(ProcessEnd::Kind::exit_code, "exit code " + std::to_string(code));
  end.exit_code = code;
  return end;
}

// The error of its own device that a rank's watchdog met: not a time-out, nor a peer's end.
bool of_its_own_device(std::string_view text) {
  return contains(text, "CUDA error") || contains(text, "HIP error") || contains(text, "uda failure") ||
         contains(text, "unhandled cuda error") || contains(text, "out of memory");
}

// "[PG 0 (default_pg) Rank 3] Process group watchdog thread terminated with exception: CUDA error: ..."
bool read_watchdog_end(const LogLine& line, LogEventWriter& events) {
  const auto text = rest_after(line.body, "watchdog thread terminated with exception: ");
  // The abort that follows quotes it.
  if (!text || contains(line.body, "what():") || contains(*text, "Watchdog caught")) return false;
  ProcessEnd end = end_by(ProcessEnd::Kind::exception, *text);
  end.secondary = !of_its_own_device(*text);
  events.add(line, std::move(end));
  return true;
}

// "(raylet) A worker died or was killed while executing a task by an unexpected system error. ... Worker IP address:
// 192.0.2.5 ... Worker PID: 87687 Worker exit type: SYSTEM_ERROR Worker exit detail: ..."
bool read_raylet(const LogLine& line, LogEventWriter& events) {
  const auto type = rest_after(line.body, "Worker exit type: ");
  const auto pid = number_after(line.body, "Worker PID: ");
  if (!type || !pid) return false;
  const std::string_view kind = word_at(*type);
  if (kind.starts_with("INTENDED")) return true;
  const bool memory = contains(kind, "OUT_OF_MEMORY");
  ProcessEnd end = end_by(memory ? ProcessEnd::Kind::oom_kill : ProcessEnd::Kind::signal,
                          "Ray lost this worker (" + std::string(kind) + ")");
  if (memory) end.signal = 9;
  LogLine told = line;
  told.rank.reset();
  told.pid = pid;
  if (const auto ip = rest_after(line.body, "Worker IP address: ")) told.host = word_at(*ip);
  events.add(told, std::move(end));
  return true;
}

// "(raylet) 1 Workers (tasks / actors) killed due to memory pressure (OOM), ... at node (ID: .., IP: 192.0.2.5) ..."
bool read_memory_pressure(const LogLine& line, LogEventWriter& events) {
  if (!contains(line.body, "killed due to memory pressure (OOM)")) return false;
  ProcessEnd end = end_by(ProcessEnd::Kind::oom_kill, "Ray killed workers for memory");
  end.signal = 9;
  LogLine told = line;
  told.rank.reset();
  told.pid.reset();
  if (const auto ip = rest_after(line.body, "IP: ")) told.host = until(*ip, "), ");
  events.add(told, std::move(end));
  return true;
}

// "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.", then "pid: 87687".
bool read_actor(const LogLine& line, WorkerState& state, LogEventWriter& events) {
  if (!contains(line.body, "ActorDiedError: ") && !contains(line.body, "RayActorError: ")) return false;
  LogLine told = line;
  told.rank.reset();
  told.pid.reset();
  const std::size_t index = events.size();
  if (events.add(told, end_by(ProcessEnd::Kind::signal, "a Ray actor died")) == nullptr) return true;
  if (state.actors.size() < kMaxActors) state.actors[line.source] = {index, 0};
  return true;
}

bool continue_actor(const LogLine& line, WorkerState& state, LogEventWriter& events) {
  const auto open = state.actors.find(line.source);
  if (open == state.actors.end()) return false;
  const std::string_view text = trimmed(line.body);
  if (++open->second.lines > kMaxActorLines || text == line.body) {
    state.actors.erase(open);
    return false;
  }
  LogEvent& event = events.at(open->second.event);
  if (text.starts_with("pid: ")) event.pid = number_at(text.substr(5));
  if (text.starts_with("ip: ")) event.host = printable(text.substr(4), 255);
  return true;
}

// "Worker proc VllmWorker-2 died unexpectedly", "RayWorkerProc rank=[3] died unexpectedly", "Rank 3 scheduler is dead."
bool read_engine(const LogLine& line, LogEventWriter& events) {
  const std::string_view body = line.body;
  std::optional<RankId> rank;
  if (contains(body, "died unexpectedly")) {
    auto text = rest_after(body, "Worker proc VllmWorker-");
    if (!text) text = rest_after(body, "RayWorkerProc rank=[");
    if (text) rank = rank_at(*text);
  } else if (contains(body, " scheduler is dead")) {
    if (const auto text = rest_after(body, "Rank ")) rank = rank_at(*text);
  }
  if (!rank) return false;
  LogLine told = line;
  told.pid.reset();  // of the engine, which tells it
  LogEvent* event = events.add(told, end_by(ProcessEnd::Kind::signal, "its engine found it dead"));
  if (event != nullptr) event->rank = rank;
  return true;
}

// DeepSpeed: "['/usr/bin/python', 'train.py', '--local_rank=3'] exits with return code = -9"; Lightning: "[rank: 3]
// Child process with PID 4711 terminated with code -9. Forcefully terminating all other processes";
// torch.multiprocessing: "process 3 terminated with signal SIGKILL".
bool read_child(const LogLine& line, LogEventWriter& events) {
  const std::string_view body = line.body;
  LogLine told = line;
  std::optional<std::int64_t> code = number_after(body, "exits with return code = ");
  if (code) {
    told.local_rank = number_after(body, "--local_rank=");
  } else if (const auto child = rest_after(body, "Child process with PID ")) {
    told.pid = number_at(*child);
    code = number_after(*child, "terminated with code ");
  } else if (const auto process = rest_after(body, "ProcessExitedException: process ")) {
    told.local_rank = number_at(*process);
    code = number_after(*process, "terminated with exit code ");
    const auto name = rest_after(*process, "terminated with signal ");
    if (const auto signal = name ? signal_of(*name) : std::nullopt) code = -*signal;
  }
  if (!code) return false;
  if (*code == 0) return true;
  events.add(told, end_by_code(*code));
  return true;
}

// "srun: error: Node failure on node-c"
bool read_node_failure(const LogLine& line, LogEventWriter& events) {
  const auto node = rest_after(line.body, "error: Node failure on ");
  if (!node) return false;
  LogLine told = line;
  told.rank.reset();
  told.host = until(word_at(*node), ",");
  events.add(told, end_by(ProcessEnd::Kind::signal, "its node failed, as Slurm says"));
  return true;
}

// SGLang: "[2026-09-01 10:00:00 TP3] Watchdog timeout (self.watchdog_timeout=300)": a step that does not end.
bool read_step_timeout(const LogLine& line, LogEventWriter& events) {
  const auto seconds = number_after(line.body, "Watchdog timeout (self.watchdog_timeout=");
  if (!seconds || *seconds < 0 || *seconds > 1'000'000) return false;
  events.add(line, HeartbeatStuck{*seconds * kSecond});
  return true;
}

}  // namespace

bool read_worker_line(const LogLine& line, bool interesting, WorkerState& state, LogEventWriter& events) {
  if (!state.actors.empty() && continue_actor(line, state, events)) return true;
  if (!interesting) return false;
  return read_watchdog_end(line, events) || read_raylet(line, events) || read_memory_pressure(line, events) ||
         read_actor(line, state, events) || read_engine(line, events) || read_child(line, events) ||
         read_node_failure(line, events) || read_step_timeout(line, events);
}

}  // namespace ddx::formats
