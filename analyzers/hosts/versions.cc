// One library version on all ranks: NCCL says so itself, or its banner and the dumps show it.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyzers/hosts/hosts.h"
#include "analyzers/log_view.h"

namespace ddx::analyzers {
namespace {

// "2.21.5+cuda12.4" -> "2.21.5": builds for different CUDA versions speak one protocol.
std::string bare(const std::string& version) { return version.substr(0, version.find('+')); }

std::optional<Finding> told(const Evidence& evidence) {
  const auto lines = seen<VersionMismatch>(evidence);
  if (lines.empty()) return std::nullopt;
  Finding finding;
  finding.code = "version-skew";
  finding.severity = Severity::error;
  finding.confidence = Confidence::high;
  for (const auto& [event, fact] : lines) {
    cite(finding, evidence, *event);
    if (!event->host.empty() && finding.subjects.size() < 16) finding.subjects.push_back("host " + event->host);
  }
  std::sort(finding.subjects.begin(), finding.subjects.end());
  finding.subjects.erase(std::unique(finding.subjects.begin(), finding.subjects.end()), finding.subjects.end());
  finding.summary = "The ranks use different NCCL versions: " + lines.front().fact->text;
  finding.explanation = "NCCL refuses to make a communicator of different versions.\n";
  finding.advice = "Use one image or one module on all hosts; look for a second libnccl in LD_LIBRARY_PATH.";
  return finding;
}

std::optional<Finding> shown(const Evidence& evidence) {
  std::map<std::string, std::set<std::string>> users;  // version -> who
  Finding finding;
  std::set<std::string> cited;
  for (const auto& [event, fact] : seen<LibraryVersion>(evidence)) {
    const std::string version = bare(fact->version);
    users[version].insert(speaker(evidence, *event));
    if (cited.insert(version).second) cite(finding, evidence, *event);
    if (!event->host.empty()) finding.subjects.push_back("host " + event->host);
  }
  std::map<std::string, std::vector<RankId>> dumps;
  std::set<std::string> backends;
  for (const RankRecord& record : evidence.trace.ranks) {
    if (record.library_version.empty() || !record.rank) continue;
    backends.insert(record.backend);
    dumps[bare(record.library_version)].push_back(*record.rank);
  }
  // Dumps and logs may name versions of different things: each is compared with its own kind.
  if (backends.size() <= 1 && dumps.size() > 1) {
    users.clear();
    for (const auto& [version, ranks] : dumps) users[version].insert(RankSet(ranks).label(6));
  }
  if (users.size() < 2) return std::nullopt;
  finding.code = "version-skew";
  finding.severity = Severity::warning;
  finding.confidence = Confidence::medium;
  std::vector<std::string> parts;
  for (const auto& [version, names] : users) {
    parts.push_back(fmt::format("{} on {}", version, join_words({names.begin(), names.end()}, 4)));
  }
  std::sort(finding.subjects.begin(), finding.subjects.end());
  finding.subjects.erase(std::unique(finding.subjects.begin(), finding.subjects.end()), finding.subjects.end());
  if (finding.subjects.size() > 16) finding.subjects.resize(16);
  finding.summary = "The processes use different versions of the communication library: " + join_words(parts, 4);
  finding.explanation = "If they are of one job, they may choose differently for the same operation.\n";
  finding.advice = "Use one image or one module on all hosts; look for a second libnccl in LD_LIBRARY_PATH.";
  return finding;
}

}  // namespace

std::vector<Finding> judge_versions(const Evidence& evidence) {
  if (auto finding = told(evidence)) return {*finding};
  if (auto finding = shown(evidence)) return {*finding};
  return {};
}

}  // namespace ddx::analyzers
