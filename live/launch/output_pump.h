// The output of the job: shown as it comes, and kept with times. By a process of its own, so that the job goes on
// writing where wrap dies: nothing of the job is ever blocked, or ended by SIGPIPE, because its reader is gone.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace ddx::live {

struct PumpOptions {
  std::string folder;  // for rank_N.log and launcher.log; empty: nothing is kept
  bool quiet = false;  // nothing is shown
  std::optional<std::int32_t> only_rank;
  bool status_line = false;  // standard output is a terminal, whose last line is wrap's
};

struct Pump {
  pid_t pid = -1;
  int control = -1;  // SOCK_SEQPACKET, PumpMessage
  int out = -1;      // where the job is to write
  int err = -1;
  std::string address;  // for ranks' processes: capture::kOutputVariable
};

// One datagram each. To the pump: `status` (text), `tell` (text, on standard error), `finish` (what was written by now
// is to be shown and kept; answered by `done`). From it: `rank` (pid, number), `exiting` (pid, number: the status),
// `done`, `trouble` (text).
struct PumpMessage {
  enum class Kind : std::int32_t { status, tell, finish, rank, exiting, done, trouble };
  Kind kind = Kind::status;
  std::int32_t pid = 0;
  std::int32_t number = 0;
  std::int32_t size = 0;  // of `text`
  char text[16 << 10];
};

// Throws std::system_error where the system has no process or descriptor left.
Pump start_pump(const PumpOptions& options);

// `descriptor`: is sent along; -1: none.
bool send_message(int control, PumpMessage::Kind kind, std::int32_t pid, std::int32_t number, const std::string& text,
                  int descriptor = -1);
// False: none is there. `descriptor`: what came along, now the caller's; -1: nothing.
bool receive_message(int control, PumpMessage& message, int& descriptor);

}  // namespace ddx::live
