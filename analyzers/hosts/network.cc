// Links that broke, and peers that cannot be reached. Both ends of a link are suspects, unless several broken links
// share one end.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyzers/hosts/hosts.h"
#include "analyzers/liveness/liveness.h"
#include "analyzers/log_view.h"

namespace ddx::analyzers {
namespace {

constexpr Nanos kAtStart = 60 * kSecond;
constexpr Nanos kLongAfterStart = 600 * kSecond;
constexpr std::int64_t kFlushed = 5;

// Verbs completion states; the number in NCCL's line is ibv_wc_status.
std::string status_text(std::int64_t status, const std::optional<std::int64_t>& vendor) {
  std::string text;
  switch (status) {
    case 1: text = "local length error"; break;
    case 2: text = "local queue-pair operation error"; break;
    case 4: text = "local protection error (memory not registered)"; break;
    case 5: text = "flushed: the queue pair had failed before"; break;
    case 9: text = "the peer refused the request"; break;
    case 10: text = "remote access error"; break;
    case 11: text = "remote operation error"; break;
    case 12: text = "retry exceeded: the peer did not acknowledge"; break;
    case 13: text = "retry exceeded: the peer was not ready to receive"; break;
    default: text = "not a known state"; break;
  }
  text = fmt::format("status {} ({})", status, text);
  if (vendor)
    text += fmt::format(", vendor error {}{}", *vendor, *vendor == 129 ? " (the same: transport retries used up)" : "");
  return text;
}

// Addresses with a host name in this evidence: address tables and the out-of-band interface of adapter lines.
std::map<std::string, std::string> hosts_by_address(const Evidence& evidence) {
  std::map<std::string, std::string> hosts;
  for (const auto& [event, fact] : seen<RankAddress>(evidence)) {
    if (!fact->address.empty() && !fact->host.empty()) hosts[fact->address] = fact->host;
  }
  for (const auto& [event, fact] : seen<NetAdapters>(evidence)) {
    const auto colon = fact->out_of_band.find(':');
    const auto angle = fact->out_of_band.rfind('<');
    if (colon == std::string::npos || angle == std::string::npos || angle < colon || event->host.empty()) continue;
    hosts.emplace(fact->out_of_band.substr(colon + 1, angle - colon - 1), event->host);
  }
  return hosts;
}

struct Link {
  std::string near;
  std::string far;
  auto operator<=>(const Link&) const = default;
  std::string text() const { return fmt::format("{} <-> {}", near, far); }
};

std::string end_name(const std::map<std::string, std::string>& hosts, const std::string& address) {
  const auto at = hosts.find(address);
  if (at != hosts.end()) return at->second;
  return address.empty() ? "an unnamed peer" : address;
}

Link link_of(const Evidence& evidence, const std::map<std::string, std::string>& hosts, const LogEvent& event,
             const std::string& peer) {
  return {event.host.empty() ? file_name(evidence, event) : event.host, end_name(hosts, peer)};
}

// An end that all of several broken links share.
std::string shared_end(const std::set<Link>& links) {
  if (links.size() < 2) return {};
  for (const std::string& candidate : {links.begin()->near, links.begin()->far}) {
    const bool shared = std::all_of(links.begin(), links.end(),
                                    [&](const Link& link) { return link.near == candidate || link.far == candidate; });
    std::set<std::string> others;
    for (const Link& link : links) others.insert(link.near == candidate ? link.far : link.near);
    if (shared && others.size() > 1) return candidate;
  }
  return {};
}

enum class Moment { unknown, at_start, later };

bool shows_work(const LogEvent& event) {
  const auto* timeout = std::get_if<WatchdogTimeout>(&event.fact);
  return std::holds_alternative<ProgressNotice>(event.fact) || (timeout != nullptr && timeout->seq > 8);
}

bool calls_recorded(const Evidence& evidence, const LogEvent& event) {
  return std::any_of(evidence.trace.ranks.begin(), evidence.trace.ranks.end(), [&](const RankRecord& record) {
    const bool same =
        record.input == event.input || (!record.host.empty() && record.host == event.host && record.pid == event.pid);
    return same && evidence.trace.program(record).size() > 8;
  });
}

// Whether the data path ever worked before `error`.
Moment moment_of(const Evidence& evidence, const LogEvent& error) {
  const LogEvent* first = nullptr;
  bool work = false;
  for (const LogEvent& event : evidence.events) {
    if (event.input != error.input || event.line >= error.line) continue;
    if (first == nullptr) first = &event;
    if (std::holds_alternative<CommInit>(event.fact)) first = &event;  // counted from the end of start-up
    work = work || shows_work(event);
  }
  const auto since = first != nullptr ? elapsed(*first, error) : std::nullopt;
  if (work || (since && *since > kLongAfterStart) || calls_recorded(evidence, error)) return Moment::later;
  if (since) return *since <= kAtStart ? Moment::at_start : Moment::unknown;
  return first != nullptr ? Moment::at_start : Moment::unknown;
}

void tell_moment(Moment moment, Finding& finding) {
  if (moment == Moment::at_start) {
    finding.explanation +=
        "It comes right after start-up, with no work before it: the data path never worked. Start-up itself went "
        "another way "
        "(TCP), so this is no firewall on that; a wrong GID or route between the adapters is likely.\n";
    finding.advice =
        "Compare show_gids on both ends, set NCCL_IB_GID_INDEX (RoCE v2, often 3), and test the pair with perftest "
        "(ib_write_bw -x INDEX) over the same GID.";
  } else if (moment == Moment::later) {
    finding.explanation +=
        "The link carried work before: a link, port, cable or switch that failed, or a peer that went away.\n";
    finding.advice =
        "Look at port counters and link events on both ends (ibstat, ethtool -S, the switch), and whether the peer's "
        "process was still alive.";
  } else {
    finding.advice =
        "Test the pair with perftest over the same adapters and GID, and look at port counters on both ends.";
  }
}

struct Dead {
  RankSet ranks;
  std::set<std::string> places;  // their hosts and addresses
  bool any = false;
};

Dead dead_of(const Evidence& evidence) {
  Dead dead;
  for (const Finding& finding : judge_process_ends(evidence)) {
    if (finding.code != "dead-rank" || finding.severity != Severity::error) continue;
    dead.any = true;
    dead.ranks.insert(finding.ranks);
  }
  for (const auto& [event, fact] : seen<RankAddress>(evidence)) {
    if (!dead.ranks.contains(fact->rank)) continue;
    if (!fact->address.empty()) dead.places.insert(fact->address);
    if (!fact->host.empty()) dead.places.insert(fact->host);
  }
  return dead;
}

bool port_trouble(const NetAdapterError& fact) {
  return contains_text(fact.text, "port error") || contains_text(fact.text, "async event") ||
         contains_text(fact.text, "async fatal") || contains_text(fact.text, "link down") ||
         contains_text(fact.text, "device fatal");
}

std::optional<Finding> completions(const Evidence& evidence, const Dead& dead) {
  auto errors = seen<NetCompletionError>(evidence);
  std::erase_if(errors, [&dead](const auto& error) { return dead.places.count(error.fact->peer) > 0; });
  const bool own = std::any_of(errors.begin(), errors.end(), [](const auto& e) { return e.fact->status != kFlushed; });
  // Flushed requests follow the failure of their queue pair.
  if (own) std::erase_if(errors, [](const auto& error) { return error.fact->status == kFlushed; });
  if (errors.empty()) return std::nullopt;
  const auto hosts = hosts_by_address(evidence);
  Finding finding;
  finding.code = "network";
  finding.severity = dead.any ? Severity::warning : Severity::error;
  std::set<Link> links;
  for (const auto& [event, fact] : errors) {
    links.insert(link_of(evidence, hosts, *event, fact->peer));
    cite(finding, evidence, *event);
  }
  for (const auto& [event, fact] : seen<NetAdapterError>(evidence)) {
    if (!port_trouble(*fact)) continue;
    cite(finding, evidence, *event);
    finding.subjects.push_back(
        fmt::format("device {}{}", fact->device, event->host.empty() ? "" : " of " + event->host));
  }
  std::vector<std::string> names;
  for (const Link& link : links) {
    names.push_back(link.text());
    if (finding.subjects.size() < 16) finding.subjects.push_back("link " + link.text());
  }
  const auto& first = errors.front();
  const std::string shared = shared_end(links);
  finding.summary = fmt::format("The network between {} failed: {}", join_words(names, 2),
                                status_text(first.fact->status, first.fact->vendor_error));
  if (shared.empty()) {
    finding.explanation = "Both ends of the link are suspects; no rank is at fault.\n";
  } else {
    finding.subjects.insert(finding.subjects.begin(), "host " + shared);
    finding.explanation =
        fmt::format("All {} broken links end at {}: that is the first suspect.\n", links.size(), shared);
  }
  finding.confidence = dead.any                             ? Confidence::low
                       : shared.empty() && links.size() > 1 ? Confidence::medium
                                                            : Confidence::high;
  if (!own) finding.confidence = Confidence::low;
  tell_moment(moment_of(evidence, *first.event), finding);
  if (dead.any) finding.explanation += "A process ended by itself in this job: these errors may only be its echo.\n";
  return finding;
}

std::optional<Finding> port_events(const Evidence& evidence) {
  Finding finding;
  finding.code = "network";
  finding.severity = Severity::warning;
  std::vector<std::string> names;
  for (const auto& [event, fact] : seen<NetAdapterError>(evidence)) {
    if (!port_trouble(*fact)) continue;
    cite(finding, evidence, *event);
    const std::string name = fmt::format("{}{}", fact->device.empty() ? "an adapter" : fact->device,
                                         event->host.empty() ? "" : " of " + event->host);
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    names.push_back(name);
    if (finding.subjects.size() < 16) finding.subjects.push_back("device " + name);
  }
  if (names.empty()) return std::nullopt;
  finding.summary = fmt::format("The adapter reported a failure of its own: {}", join_words(names, 3));
  finding.explanation =
      "An event of the port or device, not of a rank. Operations over it hang or fail from then on.\n";
  finding.advice = "Look at the link (ibstat, ethtool -S, cable, switch port) at that time.";
  return finding;
}

bool unreachable(const NetSocketError& fact) {
  const bool connecting = fact.call.empty() || contains_text(fact.call, "connect");
  return contains_text(fact.error, "no route") || contains_text(fact.error, "unreachable") ||
         (connecting && (contains_text(fact.error, "timed out") || contains_text(fact.error, "timeout")));
}
bool refused(const NetSocketError& fact) { return contains_text(fact.error, "refused"); }

// Connecting is tried again and again while a job starts: what counts is whether it went on. Holds the last line of
// each file that shows it.
using LastWork = std::map<InputId, std::uint64_t>;

LastWork last_work(const Evidence& evidence) {
  LastWork last;
  for (const LogEvent& event : evidence.events) {
    const auto* init = std::get_if<CommInit>(&event.fact);
    if (shows_work(event) || (init != nullptr && init->complete)) last[event.input] = event.line;
  }
  return last;
}

bool went_on(const LastWork& last, const LogEvent& error) {
  const auto at = last.find(error.input);
  return at != last.end() && at->second > error.line;
}

std::optional<Finding> sockets(const Evidence& evidence, const Dead& dead) {
  const auto hosts = hosts_by_address(evidence);
  const LastWork last = last_work(evidence);
  std::map<bool, std::set<Link>> links;  // by: is it refused (rather than unreachable)
  std::map<bool, std::vector<const LogEvent*>> events;
  for (const auto& [event, fact] : seen<NetSocketError>(evidence)) {
    if ((!unreachable(*fact) && !refused(*fact)) || dead.places.count(fact->peer) > 0 || went_on(last, *event))
      continue;
    links[refused(*fact)].insert(link_of(evidence, hosts, *event, fact->peer));
    events[refused(*fact)].push_back(event);
  }
  if (links.empty()) return std::nullopt;
  const bool is_refused = links.begin()->first;
  Finding finding;
  finding.code = "network";
  finding.severity = is_refused || dead.any ? Severity::warning : Severity::error;
  finding.confidence = dead.any ? Confidence::low : Confidence::medium;
  std::vector<std::string> names;
  for (const Link& link : links[is_refused]) {
    names.push_back(link.text());
    if (finding.subjects.size() < 16) finding.subjects.push_back("link " + link.text());
  }
  for (const LogEvent* event : events[is_refused]) cite(finding, evidence, *event);
  if (is_refused) {
    finding.summary = fmt::format("Nobody listened at the other end: {} (connection refused)", join_words(names, 2));
    finding.explanation =
        "The host answered, the port did not: the process that should listen there has not started, has ended, "
        "or listens elsewhere. The network itself works.\n";
    finding.advice =
        "See whether the process of that peer (rank 0 for the store) runs, and whether address and port are the same "
        "on all ranks.";
  } else {
    finding.summary = fmt::format("The peer cannot be reached: {}", join_words(names, 2));
    finding.explanation =
        "A route, an interface or a firewall between the two, or a host that is down. Where the caller tries again "
        "until its "
        "own limit (PyTorch's store does), it may also be that nobody listens there yet: rank 0 not started, or "
        "elsewhere.\n";
    finding.advice =
        "Test the pair with ping and a TCP connect to that port; see NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME.";
  }
  return finding;
}

// A port to listen on that another process has. Binding is tried for IPv6 and then IPv4: what counts is whether it went
// on.
std::optional<Finding> port_taken(const Evidence& evidence) {
  const LastWork last = last_work(evidence);
  Finding finding;
  std::set<std::int64_t> ports;
  for (const auto& [event, fact] : seen<PortTaken>(evidence)) {
    if (went_on(last, *event)) continue;
    cite(finding, evidence, *event);
    if (fact->port) ports.insert(*fact->port);
    if (event->rank) finding.victims.insert(*event->rank);
    const std::string subject = host_subject(evidence, *event);
    if (std::find(finding.subjects.begin(), finding.subjects.end(), subject) == finding.subjects.end() &&
        finding.subjects.size() < 12) {
      finding.subjects.push_back(subject);
    }
  }
  if (finding.evidence.empty()) return std::nullopt;
  std::vector<std::string> names;
  for (std::int64_t port : ports) names.push_back(std::to_string(port));
  for (const std::string& name : names) {
    if (finding.subjects.size() < 16) finding.subjects.push_back("port " + name);
  }
  finding.code = "port-blocked";
  finding.confidence = Confidence::high;
  finding.summary = fmt::format("The port {} is taken: {} cannot listen on it",
                                names.empty() ? std::string("of the rendezvous") : join_words(names, 3),
                                finding.victims.empty() ? std::string("the process") : finding.victims.label(4));
  finding.explanation =
      "Another process holds it: a job on the same host, one of an earlier attempt that has not ended, or a second "
      "launcher of this one.\n";
  finding.advice =
      "See who has it (ss -ltnp), end what is left of earlier attempts, or give each job a port of its own "
      "(MASTER_PORT, --rdzv-endpoint with port 0).";
  return finding;
}

// More came over a link than its end expects: the two sides do not mean the same operation or size.
std::optional<Finding> sizes_on_the_wire(const Evidence& evidence) {
  Finding finding;
  for (const auto& [event, fact] : seen<NcclWarning>(evidence)) {
    const bool truncated =
        contains_text(fact->text, "message truncated") || contains_text(fact->text, "collective mismatch error");
    if (!truncated) continue;
    cite(finding, evidence, *event);
    if (!event->host.empty() && finding.subjects.size() < 16) finding.subjects.push_back("host " + event->host);
  }
  if (finding.evidence.empty()) return std::nullopt;
  std::sort(finding.subjects.begin(), finding.subjects.end());
  finding.subjects.erase(std::unique(finding.subjects.begin(), finding.subjects.end()), finding.subjects.end());
  finding.code = "mismatch-size";
  finding.confidence = Confidence::low;
  finding.summary = "The two ends of a connection do not agree on the size of one message; which is wrong is not shown";
  finding.explanation =
      "Either the ranks call different operations or counts, or the libraries cut the same operation differently "
      "(unlike NCCL versions or NCCL_ settings on the hosts).\n";
  finding.advice =
      "Compare NCCL's version and environment on both hosts, and what the ranks call (recorder dumps, "
      "TORCH_DISTRIBUTED_DEBUG=DETAIL).";
  return finding;
}

// Connections closed by the other side, and no process is known to have ended.
std::optional<Finding> lost_connections(const Evidence& evidence) {
  if (!judge_process_ends(evidence).empty()) return std::nullopt;
  const auto hosts = hosts_by_address(evidence);
  Finding finding;
  const LastWork last = last_work(evidence);
  std::set<std::string> peers;
  std::set<std::string> speakers;
  for (const auto& [event, fact] : seen<NetSocketError>(evidence)) {
    if (contains_text(fact->error, "timed out waiting")) return std::nullopt;  // a wait, judged as such
    if (unreachable(*fact) || refused(*fact) || went_on(last, *event)) continue;
    peers.insert(end_name(hosts, fact->peer));
    speakers.insert(speaker(evidence, *event));
    cite(finding, evidence, *event);
  }
  if (peers.empty()) return std::nullopt;
  finding.code = "inconclusive";
  finding.severity = Severity::info;
  finding.confidence = Confidence::low;
  for (const std::string& peer : peers) {
    if (finding.subjects.size() < 16) finding.subjects.push_back("host " + peer);
  }
  finding.summary =
      fmt::format("{} lost the connection to {}: either a process there ended, or the link failed",
                  join_words({speakers.begin(), speakers.end()}, 3), join_words({peers.begin(), peers.end()}, 3));
  finding.explanation = "Who reports a lost connection is a victim. Why it was lost stands in the other side's log.\n";
  finding.advice = "Give the log of the other side and its host's kernel log.";
  return finding;
}

}  // namespace

std::vector<Finding> judge_network(const Evidence& evidence) {
  const Dead dead = dead_of(evidence);
  std::vector<Finding> findings;
  if (auto finding = port_taken(evidence)) findings.push_back(std::move(*finding));
  if (auto finding = sizes_on_the_wire(evidence)) findings.push_back(std::move(*finding));
  if (auto finding = completions(evidence, dead)) {
    findings.push_back(std::move(*finding));
    return findings;
  }
  if (auto finding = port_events(evidence)) findings.push_back(std::move(*finding));
  if (auto finding = sockets(evidence, dead)) findings.push_back(std::move(*finding));
  if (!findings.empty()) return findings;
  if (auto finding = lost_connections(evidence)) findings.push_back(std::move(*finding));
  return findings;
}

}  // namespace ddx::analyzers
