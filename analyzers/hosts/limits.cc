// Limits of a host that NCCL ran into: shared memory, locked memory, open files.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyzers/hosts/hosts.h"
#include "analyzers/log_view.h"

namespace ddx::analyzers {
namespace {

struct HostEvents {
  std::vector<const LogEvent*> events;
  std::optional<std::uint64_t> size;  // of one segment, in bytes
  bool full = false;                  // "No space left on device"
};

std::string mebibytes(std::uint64_t bytes) { return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / 1048576.0); }

std::optional<Finding> shared_memory(const Evidence& evidence) {
  std::map<std::string, HostEvents> hosts;
  for (const auto& [event, fact] : seen<SharedMemoryError>(evidence)) {
    if (contains_text(fact->text, "permission denied")) continue;
    HostEvents& host = hosts[host_subject(evidence, *event)];
    host.events.push_back(event);
    if (fact->size) host.size = fact->size;
    host.full = host.full || contains_text(fact->text, "no space") || contains_text(fact->text, "cannot allocate");
  }
  if (hosts.empty()) return std::nullopt;
  Finding finding;
  finding.code = "shm-small";
  std::vector<std::string> names;
  std::optional<std::uint64_t> size;
  bool full = false;
  for (const auto& [name, host] : hosts) {
    names.push_back(name.substr(name.find(' ') + 1));
    if (finding.subjects.size() < 16) finding.subjects.push_back(name);
    if (host.size) size = std::max(size.value_or(0), *host.size);
    full = full || host.full;
    for (const LogEvent* event : host.events) cite(finding, evidence, *event);
  }
  finding.confidence = full ? Confidence::high : Confidence::medium;
  finding.summary = fmt::format("Shared memory is used up on {}: NCCL could not make a segment{} in /dev/shm",
                                join_words(names, 4), size ? " of " + mebibytes(*size) : "");
  finding.explanation =
      "This is /dev/shm, a file system in memory (64 MiB by default in a container), not a disk. Each pair of GPUs "
      "without direct peer access needs segments of its own.\n";
  finding.advice =
      "Give the container more (--shm-size=1g; in Kubernetes an emptyDir with medium Memory at /dev/shm), and remove "
      "stale nccl-* files there.";
  return finding;
}

struct Limit {
  const char* code;
  const char* summary;
  const char* explanation;
  const char* advice;
};

std::optional<Finding> by_warning(const Evidence& evidence, const Limit& limit, bool (*matches)(const std::string&)) {
  Finding finding;
  std::vector<std::string> names;
  for (const auto& [event, fact] : seen<NcclWarning>(evidence)) {
    if (!matches(fact->text)) continue;
    const std::string subject = host_subject(evidence, *event);
    cite(finding, evidence, *event);
    if (std::find(finding.subjects.begin(), finding.subjects.end(), subject) != finding.subjects.end()) continue;
    if (finding.subjects.size() < 16) finding.subjects.push_back(subject);
    names.push_back(subject.substr(subject.find(' ') + 1));
  }
  if (names.empty()) return std::nullopt;
  finding.code = limit.code;
  finding.summary = fmt::format("{} on {}", limit.summary, join_words(names, 4));
  finding.explanation = limit.explanation;
  finding.advice = limit.advice;
  return finding;
}

// Of /dev/shm NCCL's own judge speaks; elsewhere it is a disk.
bool fills_a_disk(const std::string& what) {
  return (contains_text(what, "no space left on device") || contains_text(what, "disk quota exceeded")) &&
         !contains_text(what, "/dev/shm") && !contains_text(what, "shared memory") && !contains_text(what, "/torch_");
}

// A process that could not write: it ends by that, or says so.
std::optional<Finding> full_disk(const Evidence& evidence) {
  const ProcessTable processes(evidence);
  Finding finding;
  std::vector<std::string> names;
  for (const auto& [event, fact] : seen<ProcessEnd>(evidence)) {
    if (!fills_a_disk(fact->what)) continue;
    cite(finding, evidence, *event);
    const auto rank = processes.rank_of(*event);
    if (rank) finding.ranks.insert(*rank);
    const std::string subject = host_subject(evidence, *event);
    if (std::find(finding.subjects.begin(), finding.subjects.end(), subject) != finding.subjects.end()) continue;
    if (finding.subjects.size() < 16) finding.subjects.push_back(subject);
    names.push_back(subject.substr(subject.find(' ') + 1));
  }
  if (names.empty()) return std::nullopt;
  finding.code = "disk-low";
  finding.confidence = Confidence::high;
  if (!finding.ranks.empty()) finding.victims = known_ranks(evidence).without(finding.ranks);
  finding.summary = finding.ranks.empty()
                        ? fmt::format("A disk is full on {}", join_words(names, 4))
                        : fmt::format("{} could not write: the disk (or quota) is full", finding.ranks.label(4));
  finding.summary.front() = finding.summary.front() == 'r' ? 'R' : finding.summary.front();
  finding.explanation = "The process ended over it, and the others wait for it.\n";
  finding.advice = "Look at df -h and df -i for the path it wrote to, and at quotas; remove old checkpoints.";
  return finding;
}

bool locks_memory(const std::string& text) {
  return contains_text(text, "ibv_") && contains_text(text, "cannot allocate memory");
}
bool opens_files(const std::string& text) { return contains_text(text, "too many open files"); }

}  // namespace

std::vector<Finding> judge_host_limits(const Evidence& evidence) {
  static constexpr Limit kLocked{
      "memlock-low", "Memory could not be locked for the adapter",
      "Registering memory with the adapter locks it; the limit of locked memory is the usual reason.\n",
      "Set memlock to unlimited (ulimit -l; LimitMEMLOCK of the service that starts the job)."};
  static constexpr Limit kFiles{
      "nofile-low", "Too many open files",
      "Each connection and each shared segment is a file; the limit grows with the square of the ranks.\n",
      "Raise nofile (ulimit -n 65536 or more) for the job."};
  std::vector<Finding> findings;
  if (auto finding = shared_memory(evidence)) findings.push_back(std::move(*finding));
  if (auto finding = full_disk(evidence)) findings.push_back(std::move(*finding));
  if (auto finding = by_warning(evidence, kLocked, locks_memory)) findings.push_back(std::move(*finding));
  if (auto finding = by_warning(evidence, kFiles, opens_files)) findings.push_back(std::move(*finding));
  return findings;
}

}  // namespace ddx::analyzers
