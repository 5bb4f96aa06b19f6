// NCCL's own lines (NCCL_DEBUG=INFO, WARN or TRACE; RCCL prints alike): prefix "host:pid:tid [device]", then one of
// about a hundred texts, of which those that say something of a hang become events. Operations go to NcclOps.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "traces/formats/log_events.h"
#include "traces/formats/nccl_ops.h"

namespace ddx::formats {

// "node-a:502:507 [2] init.cc:497 (initTransportsRank) NCCL WARN message": views into the line.
struct NcclLine {
  std::string_view host;
  std::optional<std::int64_t> pid;
  std::optional<std::int64_t> device;  // the thread's current CUDA device
  std::string_view source;             // "init.cc:497"; empty: none
  std::string_view level;              // "INFO" "WARN" "TRACE"; empty: no such line
  std::string_view message;
};
NcclLine split_nccl_line(std::string_view body);

// Reads a line that holds "NCCL INFO", "NCCL WARN", "NCCL TRACE" or "NCCL version".
void read_nccl_line(const LogLine& line, LogEventWriter& events, NcclOps& ops);

// A warning as others quote it (PyTorch's exceptions end in "Last error:" and NCCL's text): nullopt where it is none of
// those that need no process or host to be understood.
std::optional<LogFact> parse_quoted_warning(std::string_view text);

// "Multiple Ranks are using the same GPU" names no rank: names them by the bus ids of the CommInit events.
void name_shared_devices(LogEventWriter& events);

}  // namespace ddx::formats
