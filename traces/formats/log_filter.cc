#include "traces/formats/log_filter.h"

#include <array>
#include <cstdint>
#include <cstring>

namespace ddx::formats {
namespace {

// A fragment that a line of interest holds. `key` is the place of its four rarest bytes, which are hashed: it is they
// that every position of the log is compared with.
struct Anchor {
  std::string_view text;
  std::size_t key;
  unsigned interest;
};

constexpr std::array kAnchors{
    Anchor{"NCCL INFO ", 1, kNcclInfo},
    Anchor{"NCCL WARN", 5, kNccl},
    Anchor{"NCCL TRACE", 5, kNccl},
    Anchor{"CCL version ", 0, kNccl},
    Anchor{"atchdog", 3, kTorch},
    Anchor{"in blocking wait", 3, kTorch},
    Anchor{"ast enqueued", 5, kTorch},
    Anchor{"based barrier", 3, kTorch},
    Anchor{"_based_barrier", 3, kTorch},
    Anchor{"etected mismatch", 6, kTorch},
    Anchor{"Collectives differ", 1, kTorch},
    Anchor{"currently unknown", 8, kTorch},
    Anchor{"clients joined", 6, kTorch},
    Anchor{"workers joined", 6, kTorch},
    Anchor{"WORLD INFO DICT", 0, kTorch},
    Anchor{"Duplicate GPU det", 6, kTorch},
    Anchor{"using the same GPU", 9, kTorch},
    Anchor{"pass monitoredBarr", 10, kAbsent | kProcess},
    Anchor{"t join collective", 7, kAbsent},
    Anchor{"are the lagging ranks", 8, kAbsent},
    Anchor{"issing ranks:", 1, kAbsent},
    Anchor{"timed out task names", 10, kAbsent},
    Anchor{"NVRM: ", 0, kDevice},
    Anchor{"thread terminated with exc", 7, kWorker | kTorch},
    Anchor{"Worker exit type: ", 7, kWorker},
    Anchor{"memory pressure (OOM)", 7, kWorker},
    Anchor{"ActorDiedError: ", 5, kWorker},
    Anchor{"RayActorError: ", 2, kWorker},
    Anchor{"died unexpectedly", 5, kWorker},
    Anchor{" scheduler is dead", 3, kWorker},
    Anchor{"exits with return code", 6, kWorker},
    Anchor{"Child process with PID", 6, kWorker},
    Anchor{"ExitedException: process", 2, kWorker},
    Anchor{"Node failure on ", 5, kWorker},
    Anchor{"Watchdog timeout (", 9, kWorker},
    Anchor{"creating shared memory seg", 16, kTorch},
    Anchor{"Got completion", 4, kTorch},
    Anchor{"SocketImpl", 6, kNetwork},
    Anchor{"client socket", 6, kNetwork},
    Anchor{"server socket", 6, kNetwork},
    Anchor{"ddress already in use", 7, kNetwork | kProcess},
    Anchor{"Connection closed by", 6, kNetwork},
    Anchor{"Connection reset by", 12, kNetwork},
    Anchor{"Connection refused", 12, kNetwork},
    Anchor{"Broken pipe", 1, kNetwork},
    Anchor{"gloo", 0, kNetwork},
    Anchor{"Timed out waiting ", 5, kNetwork},
    Anchor{"pair closure", 5, kNetwork},
    Anchor{"service not known", 4, kNetwork},
    Anchor{"name resolution", 3, kNetwork},
    Anchor{"esolve host", 4, kNetwork},
    Anchor{"getaddrinfo", 3, kNetwork},
    Anchor{"host not found", 2, kNetwork},
    Anchor{"gai error", 0, kNetwork},
    Anchor{"Traceback (", 4, kProcess | kStack},
    Anchor{"During handling of the above", 1, kProcess},
    Anchor{"direct cause of the following", 4, kProcess},
    Anchor{"xception ignored in", 10, kProcess},
    Anchor{"Error: ", 0, kProcess},
    Anchor{"xception: ", 2, kProcess},
    Anchor{"Fatal Python", 6, kProcess | kStack},
    Anchor{"(most recent call first)", 6, kProcess | kStack},
    Anchor{"ignal: ", 0, kProcess},
    Anchor{"aught signal", 6, kProcess},
    Anchor{"on signal ", 3, kProcess},
    Anchor{"terminate called", 6, kProcess},
    Anchor{"what(): ", 2, kProcess},
    Anchor{"Bus error", 1, kProcess},
    Anchor{"egmentation fault", 6, kProcess},
    Anchor{"Killed", 0, kProcess},
    Anchor{"Aborted", 0, kProcess},
    Anchor{"Terminated", 0, kProcess},
    Anchor{"ut of memory: ", 8, kProcess},
    Anchor{"oom-kill", 1, kProcess},
    Anchor{"oom_kill", 1, kProcess},
    Anchor{"srun: error: ", 2, kProcess},
    Anchor{"(exitcode: ", 1, kProcess},
    Anchor{"Process name: [[", 9, kProcess},
    Anchor{"xit with status code", 2, kProcess},
    Anchor{"EXIT STRING", 2, kProcess},
    Anchor{"terminated with the following error", 5, kProcess},
    Anchor{"first observed failure", 6, kProcess},
    Anchor{"Failures:", 4, kProcess},
    Anchor{"estart worker group", 8, kProcess},
    Anchor{"restart_count=", 6, kProcess},
    Anchor{"(idle", 0, kStack},
    Anchor{"(active", 0, kStack},
    Anchor{"Process ", 0, kStack},
    Anchor{"memory broadcast block", 6, kProgress},
    Anchor{"No available block found", 5, kProgress},
    Anchor{"queue empty", 4, kProgress},
    Anchor{"queue is empty", 6, kProgress},
    Anchor{"Waiting: ", 5, kProgress},
    Anchor{"finished", 0, kProgress},
    Anchor{"step", 0, kProgress},
    Anchor{"Step", 0, kProgress},
    Anchor{"teration", 0, kProgress},
    Anchor{"poch", 0, kProgress},
    Anchor{"loss", 0, kProgress},
    Anchor{"Loss", 0, kProgress},
    Anchor{"s/it", 0, kProgress},
    Anchor{"it/s", 0, kProgress},
    Anchor{" NaN", 0, kProgress},
    Anchor{" nan", 0, kProgress},
    Anchor{"=nan", 0, kProgress},
    Anchor{"=NaN", 0, kProgress},
    Anchor{"NaN ", 0, kProgress},
    Anchor{"!isnan(", 0, kProgress},
    Anchor{"in group  per comm", 9, kRas},
    Anchor{"Group     Comms", 5, kRas},
    Anchor{"Timestamp: ", 5, kRas},
    Anchor{") MISMATCH", 2, kRas},
    Anchor{") INCOMPLETE", 2, kRas},
    Anchor{") ERROR", 2, kRas},
    Anchor{" considered dead", 6, kRas},
    Anchor{"Missing communicator data", 3, kRas},
    Anchor{"# Using devices", 2, kTests},
};
static_assert(kAnchors.size() < 255);

constexpr std::size_t kTableBits = 13;

constexpr std::size_t hash_of(std::uint32_t key) { return (key * 2654435761U) >> (32 - kTableBits); }

constexpr std::uint32_t key_of(const Anchor& anchor) {
  std::uint32_t key = 0;
  for (std::size_t i = 4; i-- > 0;) key = key << 8 | static_cast<unsigned char>(anchor.text[anchor.key + i]);
  return key;
}

struct Table {
  std::array<std::uint8_t, std::size_t{1} << kTableBits> first{};  // index + 1 of the first anchor; 0: none
  std::array<std::uint8_t, kAnchors.size()> next{};                // index + 1 of the next with the same hash
};

constexpr Table make_table() {
  Table table;
  for (std::size_t i = kAnchors.size(); i-- > 0;) {
    const std::size_t hash = hash_of(key_of(kAnchors[i]));
    table.next[i] = table.first[hash];
    table.first[hash] = static_cast<std::uint8_t>(i + 1);
  }
  return table;
}

constexpr Table kTable = make_table();

// The interests whose anchors have their key at `at` and stand there in full.
unsigned anchors_at(std::string_view line, std::size_t at, std::uint8_t slot) {
  unsigned found = kNothing;
  for (; slot != 0; slot = kTable.next[slot - 1U]) {
    const Anchor& anchor = kAnchors[slot - 1U];
    if (at < anchor.key) continue;
    const std::size_t begin = at - anchor.key;
    if (line.substr(begin, anchor.text.size()) == anchor.text) found |= anchor.interest;
  }
  return found;
}

}  // namespace

unsigned interests_of(std::string_view line) {
  if (line.size() < 4) return kNothing;
  unsigned found = kNothing;
  const char* data = line.data();
  const std::size_t last = line.size() - 4;
  for (std::size_t at = 0; at <= last; ++at) {
    std::uint32_t key;  // as the host orders bytes: the table is made for little-endian ones
    std::memcpy(&key, data + at, sizeof key);
    const std::uint8_t slot = kTable.first[hash_of(key)];
    if (slot == 0) continue;
    found |= anchors_at(line, at, slot);
    if ((found & kNcclInfo) != 0) return kNcclInfo;
  }
  return found;
}

}  // namespace ddx::formats
