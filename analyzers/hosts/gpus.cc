// A GPU at fault: as the driver says in the kernel's log (Xid), or as the error of a rank's own call says.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analyzers/hosts/hosts.h"
#include "analyzers/launch/comm_table.h"
#include "analyzers/log_view.h"

namespace ddx::analyzers {
namespace {

// Of NVIDIA's Xid numbers those that mean the device, its memory, its links or its firmware. The common others (13, 31,
// 43, 45) are of the program that ran on it: a bad access, or the clean-up after its end.
const char* device_xid(std::int64_t xid) {
  switch (xid) {
    case 48: return "an uncorrectable memory error";
    case 62: return "its microcontroller halted";
    case 64: return "a memory row could not be remapped";
    case 74: return "an NVLink error";
    case 79: return "it has fallen off the bus";
    case 94: return "a contained memory error";
    case 95: return "an uncontained memory error";
    case 119: return "its firmware does not answer";
    case 120: return "an error of its firmware";
    case 140: return "an unrecovered memory error";
    case 143: return "a failed start of the device";
    case 149: return "an NVLink error";
    default: return nullptr;
  }
}

// NCCL prints a bus id as one hexadecimal number with the function behind it: "0000:9d:00" is 9d000.
std::string nccl_bus_id(const std::string& id) {
  std::string digits;
  for (char c : id) {
    if (c != ':' && c != '.') digits += c;
  }
  digits += '0';
  const auto first = digits.find_first_not_of('0');
  return first == std::string::npos ? "0" : digits.substr(first);
}

bool word_in(const std::string& text, const std::string& word) {
  const auto part_of_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const bool begins = at == 0 || !part_of_word(text[at - 1]);
    const bool ends = at + word.size() >= text.size() || !part_of_word(text[at + word.size()]);
    if (begins && ends) return true;
  }
  return false;
}

// The host that the kernel's log is of: as its lines say, else one that its path names.
std::string host_of(const Evidence& evidence, const LogEvent& event, const std::vector<CommInfo>& comms) {
  if (!event.host.empty()) return event.host;
  const std::string path = evidence.path(event.input);
  std::set<std::string> named;
  for (const CommInfo& comm : comms) {
    for (const CommMember& member : comm.members) {
      if (!member.host.empty() && word_in(path, member.host)) named.insert(member.host);
    }
  }
  return named.size() == 1 ? *named.begin() : std::string();
}

// The rank on that device; nullopt where none, or more than one, may be meant.
std::optional<RankId> rank_on(const std::vector<CommInfo>& comms, const std::string& bus, const std::string& host) {
  std::set<RankId> ranks;
  for (const CommInfo& comm : comms) {
    for (const CommMember& member : comm.members) {
      if (member.bus_id != bus || (!host.empty() && member.host != host)) continue;
      if (member.rank) {
        ranks.insert(*member.rank);
      } else if (comm.positions_are_ranks) {
        ranks.insert(RankId(member.position));
      }
    }
  }
  return ranks.size() == 1 ? std::optional(*ranks.begin()) : std::nullopt;
}

bool speaks_of_a_fault(const std::string& what) {
  return contains_text(what, "uncorrectable ecc") || contains_text(what, "uncorrectable nvlink") ||
         contains_text(what, "gpu has fallen off") || contains_text(what, "gpu is lost");
}

struct Faults {
  Finding finding;
  std::vector<std::string> parts;

  void add(const Evidence& evidence, const LogEvent& event, const std::optional<RankId>& rank, std::string device,
           const std::string& what) {
    cite(finding, evidence, event);
    if (rank) finding.ranks.insert(*rank);
    std::string part = fmt::format("{}{}: {}", device, rank ? fmt::format(" (rank {})", rank->value) : "", what);
    if (std::find(parts.begin(), parts.end(), part) != parts.end()) return;
    parts.push_back(std::move(part));
    if (finding.subjects.size() < 16) finding.subjects.push_back(std::move(device));
  }
};

// Whether the job has come to harm at all: a fault on a GPU that it does not use is none of its own.
bool in_trouble(const Evidence& evidence) {
  return std::any_of(evidence.events.begin(), evidence.events.end(), [](const LogEvent& event) {
    return std::holds_alternative<WatchdogTimeout>(event.fact) || std::holds_alternative<ProcessEnd>(event.fact) ||
           std::holds_alternative<ElasticFailure>(event.fact) || std::holds_alternative<HeartbeatStuck>(event.fact) ||
           std::holds_alternative<NetSocketError>(event.fact);
  });
}

}  // namespace

std::vector<Finding> judge_gpus(const Evidence& evidence) {
  Faults faults;
  const auto lines = seen<DeviceFault>(evidence);
  const std::vector<CommInfo> comms = lines.empty() ? std::vector<CommInfo>() : comm_table(evidence);
  const ProcessTable processes(evidence);
  for (const auto& [event, fact] : lines) {
    const char* what = fact->xid ? device_xid(*fact->xid) : "it has fallen off the bus";
    if (what == nullptr) continue;
    const std::string host = host_of(evidence, *event, comms);
    auto rank = rank_on(comms, nccl_bus_id(fact->bus_id), host);
    if (!rank && event->pid) rank = processes.rank_of(host, *event->pid);
    if (!rank && event->pid) rank = processes.rank_of(*event->pid);
    const std::string device = fmt::format("GPU {}{}", fact->bus_id, host.empty() ? "" : " of " + host);
    faults.add(evidence, *event, rank, device, fact->xid ? fmt::format("Xid {}, {}", *fact->xid, what) : what);
  }
  for (const auto& [event, fact] : seen<ProcessEnd>(evidence)) {
    if (!speaks_of_a_fault(fact->what)) continue;
    const auto rank = processes.rank_of(*event);
    faults.add(evidence, *event, rank,
               rank ? fmt::format("the GPU of rank {}", rank->value) : host_subject(evidence, *event), fact->what);
  }
  Finding& finding = faults.finding;
  if (faults.parts.empty()) return {};
  finding.code = "gpu-fault";
  finding.severity = in_trouble(evidence) ? Severity::error : Severity::warning;
  finding.confidence = finding.ranks.empty() ? Confidence::medium : Confidence::high;
  if (!finding.ranks.empty()) finding.victims = known_ranks(evidence).without(finding.ranks);
  finding.summary = "A GPU failed: " + join_words(faults.parts, 3);
  finding.explanation = "Whatever runs on it then hangs or fails, and all others wait for that rank.\n";
  if (finding.ranks.empty()) {
    finding.explanation += "Which rank uses it these logs do not show (NCCL_DEBUG=INFO prints each rank's bus id).\n";
  }
  finding.advice =
      "Take that GPU (or its host) out of service: reset or reboot, nvidia-smi -q for its memory errors, dcgmi diag.";
  return {std::move(finding)};
}

}  // namespace ddx::analyzers
