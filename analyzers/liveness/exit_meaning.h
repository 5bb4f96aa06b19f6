// What signals, exit codes and NCCL's return codes mean, in words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ddx::analyzers {

// 11 -> "SIGSEGV (segmentation fault)".
std::string signal_text(std::int64_t signal);
// The signal in an exit code: -9 (torchelastic, Python) and 137 (shells, schedulers) are both 9.
std::optional<std::int64_t> signal_of_exit(std::int64_t code);
// "exited with code 1", "ended by SIGKILL (...)".
std::string exit_text(std::int64_t code);
// ncclResult_t: 6 -> "remote error: a peer is gone or unreachable".
std::string nccl_code_text(std::int64_t code);

}  // namespace ddx::analyzers
