#include "traces/formats/loader.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "base/error.h"
#include "traces/formats/comm_groups.h"
#include "traces/formats/ddx.h"
#include "traces/formats/file_bytes.h"
#include "traces/formats/file_walk.h"
#include "traces/formats/gzip.h"
#include "traces/formats/profiled_order.h"
#include "traces/formats/rank_of_path.h"
#include "traces/formats/record_builder.h"

namespace ddx::formats {
namespace {

constexpr std::size_t kHead = 64 * 1024;
constexpr unsigned kMaxThreads = 64;

// "gzip" and kin: what packs the bytes; empty where nothing does.
std::string_view packer_of(std::string_view head) {
  struct Magic {
    std::size_t at;
    std::string_view bytes;
    std::string_view name;
  };
  static constexpr std::array<Magic, 6> kMagic{{{0, "\x1f\x8b", "gzip"},  // within gzip
                                                {0, "\x28\xb5\x2f\xfd", "zstd"},
                                                {0, "\xfd\x37zXZ", "xz"},
                                                {0, "BZh", "bzip2"},
                                                {0, "PK\x03\x04", "zip"},
                                                {257, "ustar", "tar"}}};
  for (const Magic& magic : kMagic) {
    if (head.size() >= magic.at && head.substr(magic.at).starts_with(magic.bytes)) return magic.name;
  }
  return {};
}

// "UTF-16" and kin, by the mark at the beginning or by the zeros beside plain characters; empty: none of them.
std::string_view wide_encoding_of(std::string_view head) {
  if (head.starts_with(std::string_view("\xff\xfe\0\0", 4))) return "UTF-32";
  if (head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff")) return "UTF-16";
  if (head.size() < 16) return {};
  const std::string_view sample = head.substr(0, std::min<std::size_t>(head.size(), 64) / 2 * 2);
  const auto plain = [](char c) { return (c >= ' ' && c <= '~') || c == '\n' || c == '\r' || c == '\t'; };
  bool little = true;
  bool big = true;
  for (std::size_t i = 0; i < sample.size(); i += 2) {
    little = little && plain(sample[i]) && sample[i + 1] == '\0';
    big = big && sample[i] == '\0' && plain(sample[i + 1]);
  }
  return little || big ? "UTF-16" : std::string_view();
}

const Importer* importer_by_end(const std::vector<Importer>& formats, const std::string& path, std::string_view bytes) {
  if (bytes.size() <= kHead) return nullptr;
  std::string_view end = bytes.substr(bytes.size() - kHead);
  end.remove_prefix(std::min(end.size(), end.find('\n') + 1));  // from the beginning of a line, if there is one
  for (const Importer& importer : formats) {
    if (importer.by_end && importer.sniff(path, end) != Sniff::no) return &importer;
  }
  return nullptr;
}

const Importer* importer_for(const std::vector<Importer>& formats, const std::string& path, std::string_view head) {
  const Importer* best = nullptr;
  Sniff score = Sniff::no;
  for (const Importer& importer : formats) {
    const Sniff s = importer.sniff(path, head);
    if (s > score) {
      score = s;
      best = &importer;
    }
    if (score == Sniff::sure) break;  // no later one can take it: equal scores go to the earlier
  }
  return best;
}

void set_aside(Evidence& evidence, std::string note, std::string_view name, DiagnosticSeverity severity) {
  Input& input = evidence.inputs.front();
  evidence.diagnostics.count(name, severity, input.path + ": " + note);
  input.note = std::move(note);
}

std::string without_gz(const std::string& path) {
  return path.size() > 3 && path.ends_with(".gz") ? path.substr(0, path.size() - 3) : path;
}

// False: nothing is left to read.
bool tell_of_unpacking(Evidence& evidence, const Unpacked& unpacked) {
  if (unpacked.end == Unpacked::End::whole) return true;
  if (unpacked.end == Unpacked::End::too_big) {
    set_aside(evidence,
              "compressed (gzip) to a size that traces do not have: if it is not made to harm, unpack it first",
              "load.compressed_file", DiagnosticSeverity::data_loss);
    return false;
  }
  const bool cut = unpacked.end == Unpacked::End::cut;
  const std::string where =
      (cut ? "compressed (gzip), cut at byte " : "compressed (gzip), damaged at byte ") + std::to_string(unpacked.at);
  if (unpacked.bytes.empty()) {
    set_aside(evidence, where + ": nothing of it can be unpacked", "load.compressed_file",
              DiagnosticSeverity::data_loss);
    return false;
  }
  evidence.diagnostics.count(cut ? "load.gzip_cut" : "load.gzip_damaged", DiagnosticSeverity::data_loss,
                             evidence.inputs.front().path + ": " + where + ": what follows is missing");
  return true;
}

// Reads into `evidence`, which holds this file's Input alone.
void read_into(Evidence& evidence, const LoadOptions& options) {
  Input& input = evidence.inputs.front();
  const FileBytes file(input.path);
  std::string_view bytes = file.view();
  Unpacked unpacked;
  const bool packed = is_gzip(bytes);
  if (packed) {
    unpacked = gunzip(bytes);
    bytes = unpacked.bytes;
    if (!tell_of_unpacking(evidence, unpacked)) return;
  }
  if (bytes.empty()) return set_aside(evidence, "empty file", "load.empty_file", DiagnosticSeverity::notice);
  const std::string_view head = bytes.substr(0, kHead);
  if (const std::string_view packer = packer_of(head); !packer.empty()) {
    const std::string_view within = packed ? ", inside gzip" : "";
    return set_aside(evidence, "compressed (" + std::string(packer) + std::string(within) + "): unpack it first",
                     "load.compressed_file", DiagnosticSeverity::data_loss);
  }
  if (const std::string_view encoding = wide_encoding_of(head); !encoding.empty()) {
    return set_aside(evidence, std::string(encoding) + ": convert it to UTF-8 first", "load.wide_text",
                     DiagnosticSeverity::data_loss);
  }
  const std::vector<Importer>& formats = options.formats != nullptr ? *options.formats : importers();
  const std::string path = packed ? without_gz(input.path) : input.path;
  const Importer* importer = importer_for(formats, path, head);
  if (importer == nullptr) importer = importer_by_end(formats, path, bytes);
  if (importer == nullptr) {
    return set_aside(evidence, "no format that ddx knows", "load.unknown_file", DiagnosticSeverity::notice);
  }
  input.format = importer->name;
  const auto tell_if_cut = [&] {
    if (!file.was_cut()) return;
    evidence.diagnostics.count("load.file_cut", DiagnosticSeverity::data_loss,
                               input.path + ": the file was cut while it was read; its end is missing");
  };
  try {
    importer->read({input.path, bytes}, options.import, evidence);
  } catch (...) {
    tell_if_cut();
    throw;
  }
  tell_if_cut();
}

// What is left of a file that could not be used: its Input, and what its reader counted before it gave up.
Evidence failed(Evidence&& evidence, std::string message) {
  Evidence left;
  left.inputs.push_back(std::move(evidence.inputs.front()));
  left.diagnostics = std::move(evidence.diagnostics);
  Input& input = left.inputs.front();
  const bool opened = input.format != "unknown";
  input.unreadable = true;
  set_aside(left, std::move(message), opened ? "load.failed_file" : "load.unreadable_file",
            DiagnosticSeverity::data_loss);
  return left;
}

Evidence read_file(const std::string& path, const LoadOptions& options) {
  Evidence evidence;
  Input input;
  input.path = path;
  input.format = "unknown";
  input.file_rank = rank_of_path(path, options.import);
  evidence.inputs.push_back(std::move(input));
  try {
    read_into(evidence, options);
    evidence.inputs.front().world_size = evidence.trace.world_size;
    return evidence;
  } catch (const std::bad_alloc&) {
    return failed(std::move(evidence), "not enough memory to read it");
  } catch (const Error& error) {
    return failed(std::move(evidence), error.without_path());  // which the Input has already
  } catch (const std::exception& error) {
    return failed(std::move(evidence), error.what());
  }
}

// Threads take files in order and hand over what they read; it is merged in order of path as soon as its turn comes.
// A thread does not run more than a window ahead of the merge, so that one slow file cannot make ddx hold all others.
class Pool {
 public:
  Pool(const std::vector<std::string>& files, const LoadOptions& options, unsigned threads, Evidence& out)
      : files_(files), options_(options), out_(out), ready_(std::size_t{threads} * 4) {}

  void work() {
    try {
      while (const auto index = take()) {
        Evidence read = read_file(files_[*index], options_);
        hand_over(*index, std::move(read));
      }
    } catch (...) {
      fail(std::current_exception());
    }
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::optional<std::size_t> take() {
    std::unique_lock lock(mutex_);
    if (next_ >= files_.size()) return std::nullopt;
    const std::size_t index = next_++;
    moved_.wait(lock, [&] { return error_ || index < merged_ + ready_.size(); });
    if (error_) return std::nullopt;
    return index;
  }

  void hand_over(std::size_t index, Evidence&& read) {
    std::unique_lock lock(mutex_);
    ready_[index % ready_.size()] = std::move(read);
    if (merging_) return;
    merging_ = true;
    while (!error_ && ready_[merged_ % ready_.size()]) {
      Evidence turn = std::move(*ready_[merged_ % ready_.size()]);
      ready_[merged_ % ready_.size()].reset();
      lock.unlock();  // only the merging thread touches out_: the others may hand over meanwhile
      merge(std::move(turn));
      lock.lock();
      ++merged_;
      if (options_.progress) options_.progress(merged_, files_.size());
      moved_.notify_all();
    }
    merging_ = false;
  }

  void merge(Evidence&& turn) {
    const std::string path = turn.inputs.empty() ? std::string() : turn.inputs.front().path;
    try {
      out_.merge(std::move(turn));
    } catch (const std::bad_alloc&) {
      // What was half taken in cannot be taken back.
      throw Error(path, {}, "not enough memory to hold it beside the files before it: give fewer files");
    }
  }

  void fail(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    moved_.notify_all();
  }

  const std::vector<std::string>& files_;
  const LoadOptions& options_;
  Evidence& out_;
  std::mutex mutex_;
  std::condition_variable moved_;
  std::vector<std::optional<Evidence>> ready_;  // a ring over the files from merged_ on
  std::size_t next_ = 0;
  std::size_t merged_ = 0;
  bool merging_ = false;
  std::exception_ptr error_;
};

// A pattern that finds nothing is most likely mistyped, and without this would pass for one that was followed.
void tell_idle_pattern(const std::vector<std::string>& files, const LoadOptions& options, Diagnostics& diagnostics) {
  const std::optional<std::regex>& pattern = options.import.rank_from;
  if (!pattern || files.empty()) return;
  for (const std::string& path : files) {
    if (rank_by_pattern(path, *pattern)) return;
  }
  diagnostics.count("load.rank_from_unmatched", DiagnosticSeverity::data_loss,
                    "--rank-from finds a rank in no file's path, such as " + files.front());
}

}  // namespace

Evidence load(const std::vector<std::string>& paths, const LoadOptions& options) {
  Evidence evidence;
  const std::vector<std::string> files = files_below(paths, evidence.diagnostics);
  const unsigned wanted = options.threads == 0 ? std::thread::hardware_concurrency() : options.threads;
  const auto useful = static_cast<unsigned>(std::min<std::size_t>(files.size(), kMaxThreads));
  const unsigned threads = std::clamp(wanted, 1U, std::max(useful, 1U));
  Pool pool(files, options, threads, evidence);
  {
    std::vector<std::jthread> helpers;
    try {
      for (unsigned i = 1; i < threads; ++i) helpers.emplace_back([&pool] { pool.work(); });
    } catch (const std::system_error&) {
      // The system gives no more threads: those that run, this one among them, do the work.
    }
    pool.work();
  }
  pool.rethrow();
  set_dumps_aside(evidence);
  list_captured_members(evidence);
  list_stated_groups(evidence);
  list_unlisted_groups(evidence);
  number_profiled_calls(evidence);
  tell_idle_pattern(files, options, evidence.diagnostics);
  return evidence;
}

}  // namespace ddx::formats
