// How a rank's process and `ddx wrap` agree about its output. The process connects to wrap's socket (SOCK_SEQPACKET,
// abstract name in kOutputVariable), says who it is and what its standard output and error are; wrap answers with
// what is to take their place. The judgement is wrap's alone: what is not a pipe of wrap's own was redirected by the
// user, and stays.
//
// In terms of one machine, like record.h, and like it without anything else of ddx.
#pragma once

#include <cstdint>

namespace ddx::capture {

inline constexpr const char* kOutputVariable = "DDX_WRAP_LOGS";
// The process that may look into the ranks' (stacks), beside their ancestors: wrap's number.
inline constexpr const char* kWatcherVariable = "DDX_WRAP_PID";

inline constexpr std::uint64_t kOfferMagic = 0x3170617277786464;  // "ddxwrap1"

enum class OfferKind : std::uint32_t { output = 1, exiting = 2 };

// Device and inode; both 0: neither pipe nor terminal.
struct OfferedStream {
  std::uint64_t device;
  std::uint64_t inode;
};

struct OutputOffer {
  std::uint64_t magic;
  OfferKind kind;
  std::int32_t rank;
  std::int32_t status;       // of `exiting`: what the process passes to exit()
  std::uint32_t relayed;     // 1: its parent is a launcher that reads its output, and writes it to its own
  OfferedStream streams[2];  // standard output, standard error
};

// With one descriptor for each bit of `replace`, in order (SCM_RIGHTS); with one alone where `joined`: both are the
// same.
struct OutputAnswer {
  std::uint32_t replace;  // 1: standard output, 2: standard error
  std::uint32_t joined;
};

}  // namespace ddx::capture
