// Ranks must choose the same algorithm and protocol for one operation; where a local fact (the CPU's maker, a variable,
// a version) enters the choice, hosts differ and the operation hangs at those sizes only.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyzers/hosts/hosts.h"
#include "analyzers/log_view.h"

namespace ddx::analyzers {
namespace {

using Choice = std::pair<std::int64_t, std::int64_t>;  // algorithm, protocol
struct Process {
  std::string host;
  std::set<Choice> choices;
  const LogEvent* event = nullptr;
};
using Processes = std::map<std::pair<std::string, std::int64_t>, Process>;

std::string choice_text(const Choice& choice) {
  static constexpr const char* kAlgorithms[] = {"Tree",     "Ring", "CollNetDirect", "CollNetChain", "NVLS",
                                                "NVLSTree", "PAT"};
  static constexpr const char* kProtocols[] = {"LL", "LL128", "Simple"};
  std::string text = fmt::format("algorithm {}", choice.first);
  if (choice.first >= 0 && choice.first < 7) text += fmt::format(" ({})", kAlgorithms[choice.first]);
  text += fmt::format(" protocol {}", choice.second);
  if (choice.second >= 0 && choice.second < 3) text += fmt::format(" ({})", kProtocols[choice.second]);
  return text;
}

std::string size_text(const std::pair<std::string, std::uint64_t>& size) {
  const std::string bytes = format_count(size.second) + " bytes";
  return size.first.empty() ? bytes : fmt::format("{} of {}", size.first, bytes);
}

// One class for each choice: two processes that made several each count only where they share none.
std::map<Choice, std::vector<const Process*>> classes_of(const Processes& processes) {
  std::map<Choice, std::vector<const Process*>> classes;
  for (const auto& [key, process] : processes) classes[*process.choices.begin()].push_back(&process);
  if (classes.size() < 2) return {};
  const auto& first = processes.begin()->second.choices;
  const bool disjoint = std::any_of(processes.begin(), processes.end(), [&first](const auto& entry) {
    const auto& own = entry.second.choices;
    return std::none_of(own.begin(), own.end(), [&first](const Choice& choice) { return first.count(choice) > 0; });
  });
  if (!disjoint) return {};
  return classes;
}

}  // namespace

std::vector<Finding> judge_tuning(const Evidence& evidence) {
  std::map<std::pair<std::string, std::uint64_t>, Processes> sizes;
  for (const auto& [event, fact] : seen<TuningChoice>(evidence)) {
    // Without host and pid a file stands for one process.
    const std::string host = event->host.empty() ? file_name(evidence, *event) : event->host;
    Process& process = sizes[{fact->op, fact->bytes}][{host, event->pid.value_or(0)}];
    process.host = host;
    process.choices.insert({fact->algorithm, fact->protocol});
    if (process.event == nullptr) process.event = event;
  }
  Finding finding;
  std::set<std::string> hosts;
  std::vector<std::string> unlike;
  std::vector<std::string> alike;
  std::string example;
  for (const auto& [size, processes] : sizes) {
    if (processes.size() < 2) continue;
    const auto classes = classes_of(processes);
    if (classes.empty()) {
      alike.push_back(size_text(size));
      continue;
    }
    unlike.push_back(size_text(size));
    std::vector<std::string> parts;
    for (const auto& [choice, members] : classes) {
      std::set<std::string> names;
      for (const Process* process : members) {
        names.insert(process->host);
        cite(finding, evidence, *process->event);
      }
      hosts.insert(names.begin(), names.end());
      parts.push_back(fmt::format("{} on {}", choice_text(choice), join_words({names.begin(), names.end()}, 4)));
    }
    if (example.empty()) example = fmt::format("{}: {}", size_text(size), join_words(parts, 4));
  }
  if (unlike.empty()) return {};
  finding.code = "host-asymmetry";
  finding.severity = Severity::error;
  finding.confidence = Confidence::medium;
  for (const std::string& host : hosts) {
    if (finding.subjects.size() < 16) finding.subjects.push_back("host " + host);
  }
  finding.summary = "Processes choose different ways for the same operation and will hang in it: " + example;
  finding.explanation = fmt::format(
      "They disagree at {}{}{}. The choice must be common; it depends on something that differs "
      "between these hosts (CPU maker, an NCCL_* variable, a version). No rank is at fault.\n",
      join_words(unlike, 4), alike.empty() ? "" : "; they agree at ",
      alike.empty() ? "" : join_words(alike, 4) + ", which proves nothing for the other sizes");
  finding.advice =
      "Set the same NCCL_PROTO (and NCCL_ALGO) on all hosts, or use an NCCL in which the choice does not depend on the "
      "host; compare lscpu, NCCL_* variables and versions.";
  return {finding};
}

}  // namespace ddx::analyzers
