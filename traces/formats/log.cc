#include "traces/formats/log.h"

#include <algorithm>
#include <cstring>

#include "traces/formats/log_events.h"
#include "traces/formats/log_filter.h"
#include "traces/formats/log_prefix.h"
#include "traces/formats/log_scan.h"
#include "traces/formats/nccl_log.h"
#include "traces/formats/nccl_ops.h"
#include "traces/formats/nccl_tests_log.h"
#include "traces/formats/net_log.h"
#include "traces/formats/process_log.h"
#include "traces/formats/progress_log.h"
#include "traces/formats/ras_text.h"
#include "traces/formats/stack_log.h"
#include "traces/formats/torch_log.h"

namespace ddx::formats {
namespace {

// Of a longer line only so much is looked at.
constexpr std::size_t kMaxLine = 64 * 1024;
// Whether lines carry srun's labels is told from so much of the file.
constexpr std::size_t kLabelSample = 256 * 1024;

// `srun -l` labels every line of its tasks; a few lines of Slurm's own stand between.
bool has_srun_labels(std::string_view bytes) {
  bytes = bytes.substr(0, kLabelSample);
  std::size_t labelled = 0;
  std::size_t lines = 0;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view line = bytes.substr(0, end);
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
    if (trimmed(line).empty()) continue;
    ++lines;
    if (has_srun_label(line)) ++labelled;
  }
  return labelled >= 2 && labelled * 2 > lines;
}

// One file being read: the states of all readers, and what decides who looks at a line.
class LogReader {
 public:
  LogReader(const Source& source, const ImportOptions& options, Evidence& out)
      : source_(source),
        out_(out),
        events_(out, options, facts_of_path(source.path, options)),
        ops_(out, options),
        srun_labels_(has_srun_labels(source.bytes)) {}

  void read() {
    std::string_view rest = source_.bytes;
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
  void read_physical_line(std::string_view line) {
    if (line.size() > kMaxLine) {
      out_.diagnostics.count("log.long_line", DiagnosticSeverity::notice,
                             source_.path + ":" + std::to_string(number_) + ": " + std::to_string(line.size()) +
                                 " bytes, of which the first " + std::to_string(kMaxLine) + " are read");
      line = line.substr(0, kMaxLine);
    }
    const unsigned interests = interests_of(line);
    if (interests == kNothing && !anything_open()) return;
    line = without_escapes(line, scratch_);
    // A progress bar overwrites itself: each state of it is a line.
    while (!line.empty()) {
      const std::size_t end = line.find('\r');
      if (const std::string_view piece = line.substr(0, end); !piece.empty()) read_line(piece, interests);
      line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
    }
  }

  bool anything_open() const { return processes_.open > 0 || stacks_.open > 0 || ras_.open || !tests_.open.empty(); }

  void read_line(std::string_view text, unsigned interests) {
    LogLine line = strip_prefixes(text, srun_labels_);
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
    if (collective && !contains(line.body, "Address already in use")) mark_reports(before);
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
  }

  const Source& source_;
  Evidence& out_;
  LogEventWriter events_;
  NcclOps ops_;
  bool srun_labels_;
  std::uint64_t number_ = 0;
  std::string scratch_;
  TorchState torch_;
  ProcessState processes_;
  StackState stacks_;
  ProgressState progress_;
  NcclTestsState tests_;
  RasTextState ras_;
};

// ---- sniffing -------------------------------------------------------------------------------------------------------

std::string lower_extension(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  const std::size_t dot = path.find_last_of('.');
  if (dot == std::string::npos || (slash != std::string::npos && dot < slash)) return {};
  std::string extension = path.substr(dot);
  for (char& c : extension) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return extension;
}

bool one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Mostly printable: a few stray bytes are in many logs (a cut character, a colour, a NUL of a crashed write).
bool looks_like_text(std::string_view head) {
  std::size_t bad = 0;
  for (std::size_t at = 0; at < head.size();) {
    const std::size_t length = utf8_length(head.substr(at));
    const auto c = static_cast<unsigned char>(head[at]);
    const bool control = c < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != 0x1b && c != '\f' && c != '\b';
    // A character that the end of the head cuts is none.
    if ((length == 0 && head.size() - at > 3) || control) ++bad;
    at += length == 0 ? 1 : length;
  }
  return bad * 20 <= head.size();
}

// Whether the head holds a line that this importer reads; progress alone does not make a text a log.
bool holds_a_known_line(std::string_view head) {
  while (!head.empty()) {
    const std::size_t end = head.find('\n');
    const std::string_view line = head.substr(0, end);
    const unsigned interests = interests_of(line);
    if ((interests & ~(kProgress | kStack)) != 0) return true;
    if ((interests & kStack) != 0 && is_stack_header(line)) return true;
    head.remove_prefix(end == std::string_view::npos ? head.size() : end + 1);
  }
  return false;
}

Sniff sniff_log(const std::string& path, std::string_view head) {
  if (head.empty() || !looks_like_text(head)) return Sniff::no;
  const std::string extension = lower_extension(path);
  // Sources, documents and data quote log lines.
  if (one_of(extension, {".md",  ".rst", ".html", ".py",   ".cc",  ".cpp",  ".h",   ".cu",  ".sh",  ".json",
                         ".csv", ".tsv", ".xml",  ".yaml", ".yml", ".toml", ".ini", ".env", ".ops", ".ipynb"})) {
    return Sniff::no;
  }
  if (one_of(extension, {".log", ".out", ".err", ".stderr", ".stdout"})) return Sniff::likely;
  const bool known = holds_a_known_line(head);
  if (extension == ".txt") return known ? Sniff::likely : Sniff::maybe;
  return known ? Sniff::maybe : Sniff::no;
}

void read_log(const Source& source, const ImportOptions& options, Evidence& out) {
  LogReader(source, options, out).read();
}

}  // namespace

Importer log_importer() {
  return {"log", "logs of PyTorch, NCCL, launchers and kernels, with any launcher's prefixes", sniff_log, read_log};
}

}  // namespace ddx::formats
