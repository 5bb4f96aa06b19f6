#include "analyzers/liveness/exit_meaning.h"

#include <fmt/format.h>

namespace ddx::analyzers {

std::string signal_text(std::int64_t signal) {
  switch (signal) {
    case 1: return "SIGHUP (its terminal or session went away)";
    case 2: return "SIGINT (somebody pressed Ctrl-C)";
    case 4: return "SIGILL (an instruction this CPU does not have)";
    case 6: return "SIGABRT (the process gave up by itself)";
    case 7: return "SIGBUS (bus error: often a full /dev/shm)";
    case 8: return "SIGFPE (arithmetic error)";
    case 9: return "SIGKILL (killed from outside: the out-of-memory killer, the scheduler or a person)";
    case 10: return "SIGUSR1 (often the scheduler's warning of a time limit)";
    case 11: return "SIGSEGV (segmentation fault)";
    case 12: return "SIGUSR2 (often the scheduler's warning of a time limit)";
    case 15: return "SIGTERM (asked to stop, mostly by the launcher or the scheduler)";
    case 24: return "SIGXCPU (CPU time limit)";
    default: return fmt::format("signal {}", signal);
  }
}

std::optional<std::int64_t> signal_of_exit(std::int64_t code) {
  if (code < 0 && code >= -64) return -code;
  if (code > 128 && code <= 128 + 64) return code - 128;
  return std::nullopt;
}

std::string exit_text(std::int64_t code) {
  if (const auto signal = signal_of_exit(code)) return fmt::format("ended by {}", signal_text(*signal));
  return fmt::format("exited with code {}", code);
}

std::string nccl_code_text(std::int64_t code) {
  switch (code) {
    case 0: return "success";
    case 1: return "unhandled CUDA error: the device or its driver";
    case 2: return "unhandled system error: a call to the operating system failed";
    case 3: return "internal error";
    case 4: return "invalid argument";
    case 5: return "invalid usage";
    case 6: return "remote error: a peer is gone or unreachable";
    case 7: return "still in progress";
    default: return fmt::format("code {}", code);
  }
}

}  // namespace ddx::analyzers
