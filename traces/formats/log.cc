#include "traces/formats/log.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "traces/formats/absent_log.h"
#include "traces/formats/device_log.h"
#include "traces/formats/log_events.h"
#include "traces/formats/log_filter.h"
#include "traces/formats/log_prefix.h"
#include "traces/formats/log_scan.h"
#include "traces/formats/log_sniff.h"
#include "traces/formats/nccl_log.h"
#include "traces/formats/nccl_ops.h"
#include "traces/formats/nccl_tests_log.h"
#include "traces/formats/net_log.h"
#include "traces/formats/process_log.h"
#include "traces/formats/progress_log.h"
#include "traces/formats/ras_text.h"
#include "traces/formats/stack_log.h"
#include "traces/formats/torch_log.h"
#include "traces/formats/worker_log.h"

namespace ddx::formats {
namespace {

// Of a longer line only so much is looked at.
constexpr std::size_t kMaxLine = 64 * 1024;
constexpr std::size_t kMaxWriters = 1U << 16;  // ranks of one file that are told apart by their prefixes

// The pieces of a line that breaks elsewhere than at its newline: at carriage returns and zeros. Each byte is searched
// once for either, however many there are of one and none of the other.
class Pieces {
 public:
  explicit Pieces(std::string_view line) : line_(line) {}

  // nullopt behind the last one; no piece is empty.
  std::optional<std::string_view> next() {
    while (at_ < line_.size()) {
      if (return_ < at_ || at_ == 0) return_ = std::min(line_.size(), line_.find('\r', at_));
      if (zero_ < at_ || at_ == 0) zero_ = std::min(line_.size(), line_.find('\0', at_));
      const std::size_t end = std::min(return_, zero_);
      const std::string_view piece = line_.substr(at_, end - at_);
      at_ = end + 1;
      // A hole may be gigabytes of zeros.
      if (end == zero_ && end < line_.size()) at_ = std::min(line_.size(), line_.find_first_not_of('\0', end));
      if (!piece.empty()) return piece;
    }
    return std::nullopt;
  }

 private:
  std::string_view line_;
  std::size_t at_ = 0;
  std::size_t return_ = 0;
  std::size_t zero_ = 0;
};

// Without a branch for each byte, as most lines of interest come by here and hold none.
bool has_break(std::string_view line) {
  unsigned char found = 0;
  for (const char c : line) found |= static_cast<unsigned char>(c == '\r' ? 1 : 0) | (c == '\0' ? 1 : 0);
  return found != 0;
}

// Behind the "]" that closes a bar of tqdm; the whole size where there is none.
std::size_t end_of_bar(std::string_view line) {
  const std::size_t rate = std::min(line.find("it/s"), line.find("s/it"));
  if (rate == std::string_view::npos || line.substr(0, rate).find("%|") == std::string_view::npos) return line.size();
  const std::size_t close = line.find(']', rate);
  return close == std::string_view::npos ? line.size() : close + 1;
}

// One file being read: the states of all readers, and what decides who looks at a line.
class LogReader {
 public:
  LogReader(const Source& source, const ImportOptions& options, Evidence& out)
      : source_(source),
        out_(out),
        events_(out, options, facts_of_path(source.path, options), source.bytes.size()),
        ops_(out, options),
        label_(label_of_lines(source.bytes)) {}

  void read() {
    std::string_view rest = source_.bytes;
    if (const auto rank = events_.rank_of(LogLine{}); rank && !rest.empty()) writers_.insert(*rank);
    while (!rest.empty()) {
      ++number_;
      const void* newline = std::memchr(rest.data(), '\n', rest.size());
      const std::size_t size =
          newline == nullptr ? rest.size() : static_cast<std::size_t>(static_cast<const char*>(newline) - rest.data());
      read_physical_line(rest.substr(0, size));
      rest.remove_prefix(std::min(rest.size(), size + 1));
    }
    finish();
  }

 private:
  // Who writes at all: a rank whose lines say nothing of interest is not absent. "[rank3]:" and "[1,3]<stdout>:" only,
  // as every line of a log comes by here.
  void note_writer(std::string_view line) {
    if (line.size() < 4 || line.front() != '[' || (line[1] != 'r' && !is_digit(line[1]))) return;
    const std::size_t close = line.substr(0, 16).find(']');
    if (close == std::string_view::npos || line.substr(0, close) == last_writer_) return;
    last_writer_ = line.substr(0, close);
    const LogLine writer = strip_prefixes(line.substr(0, close + 11), label_);
    if (writer.rank && !writer.rank_is_task && writers_.size() < kMaxWriters) writers_.insert(*writer.rank);
  }

  void read_physical_line(std::string_view line) {
    note_writer(line);
    if (line.size() <= kMaxLine) {
      const unsigned interests = interests_of(line);
      if (interests == kNothing && !anything_open()) return;
      if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
      if (!has_break(line)) return read_piece(line, interests);
    }
    // A progress bar overwrites itself: each state of it is a line, and a message that follows is one. So is what
    // stands behind the zeros of a crashed write.
    Pieces pieces(line);
    while (const auto piece = pieces.next()) read_bounded(*piece);
  }

  void read_bounded(std::string_view piece) {
    if (piece.size() > kMaxLine) {
      out_.diagnostics.count("log.long_line", DiagnosticSeverity::notice,
                             source_.path + ":" + std::to_string(number_) + ": " + std::to_string(piece.size()) +
                                 " bytes, of which the first " + std::to_string(kMaxLine) + " are read");
      piece = piece.substr(0, kMaxLine);
    }
    const unsigned interests = interests_of(piece);
    if (interests != kNothing || anything_open()) read_piece(piece, interests);
  }

  void read_piece(std::string_view piece, unsigned interests) {
    // A bar that another process writes behind ends with its rate: "9.1it/s, loss=1.23][rank3]: ...".
    if ((interests & kProgress) != 0 && (interests & ~kProgress) != 0) {
      const std::size_t end = end_of_bar(piece);
      if (end < piece.size()) {
        read_line(without_escapes(piece.substr(0, end), scratch_), kProgress);
        piece.remove_prefix(end);
      }
    }
    if (const std::string_view text = without_escapes(piece, scratch_); !text.empty()) read_line(text, interests);
  }

  bool anything_open() const {
    return processes_.open > 0 || stacks_.open > 0 || ras_.open || !tests_.open.empty() || !absent_.open.empty() ||
           !workers_.actors.empty();
  }

  void read_line(std::string_view text, unsigned interests) {
    LogLine line = strip_prefixes(text, label_);
    line.number = number_;
    if ((interests & (kNcclInfo | kNccl)) != 0) {
      ops_.set_attempt(events_.attempt());
      read_nccl_line(line, events_, ops_);
      if ((interests & kNcclInfo) != 0) return;
    }
    const bool ras_part =
        (ras_.open || (interests & kRas) != 0) && read_ras_line(line, (interests & kRas) != 0, ras_, events_);
    if (ras_part) return;
    if (!tests_.open.empty() || (interests & kTests) != 0) {
      read_nccl_tests_line(line, (interests & kTests) != 0, tests_, events_);
    }
    read_facts(line, interests);
  }

  void read_facts(const LogLine& line, unsigned interests) {
    const bool stack = (interests & kStack) != 0;
    if ((stack || stacks_.open > 0) && read_stack_line(line, stack, stacks_, events_)) return;
    const std::size_t before = events_.size();
    if ((interests & kAbsent) != 0 || !absent_.open.empty()) {
      read_absent_line(line, (interests & kAbsent) != 0, absent_, events_);
    }
    if ((interests & kDevice) != 0 && read_device_line(line, events_)) return;
    const bool worker = (interests & kWorker) != 0;
    if ((worker || !workers_.actors.empty()) && read_worker_line(line, worker, workers_, events_)) {
      // An abort that follows is over what the watchdog met.
      if (contains(line.body, "watchdog thread")) note_collective_failure(line, processes_);
      return;
    }
    bool collective = false;
    if ((interests & kTorch) != 0) collective = read_torch_line(line, torch_, events_);
    if (!collective && (interests & kNetwork) != 0) collective = read_network_line(line, events_);
    // An abort that follows such a line is the library ending the process over it.
    const bool failed = contains(line.body, "Watchdog caught") || contains(line.body, "watchdog");
    if (collective && failed) note_collective_failure(line, processes_);
    if (!collective && (interests & kProgress) != 0 && (interests & kProcess) == 0) {
      if (read_progress_line(line, progress_, events_)) return;
    }
    read_process_line(line, (interests & kProcess) != 0, processes_, events_);
    // A port that is taken is the process's own trouble.
    if (collective && !contains(line.body, "ddress already in use")) mark_reports(before);
  }

  // An exception on a line that is itself a report of a peer, a name, or a group is a consequence of that, and of the
  // rank that the report names as its writer.
  void mark_reports(std::size_t first) {
    for (std::size_t i = first; i < events_.size(); ++i) {
      auto* end = std::get_if<ProcessEnd>(&events_.at(i).fact);
      if (end == nullptr) continue;
      end->secondary = true;
      if (!events_.at(i).rank) events_.at(i).rank = events_.at(first).rank;
    }
  }

  void finish() {
    finish_stacks(stacks_, events_);
    finish_processes(processes_, events_);
    finish_ras(ras_, events_);
    name_shared_devices(events_);
    ops_.finish(events_);
    events_.finish();
    out_.inputs.front().ranks.insert(RankSet(std::vector<RankId>(writers_.begin(), writers_.end())));
  }

  const Source& source_;
  Evidence& out_;
  LogEventWriter events_;
  NcclOps ops_;
  LineLabel label_;
  std::uint64_t number_ = 0;
  std::string scratch_;
  TorchState torch_;
  ProcessState processes_;
  StackState stacks_;
  ProgressState progress_;
  NcclTestsState tests_;
  RasTextState ras_;
  AbsentState absent_;
  WorkerState workers_;
  std::set<RankId> writers_;
  std::string_view last_writer_;
};

void read_log(const Source& source, const ImportOptions& options, Evidence& out) {
  LogReader(source, options, out).read();
}

}  // namespace

Importer log_importer() {
  return {"log", "logs of PyTorch, NCCL, launchers and kernels, with any launcher's prefixes", sniff_log, read_log,
          true};
}

}  // namespace ddx::formats
