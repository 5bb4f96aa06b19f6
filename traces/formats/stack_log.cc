#include "traces/formats/stack_log.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "traces/formats/log_scan.h"
#include "traces/formats/process_log.h"

namespace ddx::formats {
namespace {

using Kind = StackSource::Kind;

constexpr std::size_t kMaxFrames = 32;
constexpr std::size_t kMaxFrameText = 200;
constexpr std::size_t kMaxSources = 1U << 16;
constexpr unsigned kMaxStrangeLines = 8;
constexpr unsigned kMaxTracebackLines = 600;

struct StackFrame {
  std::string_view file;
  std::optional<std::int64_t> line;
  std::string_view function;
};

std::size_t indentation(std::string_view body) { return std::min(body.find_first_not_of(" \t"), body.size()); }

// `  File "train.py", line 12 in step` of faulthandler; `  File "train.py", line 12, in step` of a traceback.
std::optional<StackFrame> python_frame(std::string_view body, std::string_view before_function) {
  body = trimmed(body);
  if (!body.starts_with("File \"")) return std::nullopt;
  body.remove_prefix(6);
  const std::size_t end = body.find("\", line ");
  if (end == std::string_view::npos) return std::nullopt;
  StackFrame frame{body.substr(0, end), number_at(body.substr(end + 8)), {}};
  body.remove_prefix(end + 8);
  const std::size_t number = std::min(body.find_first_of(" ,"), body.size());
  body.remove_prefix(number);
  if (!body.starts_with(before_function)) return std::nullopt;
  frame.function = body.substr(before_function.size());
  return frame;
}

// `    recv (torch/distributed/distributed_c10d.py:2420)`; native frames have no line.
std::optional<StackFrame> py_spy_frame(std::string_view body) {
  const std::size_t indent = indentation(body);
  // Deeper are the values that --locals shows.
  if (indent == 0 || indent > 6) return std::nullopt;
  body = trimmed(body);
  const std::size_t open = body.rfind(" (");
  if (open == std::string_view::npos || open == 0 || !body.ends_with(")")) return std::nullopt;
  StackFrame frame{body.substr(open + 2, body.size() - open - 3), std::nullopt, body.substr(0, open)};
  const std::size_t colon = frame.file.rfind(':');
  if (colon != std::string_view::npos) {
    frame.line = number_at(frame.file.substr(colon + 1));
    if (frame.line) frame.file = frame.file.substr(0, colon);
  }
  if (frame.file.empty()) return std::nullopt;
  return frame;
}

std::string frame_text(const StackFrame& frame) {
  std::string text(frame.file.substr(0, kMaxFrameText));
  if (frame.line && *frame.line >= 0) text += ":" + std::to_string(*frame.line);
  text += " in " + std::string(frame.function.substr(0, kMaxFrameText));
  return printable(text, kMaxFrameText);
}

// py-spy shortens a file to its place below sys.path: of Python's own modules only these are waited in.
bool is_python_module(std::string_view file) {
  static constexpr std::string_view kFiles[] = {"threading.py", "queue.py", "selectors.py",  "socket.py",
                                                "ssl.py",       "runpy.py", "contextlib.py", "subprocess.py"};
  static constexpr std::string_view kFolders[] = {"concurrent/", "multiprocessing/", "asyncio/", "importlib/"};
  return std::find(std::begin(kFiles), std::end(kFiles), file) != std::end(kFiles) ||
         std::any_of(std::begin(kFolders), std::end(kFolders), [&](auto folder) { return file.starts_with(folder); });
}

// Code that is not Python's: libtorch, the C library.
bool is_native(const StackFrame& frame) {
  return !frame.file.ends_with(".py") && (!frame.line || contains(frame.file, ".so") || contains(frame.file, ".c"));
}

bool holds_collectives(std::string_view file) {
  static constexpr std::string_view kFiles[] = {"torch/distributed/distributed_c10d.py",
                                                "torch/distributed/_functional_collectives.py",
                                                "torch/distributed/nn/functional.py"};
  return std::any_of(std::begin(kFiles), std::end(kFiles), [&](auto known) { return file.ends_with(known); });
}

bool timed_out(std::string_view exception) {
  return contains(exception, "Timed out waiting ") && contains(exception, "operation to complete");
}

bool begins_as_program(const OpenThread& thread) {
  return thread.outermost == "<module>" || thread.outermost == "_run_module_as_main";
}

OpenThread thread_at(const LogLine& line) {
  OpenThread thread;
  thread.header = line;
  thread.host = std::string(line.host);
  thread.text = std::string(line.body.substr(0, LogEventWriter::kMaxText));
  return thread;
}

void take_call_site(const StackFrame& frame, const LogLine& line, OpenThread& thread) {
  thread.stack.call_site = frame_text(frame);
  thread.text = std::string(trimmed(line.body).substr(0, LogEventWriter::kMaxText));
  thread.header.number = line.number;
}

void take_outermost(const StackFrame& frame, OpenThread& thread) {
  thread.outermost = printable(frame.function, kMaxFrameText);
  // Only a thread that is not the main one begins there.
  thread.begins_as_thread = frame.file == "threading.py" || frame.file.ends_with("/threading.py");
}

// Frames come innermost first.
void add_frame(const StackFrame& frame, const LogLine& line, OpenThread& thread) {
  HostStack& stack = thread.stack;
  if (stack.frames.size() < kMaxFrames) stack.frames.push_back(frame_text(frame));
  take_outermost(frame, thread);
  if (!stack.call_site.empty() || is_native(frame)) return;
  // What the user's own code inside a call of torch.distributed does (an object being pickled) is not the call's wait.
  if (stack.distributed_call.empty() && holds_collectives(frame.file)) {
    stack.distributed_call = thread.outermost;
  }
  if (!is_library(frame.file) && !is_python_module(frame.file)) take_call_site(frame, line, thread);
}

// A traceback's frames come outermost first: what is inner replaces what was read before.
void add_inner_frame(const StackFrame& frame, const LogLine& line, OpenThread& thread) {
  HostStack& stack = thread.stack;
  if (stack.frames.size() == kMaxFrames) stack.frames.erase(stack.frames.begin());
  stack.frames.push_back(frame_text(frame));
  if (thread.outermost.empty()) take_outermost(frame, thread);
  if (holds_collectives(frame.file)) stack.distributed_call = printable(frame.function, kMaxFrameText);
  if (is_library(frame.file)) return;
  stack.distributed_call.clear();
  take_call_site(frame, line, thread);
}

void write(OpenThread& thread, LogEventWriter& events) {
  if (thread.stack.frames.empty()) return;
  if (!thread.stack.main_thread && thread.stack.distributed_call.empty()) return;
  LogLine line = thread.header;
  line.body = thread.text;
  line.host = thread.host;
  events.add(line, std::move(thread.stack));
}

// The thread is over. `last`: so is its dump; the main thread is the last one in it, unless the dump was cut.
void close_thread(StackSource& source, bool last, LogEventWriter& events) {
  if (!source.thread) return;
  OpenThread thread = *std::exchange(source.thread, std::nullopt);
  // A traceback that another stack cuts off says nothing.
  if (source.kind == Kind::traceback || (source.kind == Kind::py_spy && source.of_child)) return;
  if (source.kind == Kind::faulthandler) {
    thread.stack.main_thread = begins_as_program(thread) || (last && !thread.begins_as_thread);
  }
  // Where py-spy had no names, as of others' programs.
  if (source.kind == Kind::py_spy && begins_as_program(thread)) thread.stack.main_thread = true;
  write(thread, events);
}

void close_dump(StackSource& source, LogEventWriter& events) {
  close_thread(source, true, events);
  source.kind = Kind::none;
  source.strange_lines = 0;
}

// ---- headers --------------------------------------------------------------------------------------------------------

bool is_faulthandler_header(std::string_view body) {
  if (!contains(body, "(most recent call first)")) return false;
  return body.starts_with("Thread 0x") || body.starts_with("Current thread 0x") || body.starts_with("Stack (most");
}

struct PySpyHeader {
  std::optional<std::int64_t> id;
  bool main_thread = false;
};

// `Thread 4711 (idle): "MainThread"`, `Thread 0x7F01 (active+gil)`.
std::optional<PySpyHeader> py_spy_header(std::string_view body) {
  if (!body.starts_with("Thread ")) return std::nullopt;
  body.remove_prefix(7);
  PySpyHeader header;
  const std::string_view id = next_word(body);
  if (id.empty() || !is_digit(id.front())) return std::nullopt;
  if (!id.starts_with("0x") && !id.starts_with("0X")) header.id = number_at(id);
  const std::string_view status = next_word(body);
  if (!status.starts_with("(idle") && !status.starts_with("(active")) return std::nullopt;
  header.main_thread = trimmed(body) == "\"MainThread\"";
  return header;
}

// "Process 4711: python train.py" begins the dump of a process; "Parent Process" stands in those of its children.
// Other programs write such lines too.
void note_py_spy_process(const LogLine& line, StackSource& source, LogEventWriter& events) {
  if (line.body.starts_with("Parent Process ")) source.of_child = true;
  if (!line.body.starts_with("Process ")) return;
  const auto pid = number_after(line.body, "Process ");
  if (!pid || !contains(line.body.substr(0, 32), ": ")) return;
  if (source.kind == Kind::py_spy) close_dump(source, events);
  source.pid = pid;
  source.of_child = false;
}

bool read_header(const LogLine& line, StackSource& source, LogEventWriter& events) {
  if (is_faulthandler_header(line.body)) {
    if (source.kind == Kind::fatal) return false;
    const bool goes_on = source.kind == Kind::faulthandler && !line.body.starts_with("Stack");
    close_thread(source, !goes_on, events);
    source.kind = Kind::faulthandler;
    source.thread = thread_at(line);
    source.strange_lines = 0;
    return true;
  }
  if (const auto header = py_spy_header(line.body)) {
    close_thread(source, source.kind != Kind::py_spy, events);
    source.kind = Kind::py_spy;
    source.thread = thread_at(line);
    source.thread->stack.main_thread = header->main_thread;
    // On Linux the main thread's id is that of its process.
    if (!line.pid)
      source.thread->header.pid = source.pid ? source.pid : header->main_thread ? header->id : std::nullopt;
    return true;
  }
  return false;
}

enum class Start { none, stack, shared };  // shared: others read the line too

Start read_start(const LogLine& line, StackSource& source, LogEventWriter& events) {
  if (read_header(line, source, events)) return Start::stack;
  note_py_spy_process(line, source, events);
  const bool traceback = contains(line.body, "Traceback (most recent call last)");
  const bool fatal = contains(line.body, "Fatal Python error: ");
  if (!traceback && !fatal) return Start::none;
  close_dump(source, events);
  source.kind = fatal ? Kind::fatal : Kind::traceback;
  source.lines = 0;
  if (traceback) source.thread = thread_at(line);
  return Start::shared;
}

// ---- lines of what is open ------------------------------------------------------------------------------------------

bool continue_faulthandler(const LogLine& line, StackSource& source, LogEventWriter& events) {
  const auto frame = python_frame(line.body, " in ");
  if (frame && source.thread) add_frame(*frame, line, *source.thread);
  const std::string_view text = trimmed(line.body);
  if (frame || text.empty() || text == "..." || text == "<no Python frame>") {
    source.strange_lines = 0;
    return true;
  }
  if (++source.strange_lines > kMaxStrangeLines) close_dump(source, events);
  return false;
}

bool continue_py_spy(const LogLine& line, StackSource& source, LogEventWriter& events) {
  if (const auto frame = py_spy_frame(line.body)) {
    if (source.thread) add_frame(*frame, line, *source.thread);
    return true;
  }
  if (trimmed(line.body).empty() || indentation(line.body) > 6) return true;
  close_dump(source, events);
  return false;
}

void end_traceback(const LogLine& line, StackSource& source, LogEventWriter& events) {
  source.kind = Kind::none;
  if (!source.thread) return;
  OpenThread thread = *std::exchange(source.thread, std::nullopt);
  if (!timed_out(line.body) || thread.stack.distributed_call.empty()) return;
  std::reverse(thread.stack.frames.begin(), thread.stack.frames.end());
  thread.stack.main_thread = !thread.begins_as_thread;
  thread.stack.timed_out = true;
  write(thread, events);
}

void continue_traceback(const LogLine& line, StackSource& source, LogEventWriter& events) {
  if (++source.lines > kMaxTracebackLines) {
    source.thread.reset();
    source.kind = Kind::none;
    return;
  }
  if (const auto frame = python_frame(line.body, ", in ")) {
    add_inner_frame(*frame, line, *source.thread);
  } else if (!trimmed(line.body).empty() && indentation(line.body) == 0) {
    end_traceback(line, source, events);
  }
}

// The threads behind a fatal error end with the first line that is neither a frame, a header nor empty.
void continue_fatal(const LogLine& line, StackSource& source) {
  const std::string_view text = trimmed(line.body);
  const bool part = text.empty() || indentation(line.body) > 0 || contains(text, "(most recent call first)") ||
                    text.starts_with("Python runtime state");
  if (!part) source.kind = Kind::none;
}

bool continue_open(const LogLine& line, StackSource& source, LogEventWriter& events) {
  switch (source.kind) {
    case Kind::faulthandler: return continue_faulthandler(line, source, events);
    case Kind::py_spy: return continue_py_spy(line, source, events);
    case Kind::traceback: continue_traceback(line, source, events); return false;
    case Kind::fatal: continue_fatal(line, source); return false;
    case Kind::none: return false;
  }
  return false;
}

}  // namespace

bool is_stack_header(std::string_view body) { return is_faulthandler_header(body) || py_spy_header(body).has_value(); }

bool read_stack_line(const LogLine& line, bool interesting, StackState& state, LogEventWriter& events) {
  auto at = state.sources.find(line.source);
  if (at == state.sources.end()) {
    if (!interesting) return false;
    // A hostile file has as many prefixes as lines; then they share one.
    at = state.sources.try_emplace(state.sources.size() < kMaxSources ? line.source : 0).first;
  }
  StackSource& source = at->second;
  const bool was_open = source.open();
  const Start start = interesting ? read_start(line, source, events) : Start::none;
  const bool part = start == Start::none ? continue_open(line, source, events) : start == Start::stack;
  if (was_open && !source.open()) --state.open;
  if (!was_open && source.open()) ++state.open;
  return part;
}

void finish_stacks(StackState& state, LogEventWriter& events) {
  for (auto& [key, source] : state.sources) {
    if (source.kind == Kind::faulthandler || source.kind == Kind::py_spy) close_dump(source, events);
  }
}

}  // namespace ddx::formats
